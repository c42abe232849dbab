"""What temperature scaling does to the logits that a user saved: a report and a reliability diagram.

The temperature is fitted on rows that are not reported on, unless the user asks for the same; the report says which.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from softmax_temperature.artifacts import (
    MANIFEST,
    ArtifactError,
    digest_of_file,
    new_artifact,
    open_artifact,
    write_json,
)
from softmax_temperature.datasets.sampling import generator_for, stratified_holdout
from softmax_temperature.errors import InputError
from softmax_temperature.logits_archive import LogitsArchive, Predictions
from softmax_temperature.metrics import calibration_report, reliability_bins
from softmax_temperature.plots import save
from softmax_temperature.reliability import reliability_diagram
from softmax_temperature.scaling import apply_temperature, fit_temperature

KIND = "calibration"
CRITERIA = ("nll", "ece")
_ELSEWHERE = "Choose another folder with --output."
_ROWS = (
    ("accuracy (%)", "accuracy", 100),
    ("top-5 accuracy (%)", "top5_accuracy", 100),
    ("NLL (nats)", "negative_log_likelihood", 1),
    ("Brier score", "brier_score", 1),
    ("ECE (%)", "expected_calibration_error", 100),
    ("  noise floor (%)", "noise_floor", 100),
    ("  debiased (%)", "debiased_calibration_error", 100),
    ("MCE (%)", "maximum_calibration_error", 100),
    ("AdaECE (%)", "adaptive_calibration_error", 100),
    ("Classwise-ECE (%)", "classwise_calibration_error", 100),
)
_NOTE = "An ECE near the noise floor, which a perfectly calibrated model shows too, is no evidence of miscalibration."
_INTERVALS = (
    "In brackets: 90 % intervals, percentiles over {:,} resamples. Calibration errors are biased upwards, those of\n"
    "resamples twice as much, so an interval may lie above its value."
)


def calibrate(
    path: Path,
    *,
    name: str | None = None,
    fit_on: str | None = None,
    bins: int = 15,
    bootstrap: int = 1000,
    seed: int = 0,
    output: Path | None = None,
) -> tuple[dict[str, Any], Path]:
    """Report on a network's saved logits, before and after scaling; write the report and a reliability diagram.

    Args:
        path: An archive with `logits`, shape (n, classes) or (networks, n, classes), and `labels`, shape (n,); for
            several networks also `names`, shape (networks,); perhaps `validation_logits` and `validation_labels`.
        name: Which network, where there are several.
        fit_on: Which rows the temperature is fitted on: "validation", the arrays of that name; "half", a random half
            of every class, the report being on the other; "all", the very rows that are reported on. By default
            "validation" where there is, else "half".
        bins: Number of bins of every binned metric and of the diagram.
        bootstrap: Resamples for the intervals; 0 for none.
        seed: Of the half, the resamples and the noise floor, at least 0.
        output: Folder to write; by default beside the file, with the network's name where there are several.

    Returns:
        What report.json holds, plain values in fractions and nats, and the folder. It holds report.json,
        reliability.png, reliability.svg and a manifest; it is written whole or not at all, and only an empty folder or
        an earlier report is replaced.

    Raises:
        InputError: The file, an array, an option or the folder is not as stated; nothing has been written.
    """
    _check_counts({"--bins": (bins, 1), "--bootstrap": (bootstrap, 0), "--seed": (seed, 0)})
    archive = LogitsArchive.open(path)
    network, fit_on = archive.network(name), archive.fit_on(fit_on)
    folder = _place(output or path.with_name(f"{path.stem}{_suffix(network)}-calibration"))
    fitted, reported = _divided(archive, network, fit_on, seed)
    for rows, purpose in ((fitted, "to fit the temperature on"), (reported, "to report on")):
        if len(rows.labels) < bins:
            archive.refuse(f"has {len(rows.labels)} rows {purpose}, fewer than {bins} bins", "Choose fewer --bins.")
    about = {
        "source": {"file": path.name, "sha256": digest_of_file(path), "network": network},
        "settings": {"fit_on": fit_on, "bins": bins, "bootstrap": bootstrap, "seed": seed},
        "rows": {"fitted": len(fitted.labels), "reported": len(reported.labels), "same": fit_on == "all"},
    }
    fits = {by: fit_temperature(fitted.logits, fitted.labels, criterion=by, bins=bins) for by in CRITERIA}
    scaled = {by: apply_temperature(reported.logits, fit.temperature) for by, fit in fits.items()}
    arms = {arm: Predictions(logits, reported.labels) for arm, logits in {"before": reported.logits, **scaled}.items()}
    metrics = {
        arm: calibration_report(rows.logits, rows.labels, bins=bins, bootstrap=bootstrap, seed=seed)
        for arm, rows in arms.items()
    }
    report = about | {"temperature": {by: asdict(fit) for by, fit in fits.items()}, "metrics": metrics}
    with _write_faults(folder), new_artifact(folder, kind=KIND, about=about) as building:
        write_json(building / "report.json", report)
        save(reliability_diagram(_tables(report, arms), title=network or path.stem), building, "reliability")
    return report, folder


def summary(report: dict[str, Any]) -> str:
    """The report as a person reads it: rows and temperatures in sentences, metrics as a table, in percent and nats."""
    source, settings = report["source"], report["settings"]
    title = source["file"] if source["network"] is None else f"{source['file']}, {source['network']}"
    notes = [_NOTE, _INTERVALS.format(settings["bootstrap"])] if settings["bootstrap"] else [_NOTE]
    temperatures = [_temperature(by, fit) for by, fit in report["temperature"].items()]
    parts = [[title, _origin(settings, report["rows"])], temperatures, _metrics(report), notes]
    return "\n\n".join("\n".join(lines) for lines in parts)


def _divided(archive: LogitsArchive, network: str | None, fit_on: str, seed: int) -> tuple[Predictions, Predictions]:
    """The rows to fit on, and those to report on."""
    rows = archive.predictions(network)
    if fit_on == "all":
        return rows, rows
    if fit_on == "half":
        held_out = stratified_holdout(rows.labels.numpy(), 0.5, generator_for(seed, "calibrate", "half"))
        return rows.where(~held_out), rows.where(held_out)
    validation = archive.predictions(network, "validation_")
    there, here = (some.logits.shape[1] for some in (validation, rows))
    if there != here:
        archive.refuse(f"validation_logits has {there} classes, logits {here}")
    return validation, rows


def _tables(report: dict[str, Any], arms: dict[str, Predictions]) -> dict[str, Any]:
    """The bins of each panel of the diagram."""
    bins = report["settings"]["bins"]
    return {
        _heading(report, arm): reliability_bins(torch.softmax(rows.logits, dim=1), rows.labels, bins=bins)
        for arm, rows in arms.items()
    }


def _check_counts(counts: dict[str, tuple[int, int]]) -> None:
    for option, (value, least) in counts.items():
        if value < least:
            raise InputError(f"is {value}", where=option, remedy=f"Give at least {least}.")


def _suffix(network: str | None) -> str:
    """Part of the folder's name, so that two networks of a file do not share one."""
    return "" if network is None else "-" + re.sub(r"[^\w.-]+", "_", network)


def _place(folder: Path) -> Path:
    """The folder, after a look at whether it is new, empty, or an earlier report and nothing more.

    It will be swapped as a whole, so anything else in it would be lost.
    """
    with _write_faults(folder):
        folder = folder.resolve()
        if folder == Path.cwd():
            raise InputError("is the current folder and would be replaced", where=str(folder), remedy=_ELSEWHERE)
        if folder.exists() and not folder.is_dir():
            raise InputError("is a file, not a folder", where=str(folder), remedy=_ELSEWHERE)
        others = {path.name for path in folder.iterdir()} if folder.exists() else set()
    with suppress(ArtifactError):
        others -= {MANIFEST, *open_artifact(folder, kind=KIND).files}
    if others:
        some = ", ".join(sorted(others)[:3])
        raise InputError(f"holds other files ({some}) and would be replaced", where=str(folder), remedy=_ELSEWHERE)
    return folder


@contextmanager
def _write_faults(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write ({error.strerror})", where=str(folder), remedy=_ELSEWHERE) from error


def _origin(settings: dict[str, Any], rows: dict[str, Any]) -> str:
    fitted, reported = f"{rows['fitted']:,}", f"{rows['reported']:,}"
    return {
        "validation": f"Temperature fitted on the {fitted} validation rows; metrics of the {reported} rows of logits.",
        "half": f"Temperature fitted on a random half of every class, {fitted} rows (seed {settings['seed']}); "
        f"metrics of the other {reported} rows.",
        "all": f"Temperature fitted on the same {reported} rows that the metrics are of: those after scaling flatter.",
    }[settings["fit_on"]]


def _temperature(by: str, fit: dict[str, Any]) -> str:
    at_bound = " (at a bound of the search: not an optimum)" if fit["at_bound"] else ""
    return f"Temperature by {by.upper()}: {fit['temperature']:.4g}{at_bound}"


def _heading(report: dict[str, Any], arm: str) -> str:
    if arm == "before":
        return "before scaling"
    return f"T = {report['temperature'][arm]['temperature']:.4g}, by {arm.upper()}"


def _metrics(report: dict[str, Any]) -> list[str]:
    """A line for the headings and one for each metric, in columns."""
    arms = report["metrics"]
    lines = [[label, *(_cell(values, key, scale) for values in arms.values())] for label, key, scale in _ROWS]
    lines.insert(0, ["", *(_heading(report, arm) for arm in arms)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]


def _cell(values: dict[str, Any], key: str, scale: int) -> str:
    digits = 2 if scale == 100 else 4
    value, *bounds = (f"{scale * number:.{digits}f}" for number in (values[key], *values["intervals"].get(key, ())))
    return f"{value} [{', '.join(bounds)}]" if bounds else value
