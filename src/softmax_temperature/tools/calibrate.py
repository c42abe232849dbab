"""What temperature scaling does to the logits that a user saved: a report, a reliability diagram, perhaps a page.

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

from softmax_temperature.data.sampling import generator_for, stratified_holdout
from softmax_temperature.metrics import calibration_report, reliability_bins
from softmax_temperature.papers.shared.plots import save
from softmax_temperature.papers.shared.reliability import reliability_diagram
from softmax_temperature.runner.artifacts import (
    MANIFEST,
    ArtifactError,
    digest_of_file,
    new_artifact,
    open_artifact,
    write_json,
    write_text,
)
from softmax_temperature.runner.errors import InputError
from softmax_temperature.scaling import apply_temperature, fit_temperature
from softmax_temperature.tools.calibration_page import page
from softmax_temperature.tools.calibration_summary import heading, title
from softmax_temperature.tools.logits_archive import LogitsArchive, LogitsFiles, Predictions

KIND = "calibration"
CRITERIA = ("nll", "ece")
_ELSEWHERE = "Choose another place."


def calibrate(
    logits: Path,
    *,
    labels: Path | None = None,
    validation: Path | None = None,
    validation_labels: Path | None = None,
    name: str | None = None,
    fit_on: str | None = None,
    bins: int = 15,
    bootstrap: int = 1000,
    seed: int = 0,
    output: Path | None = None,
    html: Path | None = None,
) -> tuple[dict[str, Any], Path]:
    """Report on a network's saved logits, before and after scaling; write the report and a reliability diagram.

    Args:
        logits: An npz, npy, safetensors, csv or parquet file with `logits`, shape (n, classes) or (networks, n,
            classes), and `labels`, shape (n,); for several networks also `names`, shape (networks,); perhaps
            `validation_logits` and `validation_labels`. A table has a column of labels and one for each class.
        labels: The file with the labels, where they lie apart.
        validation: A second file of logits and labels, to fit the temperature on.
        validation_labels: The file with its labels, where they lie apart.
        name: Which network, where there are several.
        fit_on: Which rows the temperature is fitted on: "validation", the second file or the arrays of that name;
            "half", a random half of every class, the report being on the other; "all", the very rows that are reported
            on. By default "validation" where there is, else "half".
        bins: Number of bins of every binned metric and of the diagram.
        bootstrap: Resamples for the intervals; 0 for none.
        seed: Of the half, the resamples and the noise floor, at least 0.
        output: Folder to write; by default beside the file, with the network's name where there are several.
        html: A page to write, which needs no other file.

    Returns:
        What report.json holds, plain values in fractions and nats, and the folder. It holds report.json,
        reliability.png, reliability.svg and a manifest; it is written whole or not at all, and only an empty folder or
        an earlier report is replaced.

    Raises:
        InputError: The file, an array, an option or the folder is not as stated; nothing has been written.
    """
    _check_counts({"--bins": (bins, 1), "--bootstrap": (bootstrap, 0), "--seed": (seed, 0)})
    files = LogitsFiles(logits, labels, validation, validation_labels)
    archive = LogitsArchive.open(files)
    network, fit_on = archive.network(name), archive.fit_on(fit_on)
    folder = _place(output or logits.with_name(f"{logits.stem}{_suffix(network)}-calibration"))
    _check_page(html, folder)
    fitted, reported = _divided(archive, network, fit_on, seed)
    for rows, purpose in ((fitted, "to fit the temperature on"), (reported, "to report on")):
        if len(rows.labels) < bins:
            archive.refuse(f"has {len(rows.labels)} rows {purpose}, fewer than {bins} bins", "Choose fewer --bins.")
    sources = {role: {"file": path.name, "sha256": digest_of_file(path)} for role, path in files.all().items()}
    about = {
        "source": {"files": sources, "network": network},
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
    _write(report, arms, folder, html)
    return report, folder


def _write(report: dict[str, Any], arms: dict[str, Predictions], folder: Path, html: Path | None) -> None:
    with _write_faults(folder), new_artifact(folder, kind=KIND, about=_about(report)) as building:
        write_json(building / "report.json", report)
        save(reliability_diagram(_tables(report, arms), title=title(report)), building, "reliability")
        if html is not None:
            write_text(html, page(report, (building / "reliability.svg").read_bytes()))


def _about(report: dict[str, Any]) -> dict[str, Any]:
    return {key: report[key] for key in ("source", "settings", "rows")}


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
        archive.refuse(f"validation_logits has {there} classes, logits {here}", key="validation_logits")
    return validation, rows


def _tables(report: dict[str, Any], arms: dict[str, Predictions]) -> dict[str, Any]:
    """The bins of each panel of the diagram."""
    bins = report["settings"]["bins"]
    return {
        heading(report, arm): reliability_bins(torch.softmax(rows.logits, dim=1), rows.labels, bins=bins)
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


def _check_page(html: Path | None, folder: Path) -> None:
    """Refuse a page that could not be written, or that the folder's replacement would take away."""
    if html is None:
        return
    where = str(html)
    if html.is_dir():
        raise InputError("is a folder, not a file", where=where, remedy=_ELSEWHERE)
    if not html.parent.is_dir():
        raise InputError(f"there is no folder {html.parent}", where=where, remedy=_ELSEWHERE)
    if html.resolve().is_relative_to(folder):
        raise InputError("lies in the folder that the report replaces", where=where, remedy=_ELSEWHERE)


@contextmanager
def _write_faults(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot write ({error.strerror})", where=str(folder), remedy=_ELSEWHERE) from error
