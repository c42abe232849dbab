"""What the claims of the paper are judged by: values by task and seed, from the
records.

Text trainings are judged after their last epoch, as image trainings are; the epoch of
best validation accuracy, which the paper takes for texts, stands beside it: choosing
among a few epochs of a short training decides the calibration error more than the loss
does.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.focal import records as paper
from softmax_temperature.papers.focal.records import (
    FIXED,
    PROPOSED,
    RUN,
    SCALED,
    Records,
)
from softmax_temperature.papers.shared.claims import Measurement, not_tested
from softmax_temperature.papers.shared.sources import cells_of
from softmax_temperature.papers.shared.statistics import (
    OverTasks,
    Quantity,
    Share,
    Task,
    is_part,
    paired,
    pooled,
)
from softmax_temperature.params.focal import REFERENCE

# Deviation: Multi30k stands in for WMT14, on which no study here can train; the paper
# has no other task of translation.
DATA = (
    "cifar10",
    "cifar100",
    "tiny_imagenet",
    "newsgroups20",
    "sst_trees",
    "wmt14_en_de",
    "multi30k",
)
"""The paper's data sets; parts of them, as "cifar10-5000", count as the paper's too."""
OUTLIERS = ("svhn", "gaussian-noise")
"""The paper's out-of-distribution sets; the second is the corruption of CIFAR-10-C."""
GRID = 0.1  # Of the temperatures that are tried.
ONE = (0.95, 1.05)  # Around temperature 1, nearer than the next of the grid.
# A test NLL that ends at less than this multiple of its minimum is not called
# overfitted.
OVERFITTED = 1.05
EARLY = (
    150 / 350
)  # The share of the training before the learning rate first falls: "initially" in section 4.
SURE = 0.9  # Appendix C: a confident mistake.
CRITERIA = {
    "last": "last epoch",
    "accuracy": "by accuracy",
    "nll": "by NLL",
    "ece": "by ECE",
}  # Of Table J.1.
LOSSES = (REFERENCE, "LS", "FL")  # Of the translation models.
_SEED, _ARM = ["task", "seed"], ["task", "seed", "arm"]
_AGAINST = " against "
_UNSCALED = "at their last epoch, texts have no numbers after temperature scaling: focal/runs.csv lacks them"
Pairs = Sequence[tuple[str, str]]
Parts = Mapping[str, pd.DataFrame]  # With a difference per task and seed.
Count = Callable[
    [Records, pd.DataFrame, bool], Mapping[str, Quantity]
]  # Of models; the last: on the paper's data.
PAIR: Pairs = ((PROPOSED, REFERENCE),)  # What most claims compare.
BY_GAMMA: Pairs = (("FL-3", "FL-2"), ("FL-2", "FL-1"), ("FL-3", "FL-1"))


def last_epoch(
    records: Records,
    *,
    pairs: Pairs = PAIR,
    column: str = "ece",
    log: bool = False,
    texts: bool = False,
) -> Measurement:
    """A test number after the last epoch, first arm minus second; of a single pair also
    at the selected epoch.
    """
    known = paper.main_tasks(records)
    known = known[known["embeddings"] != ""] if texts else known
    if known.empty:
        return not_tested("no task of this profile is on texts")
    rows = _of(records, "history", *np.unique(pairs)).query(
        "split == 'test' and task in @known.task"
    )
    rows = rows[rows["epoch"] == rows.groupby(RUN)["epoch"].transform("max")]
    selected: tuple[Task, ...] = ()
    if len(pairs) == 1:
        runs = _of(records, "runs", *pairs[0]).query("scaling == 'none'")
        runs = runs[runs["task"].isin(known.loc[known["select"] != "last", "task"])]
        [pair] = _pairs(
            runs, pairs, paper.LONG_NAMES.get(column, column), log=log
        ).values()
        selected = _tasks(records, pair)
    note = ", ".join(f"{task.name} {{}}" for task in selected)
    note = f"at the epoch of best validation accuracy: {note}" if selected else ""
    beside = tuple(float(np.mean(task.values)) for task in selected)
    unit = ("logarithm of the ratio of " if log else "") + {"ece": "ECE"}.get(
        column, column
    )
    return _measured(
        records,
        rows,
        _pairs(rows, pairs, column, log=log),
        unit,
        note=note,
        beside=beside,
    )


def evaluated(
    records: Records,
    *,
    arm: str = PROPOSED,
    scaling: str = SCALED,
    column: str = paper.ECE,
    unit: str = "ECE",
) -> Measurement:
    """A number of the evaluation, of an arm minus of cross-entropy."""
    rows, note = _scored(records, scaling, arm, REFERENCE)
    parts = _pairs(rows, [(arm, REFERENCE)], column)
    return _measured(records, rows, parts, unit, stage=paper.EVALUATION, note=note)


def feature_norms(records: Records) -> Measurement:
    """Mean over the epochs of the feature norm on training data, as logarithms, of
    neighbours in the paper's order.
    """
    pairs = (*BY_GAMMA[:2], ("FL-1", REFERENCE), ("FL-3", REFERENCE))
    rows = _of(records, "history", *np.unique(pairs)).query("split == 'train'")
    means = rows.groupby(_ARM)["feature_norm"].mean().reset_index()
    parts = _pairs(means, pairs, "feature_norm", log=True)
    return _measured(records, means, parts, "logarithm of the ratio of norms")


def gradient_norms(records: Records) -> Measurement:
    """Mean logarithm of last-layer gradient norms with FL-3 minus with cross-entropy,
    at the later recorded epochs.
    """
    rows = _of(records, "gradient_norms", REFERENCE, FIXED)
    rows = rows[rows["epoch"] > rows.groupby("task")["epoch"].transform("min")]
    rows = rows.assign(
        total=rows["count"] * np.log(np.sqrt(rows["low"] * rows["high"]))
    )
    sums = rows.groupby([*_ARM, "epoch"])[["total", "count"]].sum()
    means = (
        (sums["total"] / sums["count"])
        .groupby(_ARM)
        .mean()
        .rename("norm")
        .reset_index()
    )
    return _measured(
        records, means, _pairs(means, [(FIXED, REFERENCE)], "norm"), "log gradient norm"
    )


def temperature(records: Records, *, arm: str = PROPOSED) -> Measurement:
    """The temperature of least validation ECE."""
    rows, note = _scored(records, SCALED, arm)
    if rows.empty:
        return not_tested(note or _why_untested(records, arm))
    bound = int(rows["at_bound"].sum())
    notes = "; ".join(
        filter(None, (f"{bound} at the bound of the grid" if bound else "", note))
    )
    part = OverTasks(
        _tasks(records, rows.assign(difference=rows["temperature"])), resolution=GRID
    )
    return Measurement(
        {arm: part},
        "temperature",
        notes,
        cells=cells_of(paper.EVALUATION, rows, "task", "arm"),
    )


def overfitting(records: Records) -> Measurement:
    """Change of the NLL of wrong samples, and minus that of right ones, from the best
    epoch to the last.
    """
    rows = _of(records, "history", REFERENCE).query("split == 'test'")
    runs, sides = rows.groupby(_SEED), ["nll", "nll_right", "nll_wrong"]
    best, last = (
        rows.loc[at].set_index(_SEED)[sides]
        for at in (runs["nll"].idxmin(), runs["epoch"].idxmax())
    )
    overfitted = last["nll"] >= OVERFITTED * best["nll"]
    if not overfitted.any():
        nothing = f"no run's test NLL ends at {OVERFITTED} times its minimum: nothing is overfitted"
        return not_tested(nothing if len(rows) else _why_untested(records, REFERENCE))
    change = (last - best)[overfitted].dropna().reset_index()
    signs = {
        "misclassified": change["nll_wrong"],
        "right, sign reversed": -change["nll_right"],
    }
    parts = {name: change.assign(difference=values) for name, values in signs.items()}
    note = f"{overfitted.sum()} of {len(overfitted)} runs overfit"
    return _measured(records, rows, parts, "nats", REFERENCE, note=note)


def weight_norms(records: Records) -> Measurement:
    """Norm with FL-3 minus norm with cross-entropy early on, and the other way round at
    the end.
    """
    rows = _of(records, "history", REFERENCE, FIXED)
    table = paired(
        rows.query("split == 'test'"),
        FIXED,
        REFERENCE,
        "weight_norm",
        by=[*_SEED, "epoch"],
    )
    last = table.groupby(_SEED)["epoch"].transform("max")
    early = (
        table[table["epoch"] <= (EARLY * last).clip(lower=1)]
        .groupby(_SEED)["difference"]
        .mean()
        .reset_index()
    )
    late = table[table["epoch"] == last].assign(difference=-table["difference"])
    parts = {f"{FIXED} above CE at first": early, f"CE above {FIXED} in the end": late}
    return _measured(records, rows, parts, "weight norm", REFERENCE, FIXED)


def stopped_early(records: Records) -> Measurement:
    """ECE of FLSD-53 minus that of cross-entropy at the epochs that validation data
    choose, by each criterion.
    """
    rows = _of(records, "early_stopping", REFERENCE, PROPOSED)
    groups = rows.groupby("criterion", sort=False)
    parts = {
        CRITERIA[str(name)]: paired(some, PROPOSED, REFERENCE, paper.ECE, by=_SEED)
        for name, some in groups
    }
    return _measured(records, rows, parts, "ECE", REFERENCE, PROPOSED)


def outliers(records: Records, *, scaled: bool = False) -> Measurement:
    """AUROC of FLSD-53 minus that of cross-entropy; or of cross-entropy, scaled minus
    not scaled.
    """
    if records.ood.empty:
        return not_tested("no task of this profile has an out-of-distribution set")
    across, pair, arms = (
        ("scaling", (SCALED, "none"), [REFERENCE])
        if scaled
        else ("arm", PAIR[0], PAIR[0])
    )
    rows = _of(records, "ood", *arms)
    rows = rows if scaled else rows.query("scaling == 'none'")
    table = paired(rows, *pair, "auroc", by=[*_SEED, "ood"], across=across)
    is_printed = table["ood"].isin(OUTLIERS)
    own = table[is_printed].groupby(_SEED)["difference"].mean().reset_index()
    others = table[~is_printed].assign(
        task=table["task"] + ", " + table["ood"]
    )  # No task of the paper's.
    parts = {"AUROC": pd.concat([own, others.sort_values("task")])}
    return _measured(records, rows, parts, "AUROC", *arms, stage=paper.EVALUATION)


def linear(records: Records, *, mistakes: bool = False) -> Measurement:
    """The linear model's norms at the end, or how many of its mistakes are confident,
    CE minus each focal loss.
    """
    history, wrong, names = (
        records.linear_history,
        records.linear_mistakes,
        ["loss", "seed"],
    )
    rows = history[history["epoch"] == history.groupby(names)["epoch"].transform("max")]
    values = {
        f"{name} norm, ": rows.assign(value=np.log(rows[f"{name}_norm"]))
        for name in ("weight", "logit")
    }
    if mistakes:
        sure = wrong.assign(value=wrong["confidence"] > SURE)
        values = {"": sure.groupby(names)["value"].mean().reset_index()}
    parts = {
        name + loss: _over_seeds(some, REFERENCE, loss, across="loss")
        for name, some in values.items()
        for loss in sorted(set(some["loss"]) - {REFERENCE})
    }
    return Measurement(
        parts,
        "of the mistakes" if mistakes else "logarithm of the ratio",
        cells=(paper.LINEAR,),
    )


def translation(
    records: Records,
    *,
    of: Count,
    arms: Sequence[str] = LOSSES,
    unit: str = "of the trainings",
) -> Measurement:
    """What `of` finds in the translation models of some losses that did not diverge,
    each loss with at least one.
    """
    runs = records.translation_runs
    if runs.empty:
        return not_tested("this profile does not translate")
    runs = runs[~runs["diverged"].astype(bool) & runs["arm"].isin(arms)]
    if lost := [arm for arm in arms if arm not in set(runs["arm"])]:
        return not_tested(f"every translation model of {lost[0]} diverged")
    parts = of(records, runs, is_part(runs["dataset"].iloc[0], DATA))
    return Measurement(parts, unit, cells=cells_of(paper.TRANSLATION, runs, "arm"))


def against_others(
    _: Records, runs: pd.DataFrame, own: bool, *, column: str, scale: float = 1
) -> dict[str, OverTasks]:
    """Of `translation`: a number of the model of focal loss minus that of each other
    loss.
    """
    rows = runs.assign(value=scale * runs[column])
    return {
        f"against {other}": _over_seeds(rows, "FL", other, own=own)
        for other in LOSSES[:-1]
    }


def at_one(
    _: Records, runs: pd.DataFrame, own: bool, *, near: bool = True
) -> dict[str, Share]:
    """Of `translation`: the share of trainings whose temperature is 1, or is not."""
    hits = (runs["temperature"].between(*ONE) == near).groupby(runs["arm"], sort=False)
    return {str(arm): Share(int(some.sum()), len(some), own=own) for arm, some in hits}


def in_agreement(records: Records, _: pd.DataFrame, own: bool) -> dict[str, Share]:
    """Of `translation`: the share of seeds whose best BLEU and ECE are, for every loss,
    at most 0.2 apart.
    """
    at = records.translation_curves.set_index("temperature").groupby(["arm", "seed"])
    # The three losses of one seed start alike: a seed counts once, and only if all its
    # losses agree.
    distances = (at["bleu"].idxmax() - at["validation_ece"].idxmin()).abs()
    agree = (distances <= 2 * GRID + 1e-9).groupby(level="seed").all()
    return {"seeds": Share(int(agree.sum()), len(agree), own=own)}


def _of(
    records: Records, name: str, *arms: str, evaluated: str | None = None
) -> pd.DataFrame:
    """The rows of a table that belong to finished runs of some arms with the main
    recipe.
    """
    rows = paper.finished(records, name, evaluated=evaluated)
    return rows[
        rows["task"].isin(paper.main_tasks(records)["task"]) & rows["arm"].isin(arms)
    ]


def _scored(records: Records, scaling: str, *arms: str) -> tuple[pd.DataFrame, str]:
    """The evaluations after the last epoch, and why those of some tasks are none."""
    rows = _of(records, "runs", *arms, evaluated="last")
    lacking = set(_of(records, "runs", *arms)["task"]) - set(rows["task"])
    return rows[rows["scaling"] == scaling], _UNSCALED if lacking else ""


def _pairs(
    rows: pd.DataFrame, pairs: Pairs, column: str, *, log: bool = False
) -> Parts:
    rows = rows.assign(value=np.log(rows[column]) if log else rows[column])
    return {
        _AGAINST.join(pair): paired(rows, *pair, "value", by=_SEED) for pair in pairs
    }


def _measured(
    records: Records,
    rows: pd.DataFrame,
    parts: Parts,
    unit: str,
    *arms: str,
    stage: str = paper.TRAINING,
    **about: Any,
) -> Measurement:
    """Parts over tasks from some rows of a stage; a pair names its arms. `about` is
    what a note says, and `beside`.
    """
    found = {
        name: OverTasks(_tasks(records, some))
        for name, some in parts.items()
        if len(some)
    }
    why = {
        name: _why_untested(records, *(arms or name.split(_AGAINST)))
        for name in parts
        if name not in found
    }
    return Measurement(
        found, unit, missing=why, cells=cells_of(stage, rows, "task", "arm"), **about
    )


def _tasks(records: Records, rows: pd.DataFrame) -> tuple[Task, ...]:
    """The values of each task, one per seed."""
    datasets = paper.main_tasks(records).set_index("task")["dataset"]
    values = {
        str(task): some.tolist()
        for task, some in rows.groupby("task", sort=False)["difference"]
    }
    return pooled(values, lambda task: is_part(datasets.get(task, ""), DATA))


def _over_seeds(
    rows: pd.DataFrame, one: str, other: str, across: str = "arm", *, own: bool = True
) -> OverTasks:
    """The differences within a single task."""
    values = paired(rows, one, other, "value", by=["seed"], across=across)["difference"]
    return OverTasks((Task("seeds", tuple(values.tolist()), own),))


def _why_untested(records: Records, *arms: str) -> str:
    """Why no run, or no pair of runs, of some arms with the main recipe is there."""
    trainings = records.trainings[
        records.trainings["task"].isin(paper.main_tasks(records)["task"])
    ]
    for arm in arms:
        diverged = trainings.loc[trainings["arm"] == arm, "diverged"]
        if diverged.all():
            return (
                f"every run of {arm} diverged"
                if len(diverged)
                else f"no task of this profile trains {arm}"
            )
    return f"no seed has a finished run of {' and '.join(arms)} that was measured"
