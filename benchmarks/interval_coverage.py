"""Coverage of the 90 % intervals of a calibration report, by simulation.

`python -m benchmarks.interval_coverage` writes the tables of
docs/calibration_intervals.md.

Logits are normal with a given standard deviation; labels are drawn from softmax(z /
T0). Each report is made by `calibrate` with its defaults, except for fewer resamples:
the temperature is fitted on a random half, and the intervals use the other half. The
truth is the error in the same bins (or the mean score) over the whole population,
before scaling and after scaling with the fitted temperature. It comes from 200,000
fresh logits and their exact label probabilities, so no labels are drawn. The simulation
takes eight minutes on one core.

With `--verdicts`, only the page's last table is simulated: the verdicts of reports with
all resamples. This takes about a minute on one core.
"""

import re
import sys
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import torch
import typer
from numpy.typing import NDArray
from torch import Tensor

from benchmarks import interval_methods
from softmax_temperature import calibrate
from softmax_temperature.metrics.calibration import (
    binned_sums,
    class_cells,
    equal_width_bins,
)
from softmax_temperature.tools.programs import run_program

Floats = NDArray[np.float64]
PAGE = Path(__file__).resolve().parents[1] / "docs" / "calibration_intervals.md"
BINS = 15
REPETITIONS = 200
COMPARED = 100  # The other methods' intervals are computed in this many repetitions.
POPULATION = 200_000
PIECE = 20_000
# Temperatures at which the truth is computed; between them, it is interpolated.
GRID = 20
ERRORS = {
    "expected_calibration_error": "ECE",
    "adaptive_calibration_error": "AdaECE",
    "classwise_calibration_error": "Classwise-ECE",
}
SCORES = {
    "accuracy": "accuracy",
    "negative_log_likelihood": "NLL",
    "brier_score": "Brier score",
}
METRICS = ERRORS | SCORES
# The intervals of scores are percentiles over resamples. This many give nearly the same
# percentiles as the report's 1,000, in a fifth of the time.
RESAMPLES = 199
# Verdicts are counted for populations with five classes, as in the second of
# `SETTINGS`.
TOLD = (
    (1.0, 400),
    (1.0, 1_000),
    (1.3, 500),
    (1.3, 1_000),
    (1.6, 500),
    (2.0, 400),
    (2.0, 800),
)
"""Temperatures T0 and numbers of rows."""
VERDICTS = {
    "scale": ("Overconfident", "Underconfident"),
    "probably": ("Probably overconfident", "Probably underconfident"),
    "no miscalibration found": ("No miscalibration found",),
    "no temperature helps": ("Miscalibrated, but",),
}
"""The beginnings of the verdicts that each column counts, keyed by column."""
SQUARED = "normal, of the debiased squared error"
OURS = "normal, widened by the largest bias (ours)"
WHERE = ("before", "after", "change")


class Setting(NamedTuple):
    """A population, and the number of samples drawn from it."""

    samples: int
    classes: int
    temperature: float
    deviation: float  # Standard deviation of the logits.

    def draw(self, seed: int) -> tuple[Tensor, Tensor]:
        """Draw logits (n, classes) and labels (n,)."""
        generator = torch.Generator().manual_seed(seed)
        logits = self.logits(self.samples, generator)
        probs = torch.softmax(logits / self.temperature, dim=1)
        return logits, torch.multinomial(probs, 1, generator=generator).squeeze(1)

    def logits(self, samples: int, generator: torch.Generator) -> Tensor:
        """Normal logits, shape (samples, classes)."""
        shape = (samples, self.classes)
        normal = torch.randn(shape, generator=generator, dtype=torch.float64)
        return self.deviation * normal

    def __str__(self) -> str:
        return f"{self.samples:,} × {self.classes}, {self.temperature:g}"


SETTINGS = (
    Setting(500, 3, 1.0, 3.0),
    Setting(1_000, 5, 1.6, 3.0),
    Setting(1_506, 10, 2.7, 6.0),
    Setting(10_000, 10, 1.7, 6.0),
    Setting(10_000, 100, 1.3, 6.0),
)


class Coverage(NamedTuple):
    """Shares and means over the repetitions of one setting."""

    # Keys are names of metrics. Each list has three values: before scaling, after
    # scaling, and for the change.
    truth: dict[str, list[float]]  # Mean true values.
    covered: dict[str, list[float]]  # Shares of intervals that contain the true value.
    widths: dict[str, list[float]]  # Mean widths of intervals.
    # Keys are the names of the other methods. Most give intervals for the ECE;
    # `_target` names the error for which each method gives an interval.
    methods: dict[str, list[float]]  # Shares of intervals that contain the true error.
    method_widths: dict[str, list[float]]
    temperature: float  # Share of temperature intervals that contain T0.
    advised: float  # Share of reports that advise scaling.


def measure(setting: Setting, repetitions: int = REPETITIONS) -> Coverage:
    """Simulate all repetitions of a setting."""
    draws = [simulate(setting, seed, seed < COMPARED) for seed in range(repetitions)]
    return summarise(setting, draws)


class Draw(NamedTuple):
    """The result of one repetition."""

    report: dict[str, Any]  # The data of the calibration report.
    # The other methods' intervals (before, after, change); empty if not computed.
    others: dict[str, list[tuple[float, float]]]


def simulate(setting: Setting, seed: int, compare: bool) -> Draw:
    """Make a report; if `compare`, also compute the other methods' intervals."""
    logits, labels = setting.draw(seed)
    report = calibrate(logits, labels, bootstrap=RESAMPLES, seed=seed)
    if not compare:
        return Draw(report.data, {})
    arms = [report.logits[arm] for arm in ("before", "nll")]
    right = (arms[0].argmax(dim=1) == report.labels).double()
    before, after = (torch.softmax(arm, dim=1).amax(dim=1) for arm in arms)
    others = interval_methods.intervals(before, after, right, seed)
    return Draw(report.data, others)


def summarise(setting: Setting, draws: list[Draw]) -> Coverage:
    """Compare the intervals with the truth."""
    reports = [draw.report for draw in draws]
    fits = [report["temperature"]["nll"] for report in reports]
    truths = population_values(setting, np.array([fit["temperature"] for fit in fits]))
    bounds = {
        name: np.array([_reported(report, name) for report in reports])
        for name in METRICS
    }
    compared = [draw.others for draw in draws if draw.others]
    others = {
        name: np.array([intervals[name] for intervals in compared])
        for name in compared[0]
    }
    holds_true = [
        fit["low"] <= setting.temperature <= (fit["high"] or np.inf) for fit in fits
    ]
    return Coverage(
        truth={name: truths[name].mean(axis=0).tolist() for name in METRICS},
        covered={name: _covered(bounds[name], truths[name]) for name in METRICS},
        widths={name: _widths(bounds[name]) for name in METRICS},
        methods={
            name: _covered(ends, truths[_target(name)][: len(compared)])
            for name, ends in others.items()
        },
        method_widths={name: _widths(ends) for name, ends in others.items()},
        temperature=float(np.mean(holds_true)),
        advised=float(np.mean([report["advice"] == "scale" for report in reports])),
    )


def _target(method: str) -> str:
    """Name of the error that a method's interval should contain."""
    if method == SQUARED:
        return "squared_error"
    if method.startswith("MCE"):
        return "maximum_calibration_error"
    return "expected_calibration_error"


def population_values(setting: Setting, fitted: Floats) -> dict[str, Floats]:
    """The true errors and scores before and after scaling, and their change.

    Each array has the shape (len(fitted), 3), with one row for each fitted temperature.
    """
    grid = np.linspace(fitted.min(), fitted.max(), GRID)
    grid = np.sort(np.append(grid, setting.temperature))
    before = true_values(setting, [1.0])
    after = true_values(setting, grid.tolist())
    truths = {}
    for name, values in after.items():
        scaled = np.interp(fitted, grid, values)
        unscaled = np.full_like(scaled, before[name][0])
        truths[name] = np.stack([unscaled, scaled, scaled - unscaled], axis=1)
    return truths


def true_values(setting: Setting, temperatures: list[float]) -> dict[str, list[float]]:
    """Each error and score of the population at each temperature."""
    generator = torch.Generator().manual_seed(2**31)
    cells = setting.classes * BINS
    gaps = torch.zeros(len(temperatures), BINS, dtype=torch.float64)
    shares = torch.zeros_like(gaps)
    class_gaps = torch.zeros(len(temperatures), cells, dtype=torch.float64)
    losses = torch.zeros(len(temperatures), 1, dtype=torch.float64)
    briers = torch.zeros_like(losses)
    tops: list[list[Tensor]] = [[] for _ in temperatures]
    rights = []
    for _ in range(POPULATION // PIECE):
        logits = setting.logits(PIECE, generator)
        true = torch.softmax(logits / setting.temperature, dim=1)
        predicted = logits.argmax(dim=1, keepdim=True)
        right = true.gather(1, predicted).squeeze(1)
        rights.append(right)
        for place, temperature in enumerate(temperatures):
            log_probs = torch.log_softmax(logits / temperature, dim=1)
            probs = log_probs.exp()
            losses[place] -= (true * log_probs).sum()
            # A class's entry in the one-hot label is 1 with probability `true`, so the
            # expected square of the entry is `true`.
            briers[place] += (probs.square() - 2 * true * probs + true).sum()
            top = probs.gather(1, predicted).squeeze(1)
            index = equal_width_bins(top, BINS)
            gaps[place] += binned_sums(index, right - top, BINS)
            shares[place] += binned_sums(index, torch.ones_like(top), BINS)
            by_class = class_cells(probs, BINS).flatten()
            class_gaps[place] += binned_sums(by_class, (true - probs).flatten(), cells)
            tops[place].append(top)
    all_right = torch.cat(rights)
    squares = gaps.square() / shares.clamp(min=1)
    largest = (gaps.abs() / shares.clamp(min=1)).amax(dim=1)
    adaptive = [_equal_mass(torch.cat(pieces), all_right) for pieces in tops]
    return {
        "expected_calibration_error": _over_population(gaps.abs()),
        "adaptive_calibration_error": adaptive,
        "maximum_calibration_error": largest.tolist(),
        "classwise_calibration_error": _over_population(
            class_gaps.abs() / setting.classes
        ),
        "squared_error": _over_population(squares),
        "accuracy": [all_right.mean().item()] * len(temperatures),
        "negative_log_likelihood": _over_population(losses),
        "brier_score": _over_population(briers),
    }


def tables(measured: dict[Setting, Coverage]) -> str:
    """Tables for the page, as Markdown."""
    columns = ["before", "after", "change", "width before", "after", "change"]
    lines = [
        f"| interval of the ECE | {' | '.join(columns)} |",
        "|---|---|---|---|---|---|---|",
    ]
    names = next(iter(measured.values())).methods
    for name in names:
        shares = np.array([each.methods[name] for each in measured.values()])
        widths = np.array([each.method_widths[name] for each in measured.values()])
        lines.append(_method_row(name, shares, widths))
    ece = "expected_calibration_error"
    shares = np.array([each.covered[ece] for each in measured.values()])
    widths = np.array([each.widths[ece] for each in measured.values()])
    lines.append(_method_row(OURS, shares, widths))
    heads = ["rows × classes, T0", "error", "true (%): before", "after"]
    heads += ["covered (%): before", "after", "change"]
    heads += ["width (points): before", "after", "change"]
    lines += ["", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for setting, coverage in measured.items():
        for key, name in ERRORS.items():
            truth = [f"{100 * value:.2f}" for value in coverage.truth[key][:2]]
            covered = [f"{100 * value:.0f}" for value in coverage.covered[key]]
            width = [f"{100 * value:.1f}" for value in coverage.widths[key]]
            cells = [str(setting), name, *truth, *covered, *width]
            lines.append(f"| {' | '.join(cells)} |")
    heads = ["rows × classes, T0", "score", "covered (%): before", "after", "change"]
    lines += ["", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for setting, coverage in measured.items():
        for key, name in SCORES.items():
            covered = [f"{100 * value:.0f}" for value in coverage.covered[key]]
            lines.append(f"| {' | '.join([str(setting), name, *covered])} |")
    lines += [
        "",
        "| rows × classes, T0 | interval of T covers (%) | told to scale (%) |",
        "|---|---|---|",
    ]
    for setting, coverage in measured.items():
        numbers = (coverage.temperature, coverage.advised)
        cells = [str(setting), *(f"{100 * number:.0f}" for number in numbers)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def count_verdicts(setting: Setting, repetitions: int = COMPARED) -> dict[str, int]:
    """Count the verdicts of reports with the defaults, for each key of `VERDICTS`."""
    counts = dict.fromkeys(VERDICTS, 0)
    for seed in range(repetitions):
        logits, labels = setting.draw(seed)
        sentence = calibrate(logits, labels, seed=seed).data["verdict"]
        (column,) = (
            column for column, starts in VERDICTS.items() if sentence.startswith(starts)
        )
        counts[column] += 1
    return counts


def table_of_verdicts(counted: dict[Setting, dict[str, int]]) -> str:
    """The table of verdicts as Markdown, without columns in which every count is 0."""
    columns = [
        column
        for column in VERDICTS
        if any(counts[column] for counts in counted.values())
    ]
    heads = ["T0", "true ECE", "rows", *columns]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for setting, counts in counted.items():
        truth = true_values(setting, [1.0])["expected_calibration_error"][0]
        cells = [f"{setting.temperature:g}", f"{100 * truth:.0f} %"]
        cells += [f"{setting.samples:,}", *(str(counts[column]) for column in columns)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def write_page(text: str, name: str = "measured") -> None:
    """Write tables between the page's markers, the first of which contains `name`."""
    page = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    PAGE.write_text(pattern.sub(rf"\1\n{text}\n\n\2", page), encoding="utf-8")


def _reported(report: dict[str, Any], name: str) -> list[list[float]]:
    """Reported intervals of a metric before and after scaling, and of its change."""
    metrics = report["metrics"]
    change = report["differences"][name]
    return [
        list(metrics["before"]["intervals"][name]),
        list(metrics["nll"]["intervals"][name]),
        [change["low"], change["high"]],
    ]


def _covered(ends: Floats, truth: Floats) -> list[float]:
    """Shares, by column, of the intervals (n, 3, 2) that contain the truth (n, 3).

    A column in which an interval is missing has the share NaN.
    """
    holds = (ends[:, :, 0] <= truth) & (truth <= ends[:, :, 1])
    shares = np.where(np.isnan(ends[:, :, 0]).any(axis=0), np.nan, holds.mean(axis=0))
    return shares.tolist()  # type: ignore[no-any-return]


def _widths(ends: Floats) -> list[float]:
    return (ends[:, :, 1] - ends[:, :, 0]).mean(axis=0).tolist()  # type: ignore[no-any-return]


def _over_population(values: Tensor) -> list[float]:
    means: list[float] = (values.sum(dim=1) / POPULATION).tolist()
    return means


def _equal_mass(tops: Tensor, right: Tensor) -> float:
    gaps = (right - tops)[tops.argsort()].tensor_split(BINS)
    return sum(abs(gap.sum().item()) for gap in gaps) / len(tops)


def _method_row(name: str, shares: Floats, widths: Floats) -> str:
    """Table row: the range of coverage over the settings, and the mean width."""
    cells = [name]
    for column in shares.T:
        low, high = 100 * column.min(), 100 * column.max()
        cells.append("–" if np.isnan(low) else f"{low:.0f} to {high:.0f} %")
    for column in widths.T:
        width = 100 * column.mean()
        cells.append("–" if np.isnan(width) else f"{width:.1f}")
    return f"| {' | '.join(cells)} |"


def main(
    repetitions: Annotated[
        int, typer.Option(min=1, help="Samples drawn from each population.")
    ] = REPETITIONS,
    verdicts: Annotated[
        bool, typer.Option("--verdicts", help="Write only the table of verdicts.")
    ] = False,
) -> None:
    """Simulate every setting and write the page."""
    torch.set_num_threads(1)
    if verdicts:
        counted = {}
        for temperature, rows in TOLD:
            setting = Setting(rows, 5, temperature, 3.0)
            counted[setting] = count_verdicts(setting)
            print(setting, counted[setting], flush=True)
        write_page(table_of_verdicts(counted), "verdicts")
        return
    measured = {}
    for setting in SETTINGS:
        measured[setting] = measure(setting, repetitions)
        print(setting, measured[setting], flush=True)
    write_page(tables(measured))


if __name__ == "__main__":
    sys.exit(run_program(main, __doc__))
