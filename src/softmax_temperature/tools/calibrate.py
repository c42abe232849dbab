"""How well a classifier is calibrated, before and after temperature scaling: a report on logits in memory."""

from __future__ import annotations

import io
from base64 import b64encode
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
import torch
from jinja2 import Environment, PackageLoader, StrictUndefined
from matplotlib.figure import Figure
from torch import Tensor

from softmax_temperature.data.sampling import generator_for, stratified_holdout
from softmax_temperature.metrics import calibration_report, paired_difference, reliability_bins
from softmax_temperature.metrics.checks import check_count
from softmax_temperature.metrics.reliability import reliability_diagram
from softmax_temperature.scaling import apply_temperature, fit_temperature, temperature_interval

Kind = Literal["logits", "probs"]
FIT_ON = ("validation", "half", "all")
SUM_TOLERANCE = 1e-2  # Probabilities that were rounded to three digits miss a sum of one by less.
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
    """Metrics before and after scaling, with 90 % intervals.

    Attributes:
        data: Everything as JSON values, in fractions and nats: `temperature` (by criterion: temperature, value,
            at_bound, low, high), `metrics` (before, nll, ece), `differences` (nll minus before), `rows`, `settings`,
            `verdict`.
        logits: Of the reported rows, by arm: before, nll, ece.
        labels: Of the reported rows.
    """

    data: dict[str, Any]
    logits: dict[str, Tensor]
    labels: Tensor

    @property
    def temperature(self) -> float:
        """The temperature by likelihood: divide logits by it."""
        return float(self.data["temperature"]["nll"]["temperature"])

    def to_frame(self) -> pd.DataFrame:
        """One row for each metric; value, low and high of each arm, in fractions and nats."""
        columns = {}
        for arm, values in self.data["metrics"].items():
            columns[arm, "value"] = {key: values[key] for _, key, _ in ROWS}
            for place, bound in enumerate(("low", "high")):
                columns[arm, bound] = {key: bounds[place] for key, bounds in values["intervals"].items()}
        return pd.DataFrame(columns).reindex([key for _, key, _ in ROWS])

    def plot(self, title: str | None = None) -> Figure:
        """Reliability diagrams before and after scaling, with the number of samples in each bin."""
        bins = self.data["settings"]["bins"]
        tables = {
            self._heading(arm): reliability_bins(torch.softmax(logits, dim=1), self.labels, bins=bins)
            for arm, logits in self.logits.items()
        }
        return reliability_diagram(tables, title=title)

    def summary(self) -> str:
        """The report as text, the verdict first."""
        lines = [["", *map(self._heading, self.logits)]]
        lines += [[label, *(" ".join(filter(None, cell)) for cell in cells)] for label, cells in self._cells()]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        table = ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]
        return "\n".join([self.data["verdict"], self._origin(), "", *table, "", *self._notes()])

    def html(self, title: str = "a classifier", sources: dict[str, Any] | None = None) -> str:
        """The report as one page that needs no other file."""
        image = io.BytesIO()
        self.plot().savefig(image, format="svg", metadata={"Date": None})
        environment = Environment(
            loader=PackageLoader("softmax_temperature.tools"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
        )
        return environment.get_template("calibration.html").render(
            title=title,
            verdict=self.data["verdict"],
            origin=self._origin(),
            headings=[self._heading(arm) for arm in self.logits],
            rows=self._cells(),
            notes=self._notes(),
            diagram=b64encode(image.getvalue()).decode(),
            sources=sources or {},
            settings=self.data["settings"],
        )

    def _repr_html_(self) -> str:
        return self.html()

    def __str__(self) -> str:
        return self.summary()

    def _heading(self, arm: str) -> str:
        if arm == "before":
            return "before scaling"
        return f"T = {self.data['temperature'][arm]['temperature']:.4g}, by {arm.upper()}"

    def _origin(self) -> str:
        rows, settings = self.data["rows"], self.data["settings"]
        fitted, reported = f"{rows['fitted']:,}", f"{rows['reported']:,}"
        return {
            "validation": f"Temperature fitted on the {fitted} validation rows; metrics of the other {reported} rows.",
            "half": f"Temperature fitted on a random half of every class, {fitted} rows (seed {settings['seed']}); "
            f"metrics of the other {reported} rows.",
            "all": f"Temperature fitted on the {reported} rows that the metrics are of: those after scaling flatter.",
        }[settings["fit_on"]]

    def _cells(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """For each metric its label, and for each arm the value and the interval as text."""
        arms = self.data["metrics"].values()
        return [(label, [_cell(values, key, scale) for values in arms]) for label, key, scale in ROWS]

    def _notes(self) -> list[str]:
        notes = ["An ECE near the noise floor, which a perfectly calibrated model shows too, is no evidence."]
        if bootstrap := self.data["settings"]["bootstrap"]:
            notes.append(f"In brackets: 90 % intervals over {bootstrap:,} resamples; those of calibration errors are")
            notes[-1] += " corrected for their bias."
        return notes


def calibrate(
    logits: Any,
    labels: Any,
    *,
    kind: Kind = "logits",
    validation: tuple[Any, Any] | None = None,
    fit_on: str | None = None,
    bins: int = 15,
    bootstrap: int = 1000,
    seed: int = 0,
) -> CalibrationReport:
    """Report how well a classifier is calibrated, before and after temperature scaling.

    Args:
        logits: Shape (n, classes); or (n,) or (n, 1) of a binary classifier, the logit (or probability) of class 1.
            A tensor or an array.
        labels: True classes, shape (n,), whole numbers; or one-hot, shape (n, classes).
        kind: "logits", or "probs" for probabilities, whose logarithms scale the same.
        validation: Logits and labels to fit the temperature on.
        fit_on: "validation"; "half", a random half of every class, the report being on the other; or "all", the rows
            that are reported on. By default "validation" where there is, else "half".
        bins: Number of bins of every binned metric and of the diagram.
        bootstrap: Resamples for the 90 % intervals; 0 for none.
        seed: Of the half, the resamples and the noise floor.

    Raises:
        ValueError: If an array or an option is not as stated; probabilities given as logits are refused.

    Example:
        >>> import torch
        >>> labels = torch.arange(200) % 2
        >>> logits = 3 * torch.nn.functional.one_hot(labels, 2) + torch.randn(200, 2, generator=torch.manual_seed(0))
        >>> calibrate(logits, labels, bins=5, bootstrap=0).data["settings"]["fit_on"]
        'half'
    """
    check_count(bins, "bins", least=1)
    fit_on = fit_on or ("half" if validation is None else "validation")
    if fit_on not in FIT_ON or (fit_on == "validation") != (validation is not None):
        raise ValueError(f"fit_on must be one of {FIT_ON}, 'validation' where that is given, got {fit_on!r}")
    rows = checked(logits, labels, kind)
    if validation is not None:
        fitted, reported = checked(*validation, kind, name="validation "), rows
        if fitted[0].shape[1] != rows[0].shape[1]:
            raise ValueError(f"validation logits have {fitted[0].shape[1]} classes, logits {rows[0].shape[1]}")
    elif fit_on == "half":
        held_out = torch.from_numpy(stratified_holdout(rows[1].numpy(), 0.5, generator_for(seed, "calibrate", "half")))
        fitted, reported = (rows[0][~held_out], rows[1][~held_out]), (rows[0][held_out], rows[1][held_out])
    else:
        fitted = reported = rows
    for purpose, (_, some) in (("to fit the temperature on", fitted), ("to report on", reported)):
        if len(some) < bins:
            raise ValueError(f"logits: there are {len(some)} rows {purpose}, fewer than {bins} bins")
    return _report(fitted, reported, {"fit_on": fit_on, "bins": bins, "bootstrap": bootstrap, "seed": seed})


def _report(
    fitted: tuple[Tensor, Tensor], reported: tuple[Tensor, Tensor], settings: dict[str, Any]
) -> CalibrationReport:
    logits, labels = reported
    options = {name: settings[name] for name in ("bins", "bootstrap", "seed")}
    temperature = {by: asdict(fit_temperature(*fitted, criterion=by, bins=options["bins"])) for by in ("nll", "ece")}
    by_likelihood = temperature["nll"]
    low, high = (None, None)
    if not by_likelihood["at_bound"]:
        low, high = temperature_interval(*fitted, by_likelihood["temperature"])
    by_likelihood |= {"low": low, "high": high}
    scaled = {by: apply_temperature(logits, fit["temperature"]) for by, fit in temperature.items()}
    arms = {"before": logits, **scaled}
    metrics = {arm: calibration_report(some, labels, **options) for arm, some in arms.items()}
    differences = paired_difference(scaled["nll"], logits, labels, **options) if options["bootstrap"] else {}
    data: dict[str, Any] = {
        "settings": settings,
        "rows": {"fitted": len(fitted[1]), "reported": len(labels)},
        "temperature": temperature,
        "metrics": metrics,
        "differences": {name: difference._asdict() for name, difference in differences.items()},
    }
    data["verdict"] = _verdict(by_likelihood, metrics, data["differences"].get(ECE))
    return CalibrationReport(data, arms, labels)


def _verdict(fit: dict[str, Any], metrics: dict[str, Any], change: dict[str, float] | None) -> str:
    """One sentence: over- or underconfident, the temperature, and what it does to the ECE."""
    if fit["at_bound"]:
        word = "separate the labels" if fit["temperature"] < 1 else "say nothing about the labels"
        return f"No temperature fits: the logits {word} (search ended at T = {fit['temperature']:g})."
    value, low, high = fit["temperature"], fit["low"], fit["high"]
    state = "Overconfident" if low > 1 else "Underconfident" if high < 1 else "Neither over- nor underconfident"
    before, after = (100 * metrics[arm][ECE] for arm in ("before", "nll"))
    text = f"{state}: divide the logits by {value:.2f} [{low:.2f}, {high:.2f}]; ECE {before:.1f} → {after:.1f} %"
    if change is None:
        return f"{text}."
    return f"{text} (change {100 * change['value']:+.1f} [{100 * change['low']:+.1f}, {100 * change['high']:+.1f}])."


def checked(logits: Any, labels: Any, kind: str = "logits", *, name: str = "") -> tuple[Tensor, Tensor]:
    """Logits, shape (n, classes), float64, and classes, shape (n,), int64, of what a user calls so."""
    values = np.asarray(logits.detach().cpu().double() if isinstance(logits, Tensor) else logits)
    if values.dtype.kind not in "fiu" or values.ndim not in (1, 2) or not len(values):
        raise ValueError(f"{name}logits must be numbers of shape (n, classes), got {values.dtype} {values.shape}")
    values = values.reshape(len(values), -1).astype(np.float64)
    sound = np.abs(values) <= np.finfo(np.float32).max  # Far beyond it the search would overflow.
    if not sound.all():
        row, column = np.argwhere(~sound)[0].tolist()
        raise ValueError(f"{name}logits must be finite, got {values[row, column]} in row {row}, class {column}")
    values = _log_probs(values, name) if kind == "probs" else _checked_logits(values, name)
    classes = np.asarray(labels.detach().cpu() if isinstance(labels, Tensor) else labels)
    if classes.shape == values.shape and classes.ndim == 2 and ((classes == 0) | (classes == 1)).all():
        classes = classes.argmax(axis=1)
    if classes.shape not in ((len(values),), (len(values), 1)):
        raise ValueError(f"{name}labels have shape {classes.shape} for {len(values)} rows of logits")
    classes = classes.reshape(-1)
    if classes.dtype.kind not in "fiub" or not (classes == np.floor(classes)).all():
        raise ValueError(f"{name}labels must be whole numbers, the classes counted from 0, got {classes.dtype}")
    low, high = int(classes.min()), int(classes.max())
    if low < 0 or high >= values.shape[1]:
        raise ValueError(f"{name}labels must be in [0, {values.shape[1]}), got {low if low < 0 else high}")
    if low == high:
        raise ValueError(f"{name}labels are all of one class, {low}")
    return torch.from_numpy(values), torch.from_numpy(classes.astype(np.int64))


def _checked_logits(values: Any, name: str) -> Any:
    if values.shape[1] == 1:
        return np.hstack([np.zeros_like(values), values])
    if values.min() >= 0 and np.abs(values.sum(axis=1) - 1).max() <= SUM_TOLERANCE:
        raise ValueError(f"{name}logits are probabilities (rows sum to one): say so (kind='probs', --probs)")
    return values


def _log_probs(values: Any, name: str) -> Any:
    if values.shape[1] == 1:
        values = np.hstack([1 - values, values])
    if values.min() < 0 or np.abs(values.sum(axis=1) - 1).max() > SUM_TOLERANCE:
        raise ValueError(f"{name}probs must be rows of numbers in [0, 1] that sum to one")
    return np.log(np.clip(values, np.finfo(np.float32).tiny, None))


def _cell(values: dict[str, Any], key: str, scale: int) -> tuple[str, str]:
    digits = 2 if scale == 100 else 4
    value, *bounds = (f"{scale * number:.{digits}f}" for number in (values[key], *values["intervals"].get(key, ())))
    return value, f"[{', '.join(bounds)}]" if bounds else ""
