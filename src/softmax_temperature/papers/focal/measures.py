"""What the claims of the paper are judged by: values by task and seed, from the records.

Text trainings are judged after their last epoch, as image trainings are; the epoch of best validation accuracy, which
the paper takes for texts, stands beside it: choosing among a few epochs of a short training decides the calibration
error more than the loss does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.focal.records import (
    EVALUATION,
    FIXED,
    LONG_NAMES,
    PROPOSED,
    REFERENCE,
    SCALED,
    TRAINING,
    TRANSLATION,
    Records,
    early_stopping,
    finished,
    main_tasks,
)
from softmax_temperature.papers.shared.claims import Measurement, NotTested
from softmax_temperature.papers.shared.sources import cells_of
from softmax_temperature.papers.shared.statistics import OverTasks, Share, Task, pooled

# Deviation: Multi30k stands in for WMT14, on which no study here can train; the paper has no other task of translation.
DATA = ("cifar10", "cifar100", "tiny_imagenet", "newsgroups20", "sst_trees", "wmt14_en_de", "multi30k")
"""The paper's data sets; parts of them, as "cifar10-5000", count as the paper's too."""
OUTLIERS = ("svhn", "gaussian-noise")
"""The paper's out-of-distribution sets; the second is the corruption of CIFAR-10-C."""
GRID = 0.1  # Of the temperatures that are tried.
ONE = (0.95, 1.05)  # Around temperature 1, nearer than the next of the grid.
OVERFITTED = 1.05  # A test NLL that ends at less than this multiple of its minimum is not called overfitted.
EARLY = 150 / 350  # The share of the training before the learning rate first falls: "initially" in section 4.
SURE = 0.9  # Appendix C: a confident mistake.
_RUN, _CELL = ["task", "seed"], ("task", "arm")
_UNSCALED = "at their last epoch, texts have no numbers after temperature scaling: focal/runs.csv lacks them"
_NO_LINEAR = NotTested("this profile has no linear model")
Found = Measurement | NotTested
Pairs = Sequence[tuple[str, str]]


def is_own(dataset: str) -> bool:
    """Whether the paper has a data set, or one that this is a part of."""
    return dataset.partition("-")[0].removesuffix("_all") in DATA


def in_order(*arms: str) -> Pairs:
    """Each arm with the next, and the first with the last."""
    return list(dict.fromkeys([*pairwise(arms), (arms[0], arms[-1])]))


def last_epoch(
    records: Records, *, pairs: Pairs, column: str = "ece", unit: str = "ECE", log: bool = False, texts: bool = False
) -> Found:
    """A test number after the last epoch, first arm minus second; of a single pair also at the selected epoch."""
    rows = _of(records, "history", *_arms(pairs))
    rows = rows[rows["epoch"] == rows.groupby([*_RUN, "arm"])["epoch"].transform("max")]
    known = main_tasks(records)
    if texts:
        known = known[known["embeddings"] != ""]
        if known.empty:
            return NotTested("no task of this profile is on texts")
    rows = rows[rows["task"].isin(known["task"]) & (rows["split"] == "test")]
    note = ""
    if len(pairs) == 1:
        runs = _of(records, "runs", *_arms(pairs)).rename(columns={LONG_NAMES.get(column, column): "value"})
        runs = runs[(runs["scaling"] == "none") & runs["task"].isin(known.loc[known["select"] != "last", "task"])]
        differences = _differences(runs, *pairs[0], log=log)
        parts = ", ".join(f"{task.name} {np.mean(task.values):+.3f}" for task in _tasks(records, differences))
        note = f"at the epoch of best validation accuracy: {parts}" if parts else ""
    return _compared(records, rows.rename(columns={column: "value"}), pairs, unit, TRAINING, log=log, note=note)


def evaluated(records: Records, *, arm: str, scaling: str, column: str = LONG_NAMES["ece"], unit: str = "ECE") -> Found:
    """A number of the evaluation, of an arm minus of cross-entropy."""
    rows, note = _scored(records, arm, REFERENCE)
    values = rows[rows["scaling"] == scaling].rename(columns={column: "value"})
    return _compared(records, values, [(arm, REFERENCE)], unit, EVALUATION, note=note)


def feature_norms(records: Records, *, pairs: Pairs) -> Found:
    """Mean over the epochs of the feature norm on training data, as logarithms."""
    rows = _of(records, "history", *_arms(pairs))
    values = rows[rows["split"] == "train"].groupby([*_RUN, "arm"])["feature_norm"].mean().rename("value")
    return _compared(records, values.reset_index(), pairs, "logarithm of the ratio of norms", TRAINING, log=True)


def temperature(records: Records, *, arm: str) -> Found:
    """The temperature of least validation ECE."""
    rows, note = _scored(records, arm)
    rows = rows[rows["scaling"] == SCALED].rename(columns={"temperature": "value"})
    if rows.empty:
        return _why_untested(records, arm, note=note)
    bound = int(rows["at_bound"].sum())
    notes = "; ".join(filter(None, (f"{bound} at the bound of the grid" if bound else "", note)))
    parts = {arm: OverTasks(_tasks(records, rows), resolution=GRID)}
    return Measurement(parts, "temperature", notes, cells=cells_of(EVALUATION, rows, *_CELL))


def overfitting(records: Records) -> Found:
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
        "misclassified": change.assign(value=change["nll_wrong"]),
        "right, sign reversed": change.assign(value=-change["nll_right"]),
    }
    note = f"{overfitted.sum()} of {len(overfitted)} runs overfit"
    return _measured(records, parts, "nats", TRAINING, rows, note=note)


def weight_norms(records: Records) -> Found:
    """Norm with FL-3 minus norm with cross-entropy early on, and the other way round at the end."""
    rows = _of(records, "history", REFERENCE, FIXED)
    pairs = _side_by_side(rows[rows["split"] == "test"], "weight_norm", [*_RUN, "epoch"], FIXED, REFERENCE)
    if pairs.empty:
        return _why_untested(records, REFERENCE, FIXED)
    table = (pairs[FIXED] - pairs[REFERENCE]).rename("value").reset_index()
    last = table.groupby(_RUN)["epoch"].transform("max")
    early = table[table["epoch"] <= (EARLY * last).clip(lower=1)].groupby(_RUN)["value"].mean().reset_index()
    late = table[table["epoch"] == last].assign(value=-table["value"])
    parts = {f"{FIXED} above CE at first": early, f"CE above {FIXED} in the end": late}
    return _measured(records, parts, "weight norm", TRAINING, rows)


def gradient_norms(records: Records) -> Found:
    """Mean logarithm of last-layer gradient norms with FL-3 minus with cross-entropy, at the later recorded epochs."""
    rows = _of(records, "gradient_norms", REFERENCE, FIXED)
    rows = rows[rows["epoch"] > rows.groupby("task")["epoch"].transform("min")]
    weighted = rows.assign(total=rows["count"] * np.log(np.sqrt(rows["low"] * rows["high"])))
    sums = weighted.groupby([*_RUN, "arm", "epoch"])[["total", "count"]].sum()
    means = (sums["total"] / sums["count"]).groupby([*_RUN, "arm"]).mean().rename("value").reset_index()
    return _compared(records, means, [(FIXED, REFERENCE)], "log gradient norm", TRAINING)


def stopped_early(records: Records) -> Found:
    """ECE of FLSD-53 minus that of cross-entropy at the epochs that validation data choose, by each criterion."""
    rows = _of(records, "history", REFERENCE, PROPOSED)
    names = {"last": "last epoch", "accuracy": "by accuracy", "nll": "by NLL", "ece": "by ECE"}
    chosen = early_stopping(rows).rename(columns={"expected_calibration_error": "value"})
    parts = {
        names[str(criterion)]: some
        for criterion, group in chosen.groupby("criterion", sort=False)
        if len(some := _differences(group, PROPOSED, REFERENCE))
    }
    if not parts:
        return _why_untested(records, REFERENCE, PROPOSED)
    return _measured(records, parts, "ECE", TRAINING, rows)


def outliers(records: Records, *, scaled: bool = False) -> Found:
    """AUROC of FLSD-53 minus that of cross-entropy; or of cross-entropy, scaled minus not scaled."""
    if records.ood.empty:
        return NotTested("no task of this profile has an out-of-distribution set")
    by, value, reference = ("scaling", SCALED, "none") if scaled else ("arm", PROPOSED, REFERENCE)
    rows = _of(records, "ood", REFERENCE, *([] if scaled else [PROPOSED]))
    rows = rows if scaled else rows[rows["scaling"] == "none"]
    pairs = _side_by_side(rows, "auroc", [*_RUN, "ood"], value, reference, by=by)
    if pairs.empty:
        return _why_untested(records, *rows["arm"].unique())
    table = (pairs[value] - pairs[reference]).rename("value").reset_index()
    is_printed = table["ood"].isin(OUTLIERS)
    own = table[is_printed].groupby(_RUN)["value"].mean().reset_index()
    others = table[~is_printed].assign(task=table["task"] + ", " + table["ood"])  # No task of the paper's.
    return _measured(records, {"AUROC": pd.concat([own, others.sort_values("task")])}, "AUROC", EVALUATION, rows)


def linear_norms(records: Records) -> Found:
    """Norms of weights and logits of the linear model at the end, cross-entropy minus focal loss, as logarithms."""
    table = records.linear_history
    if table.empty:
        return _NO_LINEAR
    last = table[table["epoch"] == table.groupby(["loss", "seed"])["epoch"].transform("max")]
    parts: dict[str, OverTasks] = {}
    for column, name in (("weight_norm", "weight norm, {}"), ("logit_norm", "logit norm, {}")):
        norms = last.assign(log=np.log(last[column])).pivot(index="seed", columns="loss", values="log")
        parts |= _against_reference(norms, name)
    return Measurement(parts, "logarithm of the ratio", cells=("focal/linear",))


def confident_mistakes(records: Records) -> Found:
    """Share of the linear model's mistakes with more than 90 % confidence, cross-entropy minus focal loss."""
    table = records.linear_mistakes
    if table.empty:
        return _NO_LINEAR
    shares = table.assign(sure=table["confidence"] > SURE).pivot_table(index="seed", columns="loss", values="sure")
    return Measurement(_against_reference(shares, "{}"), "of the mistakes", cells=("focal/linear",))


def translation(records: Records, *, column: str, unit: str, scale: float) -> Found:
    """A number of the translation model of focal loss minus that of each other loss."""
    runs = _translated(records, *(others := (REFERENCE, "LS")), "FL")
    if isinstance(runs, NotTested):
        return runs
    table = scale * runs.pivot(index="seed", columns="arm", values=column)
    own = is_own(str(runs["dataset"].iloc[0]))
    parts = {f"against {other}": _one((table["FL"] - table[other]).dropna(), own=own) for other in others}
    return Measurement(parts, unit, cells=cells_of(TRANSLATION, runs, "arm"))


def translation_temperature(records: Records, *, arms: Sequence[str], near: bool) -> Found:
    """The share of trainings whose temperature is 1, or is not."""
    runs = _translated(records, *arms)
    if isinstance(runs, NotTested):
        return runs
    hits = runs["temperature"].between(*ONE) == near
    return _counted(runs, {str(arm): some for arm, some in hits.groupby(runs["arm"], sort=False)})


def translation_agreement(records: Records) -> Found:
    """The share of seeds whose best BLEU and best ECE are, for every loss, at temperatures at most 0.2 apart."""
    runs = _translated(records, REFERENCE)
    if isinstance(runs, NotTested):
        return runs
    curves = records.translation_curves.merge(records.translation_runs[["arm", "seed", "dataset"]], on=["arm", "seed"])
    names = ["arm", "seed"]
    best = curves.loc[curves.groupby(names)["bleu"].idxmax()].set_index(names)["temperature"]
    calibrated = curves.loc[curves.groupby(names)["validation_ece"].idxmin()].set_index(names)["temperature"]
    # The three losses of one seed start alike: a seed counts once, and only if all its losses agree.
    agree = ((best - calibrated).abs() <= 2 * GRID + 1e-9).groupby(level="seed").all()
    return _counted(curves, {"seeds": agree})


def _compared(
    records: Records, values: pd.DataFrame, pairs: Pairs, unit: str, stage: str, *, log: bool = False, note: str = ""
) -> Found:
    """First arm minus second of each pair, paired by task and seed."""
    rows = {f"{arm} against {reference}": _differences(values, arm, reference, log=log) for arm, reference in pairs}
    parts = {name: some for name, some in rows.items() if len(some)}
    why = {name: _why_untested(records, *name.split(" against ")).reason for name in rows if name not in parts}
    if not parts:
        return NotTested("; ".join(filter(None, (*dict.fromkeys(why.values()), note))))
    return _measured(records, parts, unit, stage, values, note=note, missing=why)


def _measured(
    records: Records, parts: Mapping[str, pd.DataFrame], unit: str, stage: str, rows: pd.DataFrame, **about: Any
) -> Measurement:
    """Parts over tasks, each with a row per task and seed; `rows` are all that they come from."""
    found = {name: OverTasks(_tasks(records, some)) for name, some in parts.items()}
    return Measurement(found, unit, cells=cells_of(stage, rows, *_CELL), **about)


def _differences(values: pd.DataFrame, arm: str, reference: str, *, log: bool = False) -> pd.DataFrame:
    values = values.assign(value=np.log(values["value"])) if log else values
    pairs = _side_by_side(values, "value", _RUN, arm, reference)
    return (pairs[arm] - pairs[reference]).rename("value").reset_index()


def _tasks(records: Records, rows: pd.DataFrame) -> tuple[Task, ...]:
    """The values of each task, one per seed."""
    own = {task: is_own(dataset) for task, dataset in main_tasks(records)[["task", "dataset"]].to_numpy().tolist()}
    values = {str(task): some.tolist() for task, some in rows.groupby("task", sort=False)["value"]}
    return pooled(values, lambda task: own.get(task, False))


def _arms(pairs: Pairs) -> list[str]:
    return list(dict.fromkeys(arm for pair in pairs for arm in pair))


def _of(records: Records, name: str, *arms: str, evaluated: str | None = None) -> pd.DataFrame:
    """The rows of a table that belong to finished runs of some arms with the main recipe."""
    rows = finished(records, name, evaluated=evaluated)
    return rows[rows["task"].isin(main_tasks(records)["task"]) & rows["arm"].isin(arms)]


def _scored(records: Records, *arms: str) -> tuple[pd.DataFrame, str]:
    """The evaluations after the last epoch, and why those of some tasks are none."""
    rows = _of(records, "runs", *arms, evaluated="last")
    lacking = set(_of(records, "runs", *arms)["task"]) - set(rows["task"])
    return rows, _UNSCALED if lacking else ""


def _side_by_side(
    rows: pd.DataFrame, column: str, index: Sequence[str], value: str, reference: str, *, by: str = "arm"
) -> pd.DataFrame:
    """A number of two arms (or scalings) in two columns, for every key that has both."""
    table = rows.pivot(index=list(index), columns=by, values=column)
    return table.reindex(columns=[value, reference]).dropna()


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


def _one(values: pd.Series[float], *, own: bool = True) -> OverTasks:
    """Values of a single task, one per seed."""
    return OverTasks((Task("seeds", tuple(values.tolist()), own),))


def _against_reference(table: pd.DataFrame, name: str) -> dict[str, OverTasks]:
    """Cross-entropy minus each focal loss, of a table with a row per seed and a column per loss."""
    return {name.format(loss): _one(table[REFERENCE] - table[loss]) for loss in table.columns if loss != REFERENCE}


def _translated(records: Records, *arms: str) -> pd.DataFrame | NotTested:
    """The translation models of some losses that did not diverge, each loss with at least one."""
    table = records.translation_runs
    if table.empty:
        return NotTested("this profile does not translate")
    runs = table[~table["diverged"].astype(bool) & table["arm"].isin(arms)]
    lost = [arm for arm in arms if arm not in set(runs["arm"])]
    return NotTested(f"every translation model of {lost[0]} diverged") if lost else runs


def _counted(runs: pd.DataFrame, by_part: Mapping[str, pd.Series[bool]]) -> Measurement:
    own = is_own(str(runs["dataset"].iloc[0]))
    parts = {name: Share(int(some.sum()), len(some), own=own) for name, some in by_part.items()}
    return Measurement(parts, "of the trainings", cells=cells_of(TRANSLATION, runs, "arm"))
