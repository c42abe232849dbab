"""What the claims of the paper are judged by: values by task and seed, from the records.

Text trainings are judged after their last epoch, as image trainings are; the epoch of best validation accuracy, which
the paper takes for texts, stands beside it: choosing among a few epochs of a short training decides the calibration
error more than the loss does.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd

from softmax_temperature.papers.focal.records import Records
from softmax_temperature.papers.focal.selection import EVALUATION, REFERENCE, SCALED, TRAINING, finished, main_tasks
from softmax_temperature.papers.shared.claims import Measurement, NotTested, OverTasks, Task, pooled
from softmax_temperature.papers.shared.sources import cells_of

PROPOSED, FIXED = "FLSD-53", "FL-3"
DATA = ("cifar10", "cifar100", "tiny_imagenet", "newsgroups20", "sst_trees", "wmt14_en_de")
"""The paper's data sets; parts of them, as "cifar10-5000", count as the paper's too."""
OUTLIERS = ("svhn", "gaussian-noise")
"""The paper's out-of-distribution sets; the second is the corruption of CIFAR-10-C."""
GRID = 0.1  # Of the temperatures that are tried.
OVERFITTED = 1.05  # A test NLL that ends at less than this multiple of its minimum is not called overfitted.
EARLY = 150 / 350  # The share of the training before the learning rate first falls: "initially" in section 4.
NEAR_BEST = 0.02  # Early stopping chooses among epochs whose validation accuracy is this near to the best.
_RUN = ["task", "seed"]
_UNSCALED = "at their last epoch, texts have no numbers after temperature scaling: focal/runs.csv lacks them"


def is_own(dataset: str) -> bool:
    """Whether the paper has a data set, or one that this is a part of."""
    return dataset.partition("-")[0].removesuffix("_all") in DATA


def calibration(records: Records, *, arm: str, texts: bool = False) -> Measurement | NotTested:
    """ECE of a loss minus that of cross-entropy, after the last epoch."""
    return _last_epoch(records, "ece", arm, "ECE", texts=texts)


def accuracy(records: Records) -> Measurement | NotTested:
    """Accuracy of FLSD-53 minus that of cross-entropy, after the last epoch."""
    return _last_epoch(records, "accuracy", PROPOSED, "accuracy")


def scaled_calibration(records: Records, *, arm: str) -> Measurement | NotTested:
    """ECE of a loss minus that of cross-entropy, both scaled."""
    return _evaluated(records, "expected_calibration_error", arm, SCALED, "ECE")


def confident_predictions(records: Records, *, scaling: str) -> Measurement | NotTested:
    """Share of confident predictions of FLSD-53 minus that of cross-entropy."""
    return _evaluated(records, "confident_share", PROPOSED, scaling, "share of predictions")


def in_order(records: Records, *, arms: Sequence[str], column: str, unit: str) -> Measurement | NotTested:
    """A number of each loss over that of the next in order, as a logarithm; not ECE: the mean over all epochs."""
    rows = _of(records, "history", *arms)
    rows = _last(rows[rows["split"] == "test"]) if column == "ece" else rows[rows["split"] == "train"]
    values = rows.groupby([*_RUN, "arm"])[column].mean().rename("value").reset_index()
    pairs = dict.fromkeys([*pairwise(arms), (arms[0], arms[-1])])
    return _compared(records, values, list(pairs), unit, TRAINING, log=True)


def every_baseline(records: Records, *, baselines: Sequence[str]) -> Measurement | NotTested:
    """ECE of FLSD-53 over that of each other loss, as a logarithm, after the last epoch."""
    rows = _last(_of(records, "history", PROPOSED, *baselines))
    values = rows[rows["split"] == "test"].rename(columns={"ece": "value"})
    pairs = [(PROPOSED, other) for other in baselines]
    return _compared(records, values, pairs, "logarithm of the ratio of ECE", TRAINING, log=True)


def temperature(records: Records, *, arm: str) -> Measurement | NotTested:
    """The temperature of least validation ECE."""
    rows, note = _scored(records, arm)
    rows = rows[rows["scaling"] == SCALED]
    if rows.empty:
        return _why_untested(records, arm, note=note)
    bound = int(rows["at_bound"].sum())
    notes = "; ".join(filter(None, (f"{bound} at the bound of the grid" if bound else "", note)))
    tasks = _tasks(records, rows, "temperature")
    return Measurement({arm: OverTasks(tasks, resolution=GRID)}, "temperature", notes, cells=_cells(EVALUATION, rows))


def overfitting(records: Records) -> Measurement | NotTested:
    """Change of the NLL of wrong samples, and minus that of right ones, from the best epoch to the last."""
    rows = _of(records, "history", REFERENCE)
    rows = rows[rows["split"] == "test"]
    if rows.empty:
        return _why_untested(records, REFERENCE)
    runs = rows.groupby(_RUN)
    best, last = (rows.loc[chosen].set_index(_RUN) for chosen in (runs["nll"].idxmin(), runs["epoch"].idxmax()))
    overfitted = last["nll"] >= OVERFITTED * best["nll"]
    if not overfitted.any():
        return NotTested(f"no run's test NLL ends at {OVERFITTED} times its minimum: nothing is overfitted")
    sides = ["nll_wrong", "nll_right"]
    change = (last[sides] - best[sides])[overfitted].dropna().reset_index()
    parts = {
        "misclassified": OverTasks(_tasks(records, change, "nll_wrong")),
        "right, sign reversed": OverTasks(_tasks(records, change.assign(fall=-change["nll_right"]), "fall")),
    }
    note = f"{overfitted.sum()} of {len(overfitted)} runs overfit"
    return Measurement(parts, "nats", note, cells=_cells(TRAINING, rows))


def weight_norms(records: Records) -> Measurement | NotTested:
    """Norm with FL-3 minus norm with cross-entropy early on, and the other way round at the end."""
    rows = _of(records, "history", REFERENCE, FIXED)
    pairs = _side_by_side(rows[rows["split"] == "test"], "weight_norm", [*_RUN, "epoch"], FIXED, REFERENCE)
    if pairs.empty:
        return _why_untested(records, REFERENCE, FIXED)
    table = (pairs[FIXED] - pairs[REFERENCE]).rename("early").reset_index()
    last = table.groupby(_RUN)["epoch"].transform("max")
    early = table[table["epoch"] <= (EARLY * last).clip(lower=1)].groupby(_RUN)["early"].mean().reset_index()
    late = table[table["epoch"] == last].assign(late=-table["early"])
    parts = {
        f"{FIXED} above CE at first": OverTasks(_tasks(records, early, "early")),
        f"CE above {FIXED} in the end": OverTasks(_tasks(records, late, "late")),
    }
    return Measurement(parts, "weight norm", cells=_cells(TRAINING, rows))


def gradient_norms(records: Records) -> Measurement | NotTested:
    """Mean logarithm of last-layer gradient norms with FL-3 minus with cross-entropy, at the later recorded epochs."""
    rows = _of(records, "gradient_norms", REFERENCE, FIXED)
    if rows.empty:
        return _why_untested(records, REFERENCE, FIXED)
    rows = rows[rows["epoch"] > rows.groupby("task")["epoch"].transform("min")]
    weighted = rows.assign(total=rows["count"] * np.log(np.sqrt(rows["low"] * rows["high"])))
    sums = weighted.groupby([*_RUN, "arm", "epoch"])[["total", "count"]].sum()
    means = (sums["total"] / sums["count"]).groupby([*_RUN, "arm"]).mean().rename("value").reset_index()
    return _compared(records, means, [(FIXED, REFERENCE)], "log gradient norm", TRAINING, log=False)


def outliers(records: Records) -> Measurement | NotTested:
    """AUROC of FLSD-53 minus that of cross-entropy."""
    rows = _of(records, "ood", PROPOSED, REFERENCE)
    return _outliers(records, rows[rows["scaling"] == "none"], "arm", PROPOSED, REFERENCE)


def scaled_outliers(records: Records) -> Measurement | NotTested:
    """AUROC of cross-entropy with temperature scaling minus without."""
    return _outliers(records, _of(records, "ood", REFERENCE), "scaling", SCALED, "none")


def early_stopping(records: Records) -> Measurement | NotTested:
    """ECE of FLSD-53 minus that of cross-entropy at the epochs that validation data choose, by each criterion."""
    rows = _of(records, "history", REFERENCE, PROPOSED)
    run = [*_RUN, "arm"]
    validation = rows[rows["split"] == "validation"]
    best = validation.groupby(run)["accuracy"].transform("max")
    near = validation[validation["accuracy"] >= best - NEAR_BEST].groupby(run)
    chosen = {
        "last epoch": validation.loc[validation.groupby(run)["epoch"].idxmax()],
        "by accuracy": validation.loc[near["accuracy"].idxmax()],
        "by NLL": validation.loc[near["nll"].idxmin()],
        "by ECE": validation.loc[near["ece"].idxmin()],
    }
    test = rows[rows["split"] == "test"]
    parts = {}
    for criterion, epochs in chosen.items():
        there = epochs[[*run, "epoch"]].merge(test, on=[*run, "epoch"])
        if tasks := _differences(records, there.rename(columns={"ece": "value"}), PROPOSED, REFERENCE):
            parts[criterion] = OverTasks(tasks)
    if not parts:
        return _why_untested(records, REFERENCE, PROPOSED)
    return Measurement(parts, "ECE", cells=_cells(TRAINING, rows))


def _last_epoch(records: Records, column: str, arm: str, unit: str, *, texts: bool = False) -> Measurement | NotTested:
    rows = _last(_of(records, "history", arm, REFERENCE))
    if texts:
        known = main_tasks(records)
        names = known.loc[known["embeddings"] != "", "task"]
        if names.empty:
            return NotTested("no task of this profile is on texts")
        rows = rows[rows["task"].isin(names)]
    values = rows[rows["split"] == "test"].rename(columns={column: "value"})
    found = _compared(records, values, [(arm, REFERENCE)], unit, TRAINING, log=False)
    if isinstance(found, NotTested):
        return found
    long = {"ece": "expected_calibration_error"}.get(column, column)
    runs = _of(records, "runs", arm, REFERENCE)
    runs = runs[(runs["scaling"] == "none") & runs["task"].isin(_selected(records)) & runs["task"].isin(rows["task"])]
    selected = _differences(records, runs.rename(columns={long: "value"}), arm, REFERENCE)
    parts = ", ".join(f"{task.name} {np.mean(task.values):+.3f}" for task in selected)
    note = f"at the epoch of best validation accuracy: {parts}" if parts else ""
    return Measurement(found.parts, found.unit, note, cells=found.cells)


def _evaluated(records: Records, column: str, arm: str, scaling: str, unit: str) -> Measurement | NotTested:
    rows, note = _scored(records, arm, REFERENCE)
    values = rows[rows["scaling"] == scaling].rename(columns={column: "value"})
    return _compared(records, values, [(arm, REFERENCE)], unit, EVALUATION, log=False, note=note)


def _compared(
    records: Records,
    values: pd.DataFrame,
    pairs: Sequence[tuple[str, str]],
    unit: str,
    stage: str,
    *,
    log: bool,
    note: str = "",
) -> Measurement | NotTested:
    """First arm minus second of each pair, paired by task and seed."""
    parts: dict[str, OverTasks] = {}
    missing: dict[str, str] = {}
    for arm, reference in pairs:
        name = f"{arm} against {reference}"
        tasks = _differences(records, values, arm, reference, log=log)
        reason = _why_untested(records, arm, reference).reason
        parts |= {name: OverTasks(tasks)} if tasks else {}
        missing |= {} if tasks else {name: reason}
    if not parts:
        return NotTested("; ".join(filter(None, (*dict.fromkeys(missing.values()), note))))
    return Measurement(parts, unit, note, missing, _cells(stage, values))


def _differences(
    records: Records, values: pd.DataFrame, arm: str, reference: str, *, log: bool = False
) -> tuple[Task, ...]:
    values = values.assign(value=np.log(values["value"])) if log else values
    pairs = _side_by_side(values, "value", _RUN, arm, reference)
    return _tasks(records, (pairs[arm] - pairs[reference]).rename("value").reset_index(), "value")


def _tasks(records: Records, rows: pd.DataFrame, column: str) -> tuple[Task, ...]:
    """The values of each task, one per seed."""
    known = main_tasks(records)
    own = {task: is_own(dataset) for task, dataset in zip(known["task"], known["dataset"], strict=True)}
    return pooled(
        {str(task): some[column].tolist() for task, some in rows.groupby("task", sort=False)}, own.__getitem__
    )


def _outliers(records: Records, rows: pd.DataFrame, by: str, value: str, reference: str) -> Measurement | NotTested:
    if records.ood.empty:
        return NotTested("no task of this profile has an out-of-distribution set")
    pairs = _side_by_side(rows, "auroc", [*_RUN, "ood"], value, reference, by=by)
    if pairs.empty:
        return _why_untested(records, *rows["arm"].unique())
    table = (pairs[value] - pairs[reference]).rename("value").reset_index()
    is_printed = table["ood"].isin(OUTLIERS)
    own = table[is_printed].groupby(_RUN)["value"].mean().reset_index()
    others = table[~is_printed].assign(task=table["task"] + ", " + table["ood"])
    shown = pooled({str(task): some["value"].tolist() for task, some in others.groupby("task")}, lambda _: False)
    return Measurement(
        {"AUROC": OverTasks(_tasks(records, own, "value") + shown)}, "AUROC", cells=_cells(EVALUATION, rows)
    )


def _of(records: Records, name: str, *arms: str) -> pd.DataFrame:
    """The rows of a table that belong to finished runs of some arms with the main recipe."""
    rows = finished(records, name)
    return rows[rows["task"].isin(main_tasks(records)["task"]) & rows["arm"].isin(arms)]


def _last(rows: pd.DataFrame) -> pd.DataFrame:
    return rows[rows["epoch"] == rows.groupby([*_RUN, "arm"])["epoch"].transform("max")]


def _selected(records: Records) -> pd.Series[str]:
    """The tasks whose evaluation is that of a chosen epoch."""
    known = main_tasks(records)
    names: pd.Series[str] = known.loc[known["select"] != "last", "task"]
    return names


def _scored(records: Records, *arms: str) -> tuple[pd.DataFrame, str]:
    """The evaluations after the last epoch, and why those of some tasks are none."""
    rows = _of(records, "runs", *arms)
    if "evaluated" in rows:  # Records that have the last epoch of chosen ones, too, say which a row is of.
        return rows[rows["evaluated"] == "last"], ""
    chosen = rows["task"].isin(_selected(records))
    return rows[~chosen], _UNSCALED if chosen.any() else ""


def _side_by_side(
    rows: pd.DataFrame, column: str, index: Sequence[str], value: str, reference: str, *, by: str = "arm"
) -> pd.DataFrame:
    """A number of two arms (or scalings) in two columns, for every key that has both."""
    table = rows.pivot(index=list(index), columns=by, values=column)
    return table.reindex(columns=[value, reference]).dropna()


def _cells(stage: str, rows: pd.DataFrame) -> tuple[str, ...]:
    return cells_of(stage, rows, "task", "arm")


def _why_untested(records: Records, *arms: str, note: str = "") -> NotTested:
    """Why no run, or no pair of runs, of some arms with the main recipe is there."""
    trainings = records.trainings[records.trainings["task"].isin(main_tasks(records)["task"])]
    for arm in arms:
        runs = trainings[trainings["arm"] == arm]
        if runs.empty:
            return NotTested(f"no task of this profile trains {arm}")
        if runs["diverged"].all():
            return NotTested(f"every run of {arm} diverged")
    return NotTested(note or f"no seed has a finished run of {' and '.join(arms)} that was measured")
