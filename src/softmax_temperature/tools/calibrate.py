"""Report on a classifier's calibration, before and after temperature scaling."""

from __future__ import annotations

import math
import os
import warnings
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from softmax_temperature.data.seeds import generator_for
from softmax_temperature.data.splits import random_holdout
from softmax_temperature.metrics.calibration import reliability_bins
from softmax_temperature.metrics.checks import (
    ArgumentError,
    check_bootstrap,
    check_count,
)
from softmax_temperature.metrics.class_order import (
    CHECK_ORDER,
    no_better_than_chance,
    predictions_without_labels,
    threshold_hint,
)
from softmax_temperature.metrics.report import SCORES, ArmStatistics
from softmax_temperature.papers.shared.figures import encoded, encoded_untrimmed
from softmax_temperature.runner.artifacts import (
    atomic_file,
    digest_of_file,
    write_json,
    write_text,
)
from softmax_temperature.runner.errors import InputError
from softmax_temperature.scaling import (
    TemperatureFit,
    check_two_classes,
    sandwich_interval,
    search_temperature,
)
from softmax_temperature.tools.advice import (
    CHECK_COLUMNS,
    Advice,
    Evidence,
    advise,
    three_digits,
)
from softmax_temperature.tools.arrays import (
    Rows,
    as_numpy,
    check_given,
    check_no_copies,
    check_other_rows,
    check_same_columns,
    checked_logits,
    read_rows,
    shared_rows,
    split_rows,
    user_data,
)
from softmax_temperature.tools.decisive_rows import (
    decisive_rows,
    explained_rows,
    place_of,
)
from softmax_temperature.tools.label_leaks import CHECK_TRUE_LABELS
from softmax_temperature.tools.label_maps import (
    IGNORE_INDEX,
    check_map_labels,
    labelled_rows,
)
from softmax_temperature.tools.oversampled_rows import oversampled
from softmax_temperature.tools.reliability import reliability_diagram

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["logits", "probs"]
# Rows of the printed table: the label, the metric's name, and the factor that converts
# the metric to the unit shown.
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
NLL = "negative_log_likelihood"
# The quantile of the normal distribution that gives 90 % intervals.
_NORMAL_90 = 1.645
# The number of logits up to which one thread is as fast as several threads.
SMALL = 100_000
# For the top-5 accuracy, a row counts as correct if its label is among this many
# highest-ranked classes. With no more classes than this, the accuracy is 1.
TOP = 5


class ScaledLogits(Mapping[str, Tensor]):
    """Float64 logits (n, classes), keyed by arm and divided by the arm's temperature.

    The division happens on access, because a language model's logits are too large to
    keep a copy for every arm.
    """

    def __init__(self, logits: Tensor, temperatures: dict[str, float]) -> None:
        self._logits = logits
        self._temperatures = temperatures

    def __getitem__(self, arm: str) -> Tensor:
        if arm == "before":
            return self._logits.double()
        exact = self._logits.to(torch.float64, copy=True)
        return exact.div_(self._temperatures[arm])

    def __iter__(self) -> Iterator[str]:
        return iter(("before", *self._temperatures))

    def __len__(self) -> int:
        return 1 + len(self._temperatures)


@dataclass(frozen=True)
class CalibrationReport:
    """Metrics before and after temperature scaling, with 90 % intervals by default.

    A report can be printed, shown in a notebook, plotted (`plot`), or converted to a
    data frame (`to_frame`).

    Attributes:
        data: The report as JSON values, in fractions and nats. `temperature` has, for
            each criterion, the fitted `temperature`, the `value` of the criterion
            there, and the flags `at_bound` and `separable`; for "nll" it also has the
            ends `low` and `high` of the interval, which are None if infinite or not
            defined. `metrics` has the metrics of each arm (before, nll and ece).
            `differences` are the metrics of nll minus those of before. `rows` has the
            numbers of `fitted` and `reported` rows, and of `shared` rows if validation
            rows are also reported. `settings` has the options. `advice` is "scale" or
            "leave" (the logits), and `verdict` is the advice as a sentence.
        logits: Logits of the reported rows, keyed by arm: before, nll and ece.
        labels: Labels of the reported rows.
    """

    data: dict[str, Any]
    logits: ScaledLogits
    labels: Tensor

    @property
    def temperature(self) -> float:
        """The temperature that minimises the NLL, by which logits are to be divided."""
        return float(self.data["temperature"]["nll"]["temperature"])

    def to_frame(self) -> pd.DataFrame:
        """A data frame with a row per metric.

        Each arm has three columns: the metric's value, and the lower and the upper end
        of its interval.
        """
        import pandas as pd

        shown = [key for _, key, _ in self._shown_rows()]
        columns = {}
        for arm, values in self.data["metrics"].items():
            columns[arm, "value"] = {key: values[key] for key in shown}
            for place, bound in enumerate(("low", "high")):
                columns[arm, bound] = {
                    key: bounds[place] for key, bounds in values["intervals"].items()
                }
        return pd.DataFrame(columns, index=shown)

    def plot(self, title: str | None = None) -> Figure:
        """Plot reliability diagrams of each arm, with the samples in each bin."""
        bins = self.data["settings"]["bins"]
        tables = {}
        for arm in self.logits:
            probs = torch.softmax(self.logits[arm], dim=1)
            tables[self.heading(arm)] = reliability_bins(probs, self.labels, bins=bins)
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
        """The report as one self-contained HTML page, with the heading `title`."""
        from jinja2 import Environment, PackageLoader, StrictUndefined

        loader = PackageLoader("softmax_temperature.tools")
        environment = Environment(
            loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True
        )
        template = environment.get_template("calibration.html")
        diagram = b64encode(encoded(self.plot(), "svg")).decode()
        return template.render(
            report=self, title=title, diagram=diagram, sources=sources or {}
        )

    _repr_html_ = html

    def heading(self, arm: str) -> str:
        """The heading of the column of `arm`."""
        if arm == "before":
            return "before scaling"
        fit = self.data["temperature"][arm]
        bound = " (end of the search)" if fit["at_bound"] else ""
        return f"T = {three_digits(fit['temperature'])}{bound}, by {arm.upper()}"

    def origin(self) -> str:
        """A sentence about the rows used for the temperature and for the metrics."""
        fitted = f"{self.data['rows']['fitted']:,}"
        reported = f"{self.data['rows']['reported']:,}"
        fit_on = self.data["settings"]["fit_on"]
        if fit_on == "all":
            return (
                f"Temperature and metrics use the same {reported} rows, so the metrics "
                "after scaling are too good."
            )
        if fit_on == "validation":
            return (
                f"Temperature fitted on {fitted} validation rows; "
                f"metrics of the other {reported} rows.{self._shared()}"
            )
        return (
            f"Temperature fitted on a random half, {fitted} rows "
            f"(seed {self.data['settings']['seed']}); "
            f"metrics of the other {reported} rows."
        )

    def _shared(self) -> str:
        """A sentence about rows that are both fitted and reported; "" if none are."""
        shared = self.data["rows"].get("shared", 0)
        if not shared:
            return ""
        return (
            f" {shared:,} of these rows are also validation rows, so the metrics after "
            "scaling are somewhat too good."
        )

    def cells(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Each metric's label, with the value and interval of each arm as text."""
        return [
            (label, [self._cell(arm, key, scale) for arm in self.logits])
            for label, key, scale in self._shown_rows()
        ]

    def _shown_rows(self) -> list[tuple[str, str, int]]:
        """`ROWS` without the top-5 accuracy if it is always 1."""
        few_classes = self.data["metrics"]["before"]["classes"] <= TOP
        return [row for row in ROWS if not (few_classes and row[1] == "top5_accuracy")]

    def _cell(self, arm: str, key: str, scale: int) -> tuple[str, str]:
        """Return a metric's value and interval as text; "" if there is no interval."""
        metrics = self.data["metrics"][arm]
        decimals = 2 if scale == 100 else 4
        value, *bounds = (
            f"{scale * number:.{decimals}f}"
            for number in (metrics[key], *metrics["intervals"].get(key, ()))
        )
        return value, f"[{', '.join(bounds)}]" if bounds else ""

    def notes(self) -> list[str]:
        """Sentences that explain the numbers."""
        floor = (
            "A perfectly calibrated model has an ECE near the noise floor, so such an "
            "ECE is no evidence of miscalibration."
        )
        count = self.data["settings"]["bootstrap"]
        if not count:
            return [floor]
        return [
            floor,
            f"In brackets: 90 % intervals; for scores, over {count:,} resamples.",
            (
                "The interval of a calibration error is for the true error, which on "
                "average is lower than the plain error."
            ),
            (
                "The interval of a change is conservative: it may reach further than "
                "the error before scaling allows."
            ),
            "The MCE has no interval: none that we tried has the right coverage.",
        ]


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
    ignore_index: int = IGNORE_INDEX,
) -> CalibrationReport:
    """Report how well a classifier is calibrated, before and after temperature scaling.

    Args:
        logits: A tensor or an array of shape (n, classes). For a binary classifier, the
            shape may also be (n,) or (n, 1), with the logit (or probability) of the
            second class. For images with a class per pixel, the shape is
            (n, classes, height, width). For a language model, it is
            (n, classes, tokens): the model's output needs `movedim(-1, 1)`. A logit of
            -inf masks a class in its row.
        labels: The true classes: whole numbers of shape (n,), one-hot rows of shape
            (n, classes), or label maps of shape (n, height, width).
        kind: "logits", or "probs" for probabilities, whose logarithms serve as logits.
        validation: Logits and labels to fit the temperature on.
        fit_on: The rows to fit on if there are no validation rows. "half" fits on a
            random half of the rows (of the images, if the pixels of several images are
            classified) and reports on the other half; "all" fits and reports on all
            rows, which makes the calibration look too good.
        bins: Number of bins of every binned metric and of the diagram.
        bootstrap: Number of resamples for the 90 % intervals, at least 19; 0 for no
            intervals.
        seed: Seed of the random half, the resamples and the noise floor.
        ignore_index: Label of rows and pixels without a class, which are left out.

    Raises:
        ValueError: If an array or an option is malformed, there are fewer rows than
            bins, all rows to fit on have the same label, the validation rows are mostly
            the same as the rows to report on, probabilities are passed as logits, or
            the labels show that the classes are in a different dimension or order.

    Examples:
        >>> from softmax_temperature import sample_logits
        >>> report = calibrate(*sample_logits(), bootstrap=0)
        >>> verdict, change = report.data["verdict"].split(" (")
        >>> verdict
        'Overconfident: divide the logits by 2.60 [2.41, 2.80]; ECE 11.2 -> 4.7 %'
        >>> change
        'change -6.5 [-11.6, -4.0]).'
        >>> report.to_frame().loc["accuracy", ("before", "value")].round(4)
        np.float64(0.8427)
    """
    bins = check_count(bins, "bins", least=1)
    bootstrap = check_bootstrap(bootstrap)
    seed = check_count(seed, "seed", least=0)
    if fit_on not in ("half", "all"):
        raise ArgumentError(
            f"fit_on must be 'half' or 'all', got {fit_on!r}", "Give one of the two."
        )
    ignore_index = check_count(ignore_index, "ignore_index", least=-(2**63))
    check_given(logits, labels, kind)
    if validation is not None:
        _check_validation(validation, fit_on)
        check_given(*validation, f"validation {kind}", "validation labels")
        check_same_columns(logits, validation[0], f"validation {kind}")
        fit_on = "validation"
        fitted, reported = _given_rows(logits, labels, kind, validation, ignore_index)
        reported = _kept(reported)
    elif fit_on == "half":
        fitted, reported = _halves(logits, labels, kind, ignore_index, seed)
    else:
        fitted = _kept(_rows((logits, labels), kind, ignore_index))
        reported = fitted
    kind_of_rows = "validation rows" if validation is not None else "rows"
    purposes = {
        f"{kind_of_rows} to fit the temperature on": fitted,
        "rows to report on": reported,
    }
    for purpose, (_, classes) in purposes.items():
        if len(classes) < bins:
            raise ArgumentError(
                f"{kind}: only {len(classes)} {purpose}, fewer than the {bins} bins",
                "Give more rows, or fewer bins.",
            )
    _check_fitted_classes(fitted[1], reported[1], fit_on)
    settings = {"fit_on": fit_on, "bins": bins, "bootstrap": bootstrap, "seed": seed}
    report = _report(fitted, reported, settings)
    source, prefix = (
        (logits, "") if validation is None else (validation[0], "validation ")
    )
    report = _naming_decisive_rows(report, fitted, source, prefix)
    if as_numpy(logits).ndim > 2:
        return report  # Pixels of the same colour have the same scores.
    return _naming_copies(report, fitted, reported)


def _check_validation(validation: Any, fit_on: str) -> None:
    """Refuse `validation` if it is not a pair, or if `fit_on` is "all"."""
    if not isinstance(validation, tuple | list) or len(validation) != 2:
        raise ArgumentError(
            f"validation must be (logits, labels), got {type(validation).__name__}",
            "Pass both in a tuple.",
        )
    if fit_on == "all":
        raise ArgumentError(
            "fit_on='all' cannot be combined with validation rows",
            "Omit one of them.",
        )


def _check_fitted_classes(fitted: Tensor, reported: Tensor, fit_on: str) -> None:
    """Refuse to fit on labels of a single class; the error says which rows they are."""
    low, high = torch.aminmax(fitted)
    if bool(low != high):
        return
    if fit_on == "validation":
        raise ArgumentError(
            f"validation labels are all {int(low)}, and one class does not identify a "
            "temperature",
            "Give validation rows of at least two classes.",
        )
    if fit_on == "half" and bool((reported != low).any()):
        raise ArgumentError(
            f"labels of the random half to fit the temperature on, {len(fitted)} rows, "
            f"are all {int(low)}, and one class does not identify a temperature",
            "Give more rows of the other classes, or pass fit_on='all'.",
        )
    check_two_classes(fitted)


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
    """Call `calibrate` with arrays read from files, and write the report.

    Args:
        logits: File of the logits; the module `files` lists the formats.
        labels: File of the labels, if they are not in the file of the logits.
        validation: File of logits and labels to fit the temperature on.
        validation_labels: File of the validation labels, if they are separate.
        columns: Names and patterns that select the class columns in tables.
        output: Folder for report.json, reliability.png and reliability.svg.
        html: File for the report as a self-contained page.
        **options: Options of `calibrate`.

    Raises:
        InputError: If a file or its content is wrong, or a file cannot be written.
    """
    inputs = [path for path in (logits, labels, validation, validation_labels) if path]
    _check_places(output, html, inputs)
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
    if held_out and "fit_on" in options:
        raise InputError(
            f"holds validation_{kind}, which cannot be combined with --fit-on",
            where=str(logits),
            remedy="Omit --fit-on, or save this file without its validation arrays.",
        )
    validation_rows = (held_out[kind], held_out["labels"]) if held_out else None
    paths = (logits, labels, validation, validation_labels)
    where = ", ".join(str(path) for path in paths if path)
    with user_data(where, "Correct it."), _threads_for(arrays[kind].size):
        report = calibrate(
            arrays[kind], arrays["labels"], validation=validation_rows, **options
        )
    files = {
        "logits": logits,
        "labels": labels,
        "validation": validation,
        "validation labels": validation_labels,
    }
    sources = {
        role: {"file": _shown_name(path), "sha256": digest_of_file(path)}
        for role, path in files.items()
        if path
    }
    with user_data(output, "Choose another place."), warnings.catch_warnings():
        # The file's name, which the figure shows, may have characters that the font
        # lacks, such as Chinese ones.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        write_json(output / "report.json", report.data | {"sources": sources})
        diagram = encoded_untrimmed(report.plot(title=_shown_name(logits)))
        for ending, content in diagram.items():
            with atomic_file(output / f"reliability.{ending}") as file:
                file.write(content)
        if html is not None:
            write_text(html, report.html(_shown_name(logits), sources))
    return report


def _shown_name(path: Path) -> str:
    """The file name of `path` as text, with bytes that are not UTF-8 escaped."""
    return os.fsencode(path.name).decode(errors="backslashreplace")


def _check_places(output: Path, html: Path | None, inputs: Sequence[Path]) -> None:
    """Refuse paths that cannot be written, and a page that would replace an input."""
    for place, name in ((output, "--output"), (html, "--html")):
        if place is None:
            continue
        for parent in (place, *place.parents):
            if parent.exists():
                break
        if place is html and place.exists():
            if any(path.exists() and place.samefile(path) for path in inputs):
                raise InputError(
                    "is one of the files to read",
                    where=f"{name} {place}",
                    remedy="Give another path for the page.",
                )
        elif not parent.is_dir():
            raise InputError(
                f"{'is' if parent == place else f'{parent} is'} a file, not a folder",
                where=f"{name} {place}",
                remedy="Choose another place.",
            )


@contextmanager
def _threads_for(numbers: int) -> Iterator[None]:
    """Use one thread in the block if `numbers` is less than `SMALL`.

    With so few numbers, starting more threads costs more time than it saves.
    """
    threads = torch.get_num_threads()
    if numbers < SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _rows(
    arrays: tuple[Any, Any], kind: Kind, ignore_index: int, *, name: str = ""
) -> Rows:
    """Check logits and labels, and return them without rows that have no class.

    If the logits are those of pixels, each pixel becomes a row.
    """
    values, classes = labelled_rows(*arrays, ignore_index, name=name)
    tokens = as_numpy(arrays[0]).ndim == 3
    rows = checked_logits(values, classes, kind, name=name, tokens=tokens)
    check_no_copies(*rows, f"{name}{kind}")
    return rows


def _kept(rows: Rows) -> Rows:
    """The rows, with a copy of the logits, because the user may change the original."""
    values, classes = rows
    return values.clone(), classes


def _given_rows(
    logits: Any,
    labels: Any,
    kind: Kind,
    validation: tuple[Any, Any],
    ignore_index: int,
) -> tuple[Rows, Rows]:
    """Check and return the rows to fit the temperature on, and those to report on."""
    reported = _rows((logits, labels), kind, ignore_index)
    fitted = _rows(validation, kind, ignore_index, name="validation ")
    values = reported[0]
    validation_values = fitted[0]
    if validation_values.shape[1] != values.shape[1]:
        raise ArgumentError(
            f"validation {kind} have {validation_values.shape[1]} classes, but "
            f"{kind} have {values.shape[1]}",
            "Use the same classes in both.",
        )
    tables = [(validation_values, values)]
    if kind == "probs":
        # The values are logarithms, which do not show that probabilities were rounded.
        tables.append((validation_values.exp(), values.exp()))
    for pair in tables:
        check_other_rows(
            *pair,
            names=(f"validation {kind}", f"{kind} to report on"),
            remedy="Give other rows, or omit the validation rows.",
        )
    return fitted, reported


def _halves(
    logits: Any, labels: Any, kind: Kind, ignore_index: int, seed: int
) -> tuple[Rows, Rows]:
    """Check the rows, and split them into two random halves.

    If there are several images, all pixels of an image are in the same half.

    Returns:
        The half to fit the temperature on, and the half to report on.
    """
    generator = generator_for(seed, "calibrate", "half")
    images = as_numpy(logits)
    if images.ndim > 2:
        maps = as_numpy(labels)
        check_map_labels(images, maps)
        labelled = (maps != ignore_index).reshape(len(maps), -1).any(axis=1)
        if not labelled.all():
            images = images[labelled]
            maps = maps[labelled]
    if images.ndim > 2 and len(images) > 1:
        # The pixels of an image are correlated, so put each image into one half only.
        half = random_holdout(np.zeros(len(images), np.int64), 0.5, generator)
        fitted = _rows((images[~half], maps[~half]), kind, ignore_index)
        reported = _rows((images[half], maps[half]), kind, ignore_index)
        return fitted, reported
    # Do not assign the rows to a name, so that they are freed before the return: a
    # language model's rows are large.
    return split_rows(_rows((logits, labels), kind, ignore_index), 0.5, generator)


def _report(
    fitted: Rows, reported: Rows, settings: dict[str, Any]
) -> CalibrationReport:
    logits, labels = reported
    options = {name: settings[name] for name in ("bins", "bootstrap", "seed")}
    temperature = {
        by: asdict(search_temperature(*fitted, criterion=by, bins=options["bins"]))
        for by in ("nll", "ece")
    }
    fit = temperature["nll"]
    fit |= {"low": None, "high": None}
    if not fit["at_bound"]:
        fit["low"], fit["high"] = sandwich_interval(*fitted, fit["temperature"])
    temperatures = {by: result["temperature"] for by, result in temperature.items()}
    arms = ScaledLogits(logits, temperatures)
    draws = {name: options[name] for name in ("bootstrap", "seed")}
    statistics = {
        arm: _statistics(logits, labels, temperatures.get(arm, 1.0), options)
        for arm in arms
    }
    metrics = {arm: of_arm.report(**draws) for arm, of_arm in statistics.items()}
    scaled = statistics["nll"]
    unscaled = statistics["before"]
    differences = {}
    if options["bootstrap"]:
        differences = scaled.differences_from(unscaled, **draws)
    data: dict[str, Any] = {
        "settings": settings,
        "rows": _numbers_of_rows(fitted, reported, settings["fit_on"]),
        "temperature": temperature,
        "metrics": metrics,
        "differences": {
            name: difference._asdict() for name, difference in differences.items()
        },
    }
    scale, data["verdict"] = _advice(fit | settings, metrics, scaled, unscaled)
    if unlabelled := predictions_without_labels(labels, logits):
        data["verdict"] += f" {unlabelled}"
    elif hint := threshold_hint(labels, logits):
        data["verdict"] += f" {hint}"
    # Advice that already says to check the columns needs no second hint.
    elif CHECK_COLUMNS not in data["verdict"] and no_better_than_chance(labels, logits):
        accuracy = f"{100 * metrics['before']['accuracy']:.1f}"
        data["verdict"] += (
            f" The accuracy, {accuracy} %, is no better than chance: {CHECK_ORDER}."
        )
    data["advice"] = "scale" if scale else "leave"
    if fit["high"] == math.inf:
        # Write null instead, because JSON has no infinity.
        fit["high"] = None
    return CalibrationReport(data, arms, labels)


def _naming_decisive_rows(
    report: CalibrationReport, fitted: Rows, source: Any, prefix: str
) -> CalibrationReport:
    """Name in the report's verdict any few rows that alone decide the temperature.

    Args:
        report: The report.
        fitted: The rows on which the temperature was fitted.
        source: The user's logits that hold these rows.
        prefix: The text before "row" in messages.
    """
    names = (field.name for field in fields(TemperatureFit))
    of_fit = report.data["temperature"]["nll"]
    fit = TemperatureFit(**{name: of_fit[name] for name in names})
    rows, reason = decisive_rows(*fitted, fit)
    if not len(rows):
        return report
    place = prefix + place_of(fitted[0][rows[0]], source)
    verdict = explained_rows(rows, reason, place)
    return replace(report, data=report.data | {"advice": "leave", "verdict": verdict})


def _naming_copies(
    report: CalibrationReport, fitted: Rows, reported: Rows
) -> CalibrationReport:
    """Return the report; if rows were drawn with replacement, its verdict says so."""
    fit_on = report.data["settings"]["fit_on"]
    if fit_on == "validation":
        verdict = oversampled([fitted], "validation ") or oversampled([reported])
    else:
        verdict = oversampled([reported] if fit_on == "all" else [fitted, reported])
    if not verdict:
        return report
    return replace(report, data=report.data | {"advice": "leave", "verdict": verdict})


def _numbers_of_rows(fitted: Rows, reported: Rows, fit_on: str) -> dict[str, int]:
    numbers = {"fitted": len(fitted[1]), "reported": len(reported[1])}
    shared = shared_rows(fitted[0], reported[0]) if fit_on == "validation" else 0
    return numbers | ({"shared": shared} if shared else {})


def _statistics(
    logits: Tensor, labels: Tensor, temperature: float, options: dict[str, int]
) -> ArmStatistics:
    return ArmStatistics.of(
        logits,
        labels,
        options["bins"],
        intervals=options["bootstrap"] > 0,
        temperature=temperature,
    )


def _advice(
    fit: dict[str, Any],
    metrics: dict[str, Any],
    scaled: ArmStatistics,
    unscaled: ArmStatistics,
) -> Advice:
    if fit["at_bound"]:
        state = "say nothing about the labels"
        logits = "validation logits" if fit["fit_on"] == "validation" else "logits"
        if fit["separable"]:
            state = "separate the labels"
        sentence = (
            f"No temperature fits: the {logits} {state} (search ended at T = "
            f"{fit['temperature']:g})."
        )
        hint = CHECK_TRUE_LABELS if fit["separable"] else CHECK_COLUMNS
        return Advice(scale=False, sentence=f"{sentence} {hint}")
    change = scaled.expected_change_from(unscaled)
    nll_changes = (scaled.scores - unscaled.scores)[:, SCORES.index(NLL)]
    nll_change = nll_changes.mean().item()
    rows = len(nll_changes)
    margin = math.inf  # One row has no spread.
    if rows > 1:
        margin = _NORMAL_90 * nll_changes.std().item() / math.sqrt(rows)
    return advise(
        Evidence(
            temperature=fit["temperature"],
            low=fit["low"],
            high=fit["high"],
            before=metrics["before"][ECE],
            after=metrics["nll"][ECE],
            change=(change.low, change.high),
            noise_floor=metrics["before"]["noise_floor"],
            before_low=unscaled.errors[ECE].interval[0],
            nll_change=nll_change,
            nll_interval=(nll_change - margin, nll_change + margin),
        )
    )
