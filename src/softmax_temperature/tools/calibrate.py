"""How well a classifier is calibrated, before and after temperature scaling: a report
on logits in memory or files.
"""

import io
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import torch
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure
from torch import Tensor

from softmax_temperature.data.seeds import generator_for
from softmax_temperature.metrics import (
    calibration_report,
    paired_difference,
    reliability_bins,
)
from softmax_temperature.metrics.checks import ArgumentError, check_count
from softmax_temperature.papers.shared.plots import save
from softmax_temperature.runner.artifacts import digest_of_file, write_json, write_text
from softmax_temperature.scaling import (
    apply_temperature,
    fit_temperature,
    temperature_interval,
)
from softmax_temperature.tools.arrays import (
    Rows,
    checked_logits,
    read_rows,
    split_rows,
    user_data,
)
from softmax_temperature.tools.reliability import reliability_diagram

Kind = Literal["logits", "probs"]
ROWS = (
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
ECE = "expected_calibration_error"


@dataclass(frozen=True)
class CalibrationReport:
    """Metrics before and after scaling, with 90 % intervals; `print`, `plot`,
    `to_frame`, or show it in a notebook.
    """

    # Everything as JSON values, in fractions and nats: `temperature` (by criterion:
    # temperature, value, at_bound, low, high), `metrics` (before, nll, ece),
    # `differences` (nll minus before), `rows`, `settings`, `verdict`.
    data: dict[str, Any]
    logits: dict[str, Tensor]  # Of the reported rows, by arm: before, nll, ece.
    labels: Tensor  # Of the reported rows.

    @property
    def temperature(self) -> float:
        """The temperature by likelihood: divide logits by it."""
        return float(self.data["temperature"]["nll"]["temperature"])

    def to_frame(self) -> pd.DataFrame:
        """One row for each metric; value, low and high of each arm, in fractions and
        nats.
        """
        columns = {}
        for arm, values in self.data["metrics"].items():
            columns[arm, "value"] = {key: values[key] for _, key, _ in ROWS}
            for place, bound in enumerate(("low", "high")):
                columns[arm, bound] = {
                    key: bounds[place] for key, bounds in values["intervals"].items()
                }
        return pd.DataFrame(columns, index=[key for _, key, _ in ROWS])

    def plot(self, title: str | None = None) -> Figure:
        """Reliability diagrams before and after scaling, with the number of samples in
        each bin.
        """
        bins, probs = (
            self.data["settings"]["bins"],
            {arm: torch.softmax(some, 1) for arm, some in self.logits.items()},
        )
        tables = {
            self.heading(arm): reliability_bins(some, self.labels, bins=bins)
            for arm, some in probs.items()
        }
        return reliability_diagram(tables, title=title)

    def __str__(self) -> str:
        lines = [["", *map(self.heading, self.logits)]]
        lines += [
            [label, *(" ".join(filter(None, cell)) for cell in cells)]
            for label, cells in self.cells()
        ]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        return "\n".join(
            [self.data["verdict"], self.origin(), "", *table, "", *self.notes()]
        )

    def html(
        self, title: str = "a classifier", sources: dict[str, Any] | None = None
    ) -> str:
        """The report as one page that needs no other file."""
        image = io.BytesIO()
        self.plot().savefig(image, format="svg", metadata={"Date": None})
        loader = PackageLoader("softmax_temperature.tools")
        environment = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True
        )
        diagram, template = (
            b64encode(image.getvalue()).decode(),
            environment.get_template("calibration.html"),
        )
        return template.render(
            report=self, title=title, diagram=diagram, sources=sources or {}
        )

    _repr_html_ = html

    def heading(self, arm: str) -> str:
        """What a column is called."""
        if arm == "before":
            return "before scaling"
        return (
            f"T = {self.data['temperature'][arm]['temperature']:.4g}, by {arm.upper()}"
        )

    def origin(self) -> str:
        """Which rows were fitted and which reported."""
        fitted, reported = (
            f"{self.data['rows'][part]:,}" for part in ("fitted", "reported")
        )
        return (
            "Temperature fitted on "
            + {
                "all": f"the {reported} rows that the metrics are of: those after scaling flatter.",
                "validation": f"{fitted} validation rows; metrics of the other {reported} rows.",
                "half": f"a random half of every class, {fitted} rows (seed {self.data['settings']['seed']}); "
                f"metrics of the other {reported} rows.",
            }[self.data["settings"]["fit_on"]]
        )

    def cells(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """For each metric its label, and for each arm the value and the interval as
        text.
        """
        frame: Any = self.to_frame()
        rows = []
        for label, key, scale in ROWS:
            numbers = [scale * frame.loc[key, arm].dropna() for arm in self.logits]
            texts = [
                [f"{number:.{2 if scale == 100 else 4}f}" for number in some]
                for some in numbers
            ]
            rows.append(
                (
                    label,
                    [
                        (value, f"[{', '.join(bounds)}]" if bounds else "")
                        for value, *bounds in texts
                    ],
                )
            )
        return rows

    def notes(self) -> list[str]:
        """How to read the numbers."""
        floor = "An ECE near the noise floor, which a perfectly calibrated model shows too, is no evidence."
        what = f"In brackets: 90 % intervals over {(count := self.data['settings']['bootstrap']):,} resamples"
        return [
            floor,
            f"{what}; those of calibration errors are corrected for their bias.",
        ][: 2 if count else 1]


def calibrate(
    logits: Any,
    labels: Any,
    *,
    kind: Kind = "logits",
    validation: tuple[Any, Any] | None = None,
    fit_on: str = "half",
    bins: int = 15,
    bootstrap: int = 1000,
    seed: int = 0,
) -> CalibrationReport:
    """Report how well a classifier is calibrated, before and after temperature scaling.

    Args:
        logits: Shape (n, classes); or (n,) or (n, 1) of a binary classifier, the logit
            (or probability) of class 1. A tensor or an array.
        labels: True classes, shape (n,), whole numbers; or one-hot, shape (n, classes).
        kind: "logits", or "probs" for probabilities, whose logarithms scale the same.
        validation: Logits and labels to fit the temperature on.
        fit_on: Where there is no validation: "half", a random half of every class, the
            report being on the other; or "all", the rows that are reported on, which
            flatters.
        bins: Number of bins of every binned metric and of the diagram.
        bootstrap: Resamples for the 90 % intervals; 0 for none.
        seed: Of the half, the resamples and the noise floor.

    Raises:
        ValueError: If an array or an option is not as stated; probabilities given as
            logits are refused.

    Examples:
        >>> from softmax_temperature import sample_logits
        >>> report = calibrate(*sample_logits(), bootstrap=0)
        >>> report.data["verdict"]
        'Overconfident: divide the logits by 2.72 [2.53, 2.91]; ECE 8.6 → 4.2 %.'
        >>> report.to_frame().loc["accuracy", ("before", "value")].round(4)
        np.float64(0.8752)
    """
    bins = check_count(bins, "bins", least=1)
    bootstrap = check_count(bootstrap, "bootstrap", least=0)
    seed = check_count(seed, "seed", least=0)
    if fit_on not in ("half", "all"):
        raise ArgumentError(
            f"fit_on must be 'half' or 'all', got {fit_on!r}", "Give one of the two."
        )
    rows = checked_logits(logits, labels, kind)
    if validation is not None:
        _check_validation(validation, fit_on)
        fit_on, fitted, reported = (
            "validation",
            checked_logits(*validation, kind, name="validation "),
            rows,
        )
        if fitted[0].shape[1] != rows[0].shape[1]:
            raise ArgumentError(
                f"validation {kind} have {fitted[0].shape[1]} classes, "
                f"{kind} {rows[0].shape[1]}",
                "Give the same classes in both.",
            )
    elif fit_on == "half":
        fitted, reported = split_rows(
            rows, 0.5, generator_for(seed, "calibrate", "half")
        )
    else:
        fitted = reported = rows
    for purpose, (_, some) in (
        ("to fit the temperature on", fitted),
        ("to report on", reported),
    ):
        if len(some) < bins:
            raise ArgumentError(
                f"{kind}: there are {len(some)} rows {purpose}, fewer than {bins} bins",
                "Give more rows, or fewer bins.",
            )
    return _report(
        fitted,
        reported,
        {"fit_on": fit_on, "bins": bins, "bootstrap": bootstrap, "seed": seed},
    )


def _check_validation(validation: Any, fit_on: str) -> None:
    """Refuse what is no pair, and validation rows that `fit_on` says not to use."""
    if not isinstance(validation, tuple | list) or len(validation) != 2:
        raise ArgumentError(
            f"validation must be (logits, labels), got {type(validation).__name__}",
            "Give the two in a tuple.",
        )
    if fit_on == "all":
        raise ArgumentError(
            "fit_on is 'all', and there are validation rows to fit on",
            "Leave one of them out.",
        )


def calibrate_files(
    logits: Path,
    labels: Path | None = None,
    *,
    validation: Path | None = None,
    validation_labels: Path | None = None,
    columns: Sequence[str] = (),
    output: Path,
    html: Path | None = None,
    **options: Any,
) -> CalibrationReport:
    """`calibrate`, whose `options` these are, with files, see `arrays.read_rows`;
    `columns` are the classes of tables.

    Writes report.json, reliability.png and reliability.svg into `output`, and `html`, a
    page that needs no other file.
    """
    kind = options.get("kind", "logits")
    arrays, held_out = read_rows(
        kind,
        logits,
        labels,
        "validation",
        validation,
        validation_labels,
        columns=columns,
    )
    own = (held_out[kind], held_out["labels"]) if held_out else None
    paths = (logits, labels, validation, validation_labels)
    where = ", ".join(str(path) for path in paths if path)
    with user_data(where, "Correct it."):
        report = calibrate(arrays[kind], arrays["labels"], validation=own, **options)
    given = {
        "logits": logits,
        "labels": labels,
        "validation": validation,
        "validation labels": validation_labels,
    }
    sources = {
        role: {"file": path.name, "sha256": digest_of_file(path)}
        for role, path in given.items()
        if path
    }
    with user_data(output, "Choose another place."):
        write_json(output / "report.json", report.data | {"sources": sources})
        save(report.plot(title=logits.name), output, "reliability")
        if html is not None:
            write_text(html, report.html(logits.name, sources))
    return report


def _report(
    fitted: Rows, reported: Rows, settings: dict[str, Any]
) -> CalibrationReport:
    logits, labels = reported
    options = {name: settings[name] for name in ("bins", "bootstrap", "seed")}
    temperature = {
        by: asdict(fit_temperature(*fitted, criterion=by, bins=options["bins"]))
        for by in ("nll", "ece")
    }
    fit = temperature["nll"]
    low, high = (
        (None, None)
        if fit["at_bound"]
        else temperature_interval(*fitted, fit["temperature"])
    )
    fit |= {"low": low, "high": high}
    arms = {"before": logits} | {
        by: apply_temperature(logits, one["temperature"])
        for by, one in temperature.items()
    }
    metrics = {
        arm: calibration_report(some, labels, **options) for arm, some in arms.items()
    }
    differences = (
        paired_difference(arms["nll"], logits, labels, **options)
        if options["bootstrap"]
        else {}
    )
    data: dict[str, Any] = {
        "settings": settings,
        "rows": {"fitted": len(fitted[1]), "reported": len(labels)},
        "temperature": temperature,
        "metrics": metrics,
        "differences": {
            name: difference._asdict() for name, difference in differences.items()
        },
    }
    data["verdict"] = _verdict(fit, metrics, data["differences"].get(ECE))
    return CalibrationReport(data, arms, labels)


def _verdict(
    fit: dict[str, Any], metrics: dict[str, Any], change: dict[str, float] | None
) -> str:
    if fit["at_bound"]:
        word = (
            "separate the labels"
            if fit["temperature"] < 1
            else "say nothing about the labels"
        )
        return f"No temperature fits: the logits {word} (search ended at T = {fit['temperature']:g})."
    value, low, high = fit["temperature"], fit["low"], fit["high"]
    state = (
        "Overconfident"
        if low > 1
        else "Underconfident"
        if high < 1
        else "Neither over- nor underconfident"
    )
    before, after = (100 * metrics[arm][ECE] for arm in ("before", "nll"))
    text = f"{state}: divide the logits by {value:.2f} [{low:.2f}, {high:.2f}]; ECE {before:.1f} → {after:.1f} %"
    if change is not None:
        value, low, high = (100 * change[name] for name in ("value", "low", "high"))
        text += f" (change {value:+.1f} [{low:+.1f}, {high:+.1f}])"
    return f"{text}."
