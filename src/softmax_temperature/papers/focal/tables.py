"""The tables, ours beside the printed ones, and the ablation of the recipe.

They are long, one row per data set, network, method and metric; `wide` lays them out as the paper does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType

import numpy as np
import pandas as pd
from scipy import stats

from softmax_temperature.papers.focal.records import (
    EVALUATION,
    FOCAL_ARMS,
    MAIN_ARMS,
    PROPOSED,
    REFERENCE,
    RUN,
    SCALED,
    SLUG,
    TRAINING,
    TRANSLATION,
    WRITTEN_ARMS,
    Records,
    finished,
    main_tasks,
    other_arms,
    tasks,
)
from softmax_temperature.papers.shared import layout
from softmax_temperature.papers.shared.comparison import DIVERGED, MEASURED, beside_printed, mean_and_sd
from softmax_temperature.papers.shared.sources import CELLS, cell_of_each, together
from softmax_temperature.papers.shared.statistics import LEVEL
from softmax_temperature.papers.shared.tables import PUBLISHED, published, read_csv


@dataclass(frozen=True)
class Metric:
    """A number of a table: its name in `data/published/focal.csv` and where the records hold it."""

    name: str
    column: str
    scaling: str = "none"
    complement: bool = False  # One minus the column: an error from an accuracy.


@dataclass(frozen=True)
class Spec:
    """A table; methods and metrics are in the paper's order."""

    title: str
    arms: tuple[str, ...]
    metrics: tuple[Metric, ...]
    source: str = "runs"  # The table of the records.
    condition: str | None = None  # A column of the source that names a row beside data set and network.
    printed: bool = False  # Whether `data/published/focal.csv` has its numbers.
    printed_only: bool = False  # Leave out what has no printed counterpart.
    classes: int = 2  # The least number that a task must have.


def _before_and_after(name: str, column: str) -> tuple[Metric, Metric]:
    return Metric(name, column), Metric(f"{name}_after_scaling", column, SCALED)


_ECE, _ECE_AFTER = _before_and_after("ece", "expected_calibration_error")
_ADAPTIVE = _before_and_after("adaptive_ece", "adaptive_calibration_error")
_CLASSWISE = _before_and_after("classwise_ece", "classwise_calibration_error")
_NLL, _NLL_AFTER = _before_and_after("nll", "negative_log_likelihood")
_MCE, _MCE_AFTER = _before_and_after("mce", "maximum_calibration_error")
_AUROC = _before_and_after("auroc", "auroc")
_T = Metric("temperature", "temperature", SCALED)
_ERROR = Metric("error", "accuracy", complement=True)
_TOP = (Metric("top1", "accuracy"), Metric("top5", "top5_accuracy"))
_CONFIDENT = tuple(
    Metric(f"s99_{name}{after}", f"confident_{name}", scaling)
    for after, scaling in (("", "none"), ("_after_scaling", SCALED))
    for name in ("share", "accuracy")
)
_RELEASED = (
    Metric("test error %", "accuracy", complement=True),
    Metric("ECE% pre T (15 bins)", "expected_calibration_error"),
    Metric("ECE% post T=2.5", "expected_calibration_error", SCALED),
    Metric("MCE% pre T", "maximum_calibration_error"),
    Metric("MCE% post T=2.5", "maximum_calibration_error", SCALED),
    Metric("optimal T", "temperature", SCALED),
)

ABLATED = (_ERROR, _ECE, _ECE_AFTER, _T, _NLL)
"""What a variant of a recipe is compared by."""

SPECS: Mapping[str, Spec] = {
    "table_1": Spec("Table 1", MAIN_ARMS, (_ECE, _ECE_AFTER, _T), printed=True),
    "table_2": Spec("Table 2", MAIN_ARMS, (_ERROR,), printed=True),
    "table_3": Spec("Table 3", MAIN_ARMS, _AUROC, source="ood", condition="ood", printed=True),
    "table_f1": Spec("Table F.1", MAIN_ARMS, (*_ADAPTIVE, _T)),
    "table_f2": Spec("Table F.2", MAIN_ARMS, (*_CLASSWISE, _T)),
    "table_f3": Spec("Table F.3", FOCAL_ARMS, (_ECE, _ECE_AFTER, _T)),
    "table_f4": Spec("Table F.4", FOCAL_ARMS, (*_ADAPTIVE, _T)),
    "table_f5": Spec("Table F.5", FOCAL_ARMS, (*_CLASSWISE, _T)),
    "table_f6": Spec("Table F.6", FOCAL_ARMS, (_ERROR,)),
    "table_f7": Spec("Table F.7", MAIN_ARMS, _TOP, classes=6),  # Of five classes, all are among the top five.
    "table_f8": Spec("Table F.8", MAIN_ARMS, (_NLL,)),
    "table_f9": Spec("Table F.9", MAIN_ARMS, (_NLL_AFTER,)),
    "table_f10": Spec("Table F.10", MAIN_ARMS, (_MCE,)),
    "table_f11": Spec("Table F.11", MAIN_ARMS, (_MCE_AFTER,)),
    "table_h1": Spec("Table H.1", (REFERENCE, "MMCE", PROPOSED), _CONFIDENT),
    # Deviation: which focal loss Table J.1 has is not said; this is FLSD-53, the method that the paper proposes.
    "table_j1": Spec(
        "Table J.1", (REFERENCE, PROPOSED), (_ERROR, _ECE), source="early_stopping", condition="criterion"
    ),
    # The weights that the authors released, by their own notebooks, with more digits than the tables.
    "released": Spec("evaluation notebook", (REFERENCE,), _RELEASED, printed=True, printed_only=True),
    "released_ood": Spec(
        "notebook evaluate_single_model_ood.ipynb",
        (REFERENCE,),
        (Metric("AUROC% pre T (entropy)", "auroc"),),
        source="ood",
        condition="ood",
        printed=True,
        printed_only=True,
    ),
}
"""The paper's tables, by the name of their file."""
SHIFT = Spec("Labelled shift", MAIN_ARMS, (_ERROR, _ECE, _ECE_AFTER), source="shift", condition="shifted")
"""A table of ours: test images of another data set with the same classes."""

NOTHING_TO_COMPARE = "no finished run of the main recipe"
_K1_TITLE = "text of appendix K"
"""Table K.1 in `data/published/focal.csv`."""

# Deviation: where CIFAR-10-C is not at hand, Gaussian noise of its severity 5 is compared with what is printed for it.
_PRINTED_OUTLIERS = {"svhn": "SVHN", "gaussian-noise": "CIFAR-10-C (Gaussian noise sev 5)"}
_TEXTS = ("20 Newsgroups", "SST Binary")
_COLUMNS = (
    *("published", "ours", "ours_sd", "seeds", "diverged_seeds", "difference_in_standard_errors"),
    *("embeddings", "differs", "status", CELLS),
)
_NO_SD = f" (± {layout.MISSING})"
_ABLATION = (
    *("task", "dataset", "network", "variant", "method", "metric", "main", "changed", "difference", "difference_sd"),
    *("seeds", "diverged_seeds", "embeddings", "status", CELLS),
)
_BEST = "best BLEU over temperatures"
_K1: Mapping[str, Mapping[str, str]] = {
    "ECE": {"ece": "ece", "ece_after_scaling": "ece_after_scaling", "temperature": "temperature"},
    "BLEU": {"bleu": "bleu", "bleu_after_scaling": "bleu_after_scaling"},
    _BEST: {"best_bleu": "bleu", "best_bleu_temperature": "temperature"},
}
"""For each row of Table K.1, the columns of the records and our names of them."""
_K1_PRINTED = {
    "best test BLEU over temperatures": (_BEST, "bleu", 100),
    "optimal T (validation)": ("ECE", "temperature", 1),
}
"""Where the printed numbers belong, and how many of their units make one of ours."""


def table(records: Records, name: str) -> pd.DataFrame:
    """One of the paper's tables.

    Args:
        records: the paper's.
        name: a key of `SPECS`, or "table_shift".

    Returns:
        Columns task (empty where nothing ran), dataset and network (as printed, or the task's own), criterion (Table
        J.1 alone), method, metric; published, ours, ours_sd, seeds, diverged_seeds, difference_in_standard_errors (see
        `beside_printed`; the error of a single seed is that of its bootstrap over test samples), embeddings (where word
        vectors come from; empty for images), differs (how else our task differs from the paper's), status, cells. All
        numbers but temperatures and NLL are fractions.
    """
    spec = {**SPECS, "table_shift": SHIFT}[name]
    # An out-of-distribution or shifted set is part of the data set's name.
    names = ["dataset", "network", *(["criterion"] if spec.condition == "criterion" else []), "method", "metric"]
    return beside_printed(
        _rows(records, spec),
        _printed(spec, names),
        ["task", *names],
        columns=_COLUMNS,
        profile=_profile,
        printed_only=spec.printed_only,
    )


def table_k1(records: Records) -> pd.DataFrame:
    """Table K.1 with the printed numbers of the text; columns as in `table`, without embeddings and differs."""
    names = ["dataset", "network", "criterion", "method", "metric"]
    printed = published(SLUG, _K1_TITLE).rename(columns={"model": "network"})
    criterion, metric, unit = zip(*printed["metric"].map(_K1_PRINTED), strict=True)
    printed = printed.assign(
        criterion=criterion, metric=metric, published=printed["value"].astype(float) / np.array(unit)
    )
    runs = records.translation_runs.astype({"diverged": bool})
    rows = [
        {"task": f"translation-{dataset}", "dataset": "WMT14 En-De" if dataset == "wmt14_en_de" else dataset}
        | {"network": "Transformer", "criterion": criterion, "method": arm, "metric": metric, "runs": len(some)}
        | {"ours": done[column].mean(), "ours_sd": done[column].std(), "seeds": len(done)}
        | {"diverged_seeds": len(some) - len(done), CELLS: f"{TRANSLATION}/{arm}"}
        for criterion, metrics in _K1.items()
        for (dataset, arm), some in runs.groupby(["dataset", "arm"], sort=False)
        for done in [some[~some["diverged"]]]
        for column, metric in metrics.items()
    ]
    return beside_printed(
        pd.DataFrame(rows, columns=["task", *names, "ours", "ours_sd", "seeds", "runs", "diverged_seeds", CELLS]),
        printed[[*names, "published"]],
        ["task", *names],
        columns=[name for name in _COLUMNS if name not in {"embeddings", "differs"}],
        profile=_profile,
    )


def ablation(records: Records) -> pd.DataFrame:
    """Each variant of a recipe, of a method, or of the search for a temperature, minus the main one.

    Returns:
        Columns task (the main one), dataset, network, variant, method, metric; main and changed (means over the seeds
        that finished with both), difference (changed minus main, mean over these seeds), difference_sd, seeds,
        diverged_seeds (of the variant), embeddings (as in `table`), status, cells. All numbers but temperatures and NLL
        are fractions.
    """
    changes = _changes(records)
    keys = ["task", "arm", "by", "metric"]
    found = _pairs(records, changes).groupby(keys, sort=False)
    means = found.agg(
        main=("main", "mean"), changed=("value", "mean"), **mean_and_sd("difference"), seeds=("difference", "count")
    )
    rows = changes.merge(_names(ABLATED), how="cross").merge(means.reset_index(), how="left", on=keys)
    rows = rows[(rows["by"] == SCALED) | rows["seeds"].notna()].fillna({"seeds": 0}).astype({"seeds": int})
    not_measured = np.where(rows["runs"] == rows["diverged_seeds"], DIVERGED, NOTHING_TO_COMPARE)
    both = (cell_of_each(EVALUATION, rows, *names) for names in (("task", "arm"), ("main_task", "method")))
    rows = rows.assign(
        task=rows["main_task"],
        status=np.where(rows["seeds"] > 0, MEASURED, not_measured),
        cells=[together(cells) for cells in zip(*both, strict=True)],
    )
    return rows.merge(tasks(records)[["task", "embeddings"]], on="task", how="left")[list(_ABLATION)]


def not_in_a_table() -> pd.DataFrame:
    """The printed numbers that belong to no table, because they are ranges over several networks."""
    rows = read_csv(PUBLISHED / f"{SLUG}.csv").rename(columns={"model": "network"})
    rows = rows[~rows["table"].isin({_K1_TITLE, *(spec.title for spec in SPECS.values() if spec.printed)})]
    rows = rows.assign(status="a range over two networks, see Table 1")
    return rows[["table", "dataset", "network", "method", "metric", "value", "unit", "status"]].reset_index(drop=True)


wide = layout.wide


def wide_ablation(table: pd.DataFrame) -> pd.DataFrame:
    """The ablation for a reader: one row per variant and method, one column per metric, "main → changed (± sd)".

    Args:
        table: as `ablation` returns it; the standard deviation is that of the difference over seeds.
    """
    keys = ["dataset", "network", "embeddings", "variant", "method", "seeds", CELLS]
    numbers = {name: table[name].map(layout.number) for name in ("main", "changed", "difference_sd")}
    texts = numbers["main"] + " → " + numbers["changed"] + (" (± " + numbers["difference_sd"] + ")").replace(_NO_SD, "")
    cells = table.assign(text=texts.where(table["status"] == MEASURED, table["status"]))
    made = cells.groupby([*keys, "metric"], sort=False, dropna=False)["text"].first().unstack("metric", sort=False)
    return made[list(table["metric"].unique())].reset_index().rename_axis(columns=None)


def _names(metrics: tuple[Metric, ...]) -> pd.DataFrame:
    return pd.DataFrame({"metric": [metric.name for metric in metrics]})


def _rows(records: Records, spec: Spec) -> pd.DataFrame:
    """One row per number of the table that the trainings of the main tasks should give; those that diverged too."""
    condition = [spec.condition] if spec.condition else []
    rows = main_tasks(records)
    rows = rows.assign(differs=_differs(rows))[rows["classes"] >= spec.classes]
    rows = rows[["task", "dataset", "network", "printed_dataset", "printed_network", "embeddings", "differs"]]
    if condition:
        rows = rows.merge(getattr(records, spec.source)[["task", *condition]].drop_duplicates(), on="task")
    others = other_arms(records) if spec.arms == MAIN_ARMS and not spec.printed_only else []
    rows = rows.merge(pd.DataFrame({"arm": [*spec.arms, *others]}), how="cross")
    rows = rows.merge(_trained(records), on=["task", "arm"]).merge(_names(spec.metrics), how="cross")
    values = pd.concat([_measured(records, spec.source, metric, metric.scaling) for metric in spec.metrics])
    keys = ["task", "arm", *condition, "metric"]
    means = values.groupby(keys, sort=False).agg(
        **mean_and_sd("ours", "value"), seeds=("value", "count"), error=("error", "first")
    )
    rows = rows.merge(means.reset_index(), how="left", on=keys).fillna({"seeds": 0}).astype({"seeds": int})
    stage = TRAINING if spec.source == "early_stopping" else EVALUATION
    rows = rows.rename(columns={"arm": "method"}).assign(cells=cell_of_each(stage, rows, "task", "arm"))
    is_printed = rows["printed_dataset"] != ""
    for column in ("dataset", "network"):
        rows[column] = rows[f"printed_{column}"].where(is_printed, rows[column])
    if spec.condition in {"ood", "shifted"}:
        other = rows[spec.condition]
        rows["dataset"] += " vs " + other.replace(_PRINTED_OUTLIERS).where(is_printed, other)
    return rows


def _trained(records: Records) -> pd.DataFrame:
    """Task, arm, runs, diverged_seeds."""
    runs = records.trainings.astype({"diverged": int}).groupby(["task", "arm"], sort=False)["diverged"]
    return runs.agg(runs="size", diverged_seeds="sum").reset_index()


def _differs(rows: pd.DataFrame) -> list[str]:
    """How our tasks differ: a shorter training than that behind what is printed, and what the parameters say."""
    is_shorter = (rows["printed_dataset"] != "") & (rows["epochs"] < rows["planned_epochs"])
    lengths = rows["epochs"].astype(str) + " of " + rows["planned_epochs"].astype(str) + " epochs"
    parts = zip(lengths.where(is_shorter, ""), rows["differs"].astype(str), strict=True)
    return [", ".join(filter(None, both)) for both in parts]


def _measured(records: Records, source: str, metric: Metric, scaling: str) -> pd.DataFrame:
    """The rows of the finished runs that hold a metric, with the columns metric, value and error, its standard error.

    The error is from the bootstrap over test samples: the width of the 90 % interval over 2 × 1.645.
    """
    rows = finished(records, source)
    if "scaling" in rows:
        rows = rows[rows["scaling"] == scaling]
    low, high = f"{metric.column}_low", f"{metric.column}_high"
    width = rows[high] - rows[low] if low in rows else np.nan
    value = 1 - rows[metric.column] if metric.complement else rows[metric.column]
    normal = float(stats.norm.ppf((1 + LEVEL) / 2))
    return rows.assign(metric=metric.name, value=value, error=width / (2 * normal))


def _printed(spec: Spec, keys: list[str]) -> pd.DataFrame:
    """The printed numbers of the table, in our names and units."""
    if not spec.printed:
        return pd.DataFrame(columns=[*keys, "published"]).astype({"published": float})
    rows = published(SLUG, spec.title).rename(columns={"model": "network"})
    return rows[keys].assign(published=rows["value"].astype(float) / np.where(rows["unit"] == "percent", 100, 1))


def _profile(dataset: str, network: str) -> str:
    if dataset in _TEXTS:
        return "text_cpu"
    return "cifar10" if network == "ResNet-50" and dataset.partition(" vs ")[0] == "CIFAR-10" else "paper"


def _changes(records: Records) -> pd.DataFrame:
    """Task, arm, runs, diverged_seeds and `by` of each variant; main_task and method that it is a variant of.

    `by` is the criterion of the temperature behind numbers after scaling.
    """
    about = tasks(records)[["task", "dataset", "network", "variant", "variant_of"]]
    trained = _trained(records).merge(about, on="task")
    trained = trained.assign(method=trained["arm"], by=SCALED)
    main = trained[trained["variant"] == ""].assign(main_task=lambda rows: rows["task"])
    recipes = trained[trained["variant"] != ""].assign(main_task=lambda rows: rows["variant_of"])
    released = main[main["arm"].isin(WRITTEN_ARMS)].assign(variant="as written")
    released["method"] = released["method"].replace(dict(WRITTEN_ARMS))
    by_likelihood = main.assign(variant="temperature by NLL", by="nll")
    return pd.concat([recipes, released, by_likelihood], ignore_index=True)


def _pairs(records: Records, changes: pd.DataFrame) -> pd.DataFrame:
    """One row per metric and seed that finished both a variant and the main one: value, main, difference."""
    scaled = [metric for metric in ABLATED if metric.scaling == SCALED]
    parts = [_measured(records, "runs", metric, metric.scaling).assign(by=SCALED) for metric in ABLATED]
    parts += [_measured(records, "runs", metric, "nll").assign(by="nll") for metric in scaled]
    values = pd.concat(parts)[[*RUN, "metric", "by", "value"]]
    main = values[values["by"] == SCALED].drop(columns="by")
    main = main.rename(columns={"task": "main_task", "arm": "method", "value": "main"})
    pairs = values.merge(changes[["task", "arm", "by", "main_task", "method"]], on=["task", "arm", "by"])
    pairs = pairs.merge(main, on=["main_task", "method", "metric", "seed"])
    return pairs.assign(difference=pairs["value"] - pairs["main"])


TABLES: Mapping[str, Callable[[Records], pd.DataFrame]] = MappingProxyType(
    {
        **{name: partial(table, name=name) for name in (*SPECS, "table_shift")},
        "table_k1": table_k1,
        "not_in_a_table": lambda _: not_in_a_table(),
        "ablation": ablation,
    }
)
"""Every table, by the name of its file."""
