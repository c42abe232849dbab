"""Contrasts that only the focal paper needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from softmax_temperature.papers.focal.study import (
    AUROC,
    EVALUATION_CELL,
    OUTLIERS,
    SELECTED_BY_VALIDATION,
    after_scaling,
    outlier_sets,
)
from softmax_temperature.papers.shared.contrasts import (
    Contrast,
    Declared,
    Difference,
    Evidence,
    Measurement,
    Ratio,
    cells_of_runs,
    not_tested,
    one_run_each,
    reasons,
)
from softmax_temperature.papers.shared.metrics import (
    Average,
    Measure,
    Metric,
    is_lost,
)
from softmax_temperature.papers.shared.runs import CELL, Runs
from softmax_temperature.papers.shared.statistics import Estimate, OverTasks, Task


@dataclass(frozen=True)
class Evaluated(Contrast):
    """A contrast of the evaluation's metrics, with the evaluation's cells as sources.

    Attributes:
        contrast: The contrast to measure. On its own, it would give the cells that
            trained the runs as its sources.
    """

    contrast: Contrast

    def measure(self, runs: Runs) -> Measurement:
        """Measure the contrast; its sources are the cells that evaluated the runs."""
        table = runs.table.assign(**{CELL: runs.table[EVALUATION_CELL]})
        return self.contrast.measure(replace(runs, table=table))


@dataclass(frozen=True, kw_only=True)
class BesideSelected(Contrast):
    """A difference after the last epoch, with a note about the selected epoch.

    Runs on texts are judged after their last epoch, like runs on images. The paper
    evaluates texts at the epoch of best validation accuracy, so the note gives the
    difference at that epoch, too: in a short run, the choice of the epoch affects the
    calibration error more than the loss does.

    Attributes:
        difference: The difference after the last epoch.
        selected: The metric that `difference` compares, at the selected epoch.
    """

    difference: Difference
    selected: Measure

    def measure(self, runs: Runs) -> Measurement:
        """Measure the difference, with a note on its means at the selected epochs."""
        measurement = self.difference.measure(runs)
        among = self.difference.among & SELECTED_BY_VALIDATION
        beside = replace(self.difference, of=self.selected, among=among)
        numbers = beside.differences(runs)
        if not measurement.parts or numbers.empty:
            return measurement
        means = numbers.groupby(level="experiment").mean()
        texts = ", ".join(f"{name} {{}}" for name in means.index)
        note = f"at the epoch of best validation accuracy: {texts}"
        if measurement.note:
            note = f"{note}; {measurement.note}"
        return replace(measurement, note=note, note_values=tuple(means.tolist()))


@dataclass(frozen=True)
class BesideScaled(Contrast):
    """A contrast before temperature scaling, with the ECE after scaling as qualifier.

    Attributes:
        contrast: The contrast that is judged.
        scaled: Maps names to the contrasts that measure the ECE after scaling. Each
            contrast has one part, whose values are fractions.
    """

    contrast: Contrast
    scaled: Mapping[str, Declared]

    def measure(self, runs: Runs) -> Measurement:
        """Measure the contrast, with the ECEs after scaling as its qualifier."""
        measurement = self.contrast.measure(runs)
        texts = []
        for name, number in self.scaled.items():
            for part in number.evidence(runs).parts.values():
                of_paper = part.of_paper()
                if of_paper is not None:
                    texts.append(f"{name} {_in_points(of_paper.estimate())}")
        if not measurement.parts or not texts:
            return measurement
        qualifier = f"points of ECE after scaling: {', '.join(texts)}"
        return replace(measurement, qualifier=qualifier)


def _in_points(estimate: Estimate) -> str:
    """Format a fraction in percentage points, with its interval if it has one."""
    text = f"{100 * estimate.value:.2f}"
    if estimate.ends is None:
        return text
    low, high = (f"{100 * end:.1f}" for end in estimate.ends)
    return f"{text} [{low}, {high}]"


@dataclass(frozen=True, kw_only=True)
class LeastDifference(Difference):
    """Each pair's smallest difference over the recorded epochs.

    The smallest difference is above 0 if the value of the first run exceeds that of the
    second after every recorded epoch. The metric `of` has a value for each epoch, and
    no value for a lost run; its attributes `epochs` and `complement` are not used.
    """

    of: Metric

    def differences(self, runs: Runs) -> pd.Series[float]:
        """The smallest difference over the epochs, indexed by the factors of a pair."""
        at_each_epoch = super().differences(runs)
        return at_each_epoch.groupby(level=self._keys).min()

    def _numbers(
        self, runs: Runs, chosen: pd.DataFrame, measure: Measure
    ) -> pd.DataFrame:
        """One side's values at each recorded epoch, indexed by pair and epoch."""
        assert isinstance(measure, Metric), "only a metric has a value for each epoch"
        rows = one_run_each(chosen, self._keys)
        rows = self._compared(rows[~is_lost(rows)])
        values = runs.measured(measure.name, split=measure.split, scaled=measure.scaled)
        at_each_epoch = rows.merge(values, left_index=True, right_on="run")
        numbers = at_each_epoch.rename(columns={"value": "number"})
        return numbers.set_index([*self._keys, "epoch"])


@dataclass(frozen=True, kw_only=True)
class LeastRatio(Ratio, LeastDifference):
    """Each pair's smallest logarithm of a ratio over the recorded epochs."""


@dataclass(frozen=True, kw_only=True)
class Apart(Difference):
    """The angle between two directions in degrees, from 0 to 180."""

    def differences(self, runs: Runs) -> pd.Series[float]:
        """The angles, indexed by the factors of a pair."""
        turned = super().differences(runs)
        return ((turned + 180) % 360 - 180).abs()


@dataclass(frozen=True, kw_only=True)
class OnOutliers(Contrast):
    """A difference in AUROC, as a mean over the paper's out-of-distribution sets.

    The mean is over those of the paper's sets that the study has. A run without scores
    on one of these sets is left out. Every other set is a separate task, which does not
    count as one of the paper's tasks.

    Attributes:
        difference: The difference to measure. Its metric is replaced by the AUROC.
        scaled: Whether the first AUROC is measured after temperature scaling. The
            second is always measured before scaling.
    """

    difference: Difference
    scaled: bool = False

    def measure(self, runs: Runs) -> Measurement:
        """Measure the mean over the paper's sets, and each other set by itself."""
        sets = outlier_sets(runs)
        if not sets:
            return not_tested(
                "no experiment of this study has an out-of-distribution set"
            )
        of_paper = [name for name in OUTLIERS if name in sets]
        evidence = self._of(of_paper or OUTLIERS).evidence(runs)
        tasks = _tasks(evidence)
        other_tasks: list[Task] = []
        for name in sets:
            if name not in OUTLIERS:
                other_tasks += self._on_other_set(runs, name)
        tasks += sorted(other_tasks, key=lambda task: task.name)
        if not tasks:
            return not_tested(reasons(evidence.missing))
        mean = OverTasks(tuple(tasks))
        cells = cells_of_runs(evidence.runs)
        return Measurement({"AUROC": mean}, AUROC.unit, cells=cells)

    def _on_other_set(self, runs: Runs, name: str) -> list[Task]:
        evidence = self._of([name]).evidence(runs)
        return [
            replace(task, name=f"{task.name}, {name}", own=False)
            for task in _tasks(evidence)
        ]

    def _of(self, sets: Sequence[str]) -> Difference:
        """The difference in the mean AUROC over `sets`."""
        aurocs = [replace(AUROC, split=name) for name in sets]
        plain = Average(aurocs)
        if not self.scaled:
            return replace(self.difference, of=plain)
        scaled = Average([after_scaling(auroc) for auroc in aurocs])
        return replace(self.difference, of=scaled, of_second=plain)


def _tasks(evidence: Evidence) -> list[Task]:
    """The tasks of `evidence`, which has one part."""
    parts = [part for part in evidence.parts.values() if isinstance(part, OverTasks)]
    return [task for part in parts for task in part.tasks]
