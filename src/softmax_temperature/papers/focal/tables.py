"""The tables, ours beside the printed ones, and the ablation of the recipe.

They are long, one row per data set, network, method and metric; `wide` lays them out as
the paper does.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy import stats

from softmax_temperature.papers.focal import records as paper
from softmax_temperature.papers.focal.records import (
    FOCAL_ARMS,
    MAIN_ARMS,
    PROPOSED,
    SCALED,
    Records,
)
from softmax_temperature.papers.shared import comparison
from softmax_temperature.papers.shared.comparison import (
    DIFFERENCE,
    DIVERGED,
    MEASURED,
    beside_printed,
    mean_and_sd,
)
from softmax_temperature.papers.shared.sources import CELLS, cell_of_each, together
from softmax_temperature.papers.shared.statistics import LEVEL
from softmax_temperature.papers.shared.tables import (
    PUBLISHED,
    is_share,
    published,
    read_csv,
)
from softmax_temperature.params.focal import REFERENCE

AFTER = "_after_scaling"
"""The end of the name of a metric at the temperature of least validation ECE; "+" in
the tables' specifications.
"""
METRICS = {
    "ece": paper.ECE, "mce": "maximum_calibration_error", "nll": "negative_log_likelihood", "auroc": "auroc",
    "adaptive_ece": "adaptive_calibration_error", "classwise_ece": "classwise_calibration_error",
    "error": "accuracy", "top1": "accuracy", "top5": "top5_accuracy", "temperature": "temperature",
    "s99_share": "confident_share", "s99_accuracy": "confident_accuracy",
}  # fmt: skip
"""Where the records hold a metric, named as in `data/published/focal.csv`."""
RELEASED = {
    "error": "test error %", "ece": "ECE% pre T (15 bins)", "ece+": "ECE% post T=2.5", "mce": "MCE% pre T",
    "mce+": "MCE% post T=2.5", "temperature": "optimal T", "auroc": "AUROC% pre T (entropy)",
}  # fmt: skip
"""The metrics as the authors' notebooks name them."""
_IN_FULL = {f"{metric}+": f"{metric}{AFTER}" for metric in METRICS}


class Spec(NamedTuple):
    """A table; methods and metrics are in the paper's order."""

    title: str
    arms: tuple[str, ...]
    metrics: str
    source: str = "runs"  # The table of the records.
    condition: str = (
        ""  # A column of the source that names a row beside data set and network.
    )
    # The "table" or "notebook" of `data/published/focal.csv`; the latter has nothing of
    # ours alone.
    printed: str = ""
    classes: int = 2  # The least number that a task must have.


SPECS: Mapping[str, Spec] = {
    "table_1": Spec("Table 1", MAIN_ARMS, "ece ece+ temperature", printed="table"),
    "table_2": Spec("Table 2", MAIN_ARMS, "error", printed="table"),
    "table_3": Spec(
        "Table 3", MAIN_ARMS, "auroc auroc+", "ood", "ood", printed="table"
    ),
    "table_f1": Spec("Table F.1", MAIN_ARMS, "adaptive_ece adaptive_ece+ temperature"),
    "table_f2": Spec(
        "Table F.2", MAIN_ARMS, "classwise_ece classwise_ece+ temperature"
    ),
    "table_f3": Spec("Table F.3", FOCAL_ARMS, "ece ece+ temperature"),
    "table_f4": Spec("Table F.4", FOCAL_ARMS, "adaptive_ece adaptive_ece+ temperature"),
    "table_f5": Spec(
        "Table F.5", FOCAL_ARMS, "classwise_ece classwise_ece+ temperature"
    ),
    "table_f6": Spec("Table F.6", FOCAL_ARMS, "error"),
    "table_f7": Spec(
        "Table F.7", MAIN_ARMS, "top1 top5", classes=6
    ),  # Of five classes, all are among the top five.
    "table_f8": Spec("Table F.8", MAIN_ARMS, "nll"),
    "table_f9": Spec("Table F.9", MAIN_ARMS, "nll+"),
    "table_f10": Spec("Table F.10", MAIN_ARMS, "mce"),
    "table_f11": Spec("Table F.11", MAIN_ARMS, "mce+"),
    "table_h1": Spec(
        "Table H.1",
        (REFERENCE, "MMCE", PROPOSED),
        "s99_share s99_accuracy s99_share+ s99_accuracy+",
    ),
    # Deviation: which focal loss Table J.1 has is not said; this is FLSD-53, the method
    # that the paper proposes.
    "table_j1": Spec(
        "Table J.1", (REFERENCE, PROPOSED), "error ece", "early_stopping", "criterion"
    ),
    # The weights that the authors released, by their own notebooks, with more digits
    # than the tables.
    "released": Spec(
        "evaluation notebook",
        (REFERENCE,),
        "error ece ece+ mce mce+ temperature",
        printed="notebook",
    ),
    "released_ood": Spec(
        "notebook evaluate_single_model_ood.ipynb",
        (REFERENCE,),
        "auroc",
        "ood",
        "ood",
        "notebook",
    ),
    # Ours: test images of another data set with the same classes.
    "table_shift": Spec(
        "Labelled shift", MAIN_ARMS, "error ece ece+", "shift", "shifted"
    ),
}
"""The tables that one function makes, by the name of their file."""
ABLATED = ("error", "ece", "ece+", "temperature", "nll")
"""What a variant of a recipe is compared by."""

# Deviation: where CIFAR-10-C is not at hand, Gaussian noise of its severity 5 is
# compared with what is printed for it.
_PRINTED_OUTLIERS = {
    "svhn": "SVHN",
    "gaussian-noise": "CIFAR-10-C (Gaussian noise sev 5)",
}
_COLUMNS = ["published", "ours", "ours_sd", "seeds", "diverged_seeds", DIFFERENCE]
_BEST, _K1_TITLE = "best BLEU over temperatures", "text of appendix K"
_K1 = {
    "ECE": {
        "ece": "ece",
        "ece_after_scaling": "ece_after_scaling",
        "temperature": "temperature",
    },
    "BLEU": {"bleu": "bleu", "bleu_after_scaling": "bleu_after_scaling"},
    _BEST: {"best_bleu": "bleu", "best_bleu_temperature": "temperature"},
}
"""For each row of Table K.1, the columns of the records and our names of them."""
_K1_PRINTED = {
    "best test BLEU over temperatures": (_BEST, "bleu"),
    "optimal T (validation)": ("ECE", "temperature"),
}
"""Where the printed numbers belong."""


def table(records: Records, name: str) -> pd.DataFrame:
    """One of the tables of `SPECS`, ours beside what is printed (see `beside_printed`),
    fractions but for T and NLL.

    A single seed has the error of its bootstrap over test samples. `differs` says how
    our task is not the paper's.
    """
    spec = SPECS[name]
    # An out-of-distribution or shifted set is part of the data set's name.
    names = [
        "dataset",
        "network",
        *(["criterion"] if spec.condition == "criterion" else []),
        "method",
        "metric",
    ]
    printed = _printed(spec.title) if spec.printed else _printed("Table 1")[:0]
    columns = [*_COLUMNS, "embeddings", "differs", "status", CELLS]
    printed = printed.reindex(columns=[*names, "published"])
    about: dict[str, Any] = {
        "columns": columns,
        "profile": _profile,
        "printed_only": spec.printed == "notebook",
    }
    return beside_printed(_rows(records, spec), printed, ["task", *names], **about)


def table_k1(records: Records) -> pd.DataFrame:
    """Table K.1 with the printed numbers of the text; columns as in `table`, without
    embeddings and differs.
    """
    names = ["dataset", "network", "criterion", "method", "metric"]
    printed = _printed(_K1_TITLE)
    printed[["criterion", "metric"]] = printed["metric"].map(_K1_PRINTED).tolist()
    runs = records.translation_runs.astype({"diverged": bool})
    rows = [
        {
            "task": f"translation-{dataset}",
            "dataset": "WMT14 En-De" if dataset == "wmt14_en_de" else dataset,
        }
        | {
            "network": "Transformer",
            "criterion": criterion,
            "method": arm,
            "metric": metric,
            "runs": len(some),
        }
        | {
            "ours": done[column].mean(),
            "ours_sd": done[column].std(),
            "seeds": len(done),
        }
        | {"diverged_seeds": len(some) - len(done), CELLS: f"{paper.TRANSLATION}/{arm}"}
        for criterion, metrics in _K1.items()
        for (dataset, arm), some in runs.groupby(["dataset", "arm"], sort=False)
        for done in [some[~some["diverged"]]]
        for column, metric in metrics.items()
    ]
    ours = pd.DataFrame(
        rows,
        columns=[
            "task",
            *names,
            "ours",
            "ours_sd",
            "seeds",
            "runs",
            "diverged_seeds",
            CELLS,
        ],
    )
    about: dict[str, Any] = {
        "columns": [*_COLUMNS, "status", CELLS],
        "profile": _profile,
    }
    return beside_printed(
        ours, printed[[*names, "published"]], ["task", *names], **about
    )


def ablation(records: Records) -> pd.DataFrame:
    """Each variant of a recipe, a method, or the search for a temperature, minus the
    main one, over seeds with both.
    """
    names, changes = ["task", "arm", "by"], _changes(records)
    asked = [
        (metric, by)
        for by in (SCALED, "nll")
        for metric in ABLATED
        if by == SCALED or _is_scaled(metric)
    ]
    values = pd.concat([_measured(records, "runs", *each) for each in asked])[
        [*paper.RUN, "metric", "by", "value"]
    ]
    main = values[values["by"] == SCALED].drop(columns="by")
    main = main.rename(columns={"task": "main_task", "arm": "method", "value": "main"})
    pairs = values.merge(changes[[*names, "main_task", "method"]], on=names)
    pairs = pairs.merge(main, on=["main_task", "method", "metric", "seed"])
    groups = pairs.assign(difference=pairs["value"] - pairs["main"]).groupby(
        [*names, "metric"], sort=False
    )
    means = groups.agg(
        main=("main", "mean"),
        changed=("value", "mean"),
        **mean_and_sd("difference"),
        seeds=("difference", "count"),
    )
    rows = changes.merge(pd.DataFrame({"metric": ABLATED}), how="cross")
    rows = rows.merge(means.reset_index(), "left", [*names, "metric"])
    rows = (
        rows[(rows["by"] == SCALED) | rows["seeds"].notna()]
        .fillna({"seeds": 0})
        .astype({"seeds": int})
    )
    otherwise = np.where(
        rows["runs"] == rows["diverged_seeds"],
        DIVERGED,
        "no finished run of the main recipe",
    )
    both = (
        cell_of_each(paper.EVALUATION, rows, *cell)
        for cell in (("task", "arm"), ("main_task", "method"))
    )
    rows = rows.assign(
        task=rows["main_task"],
        metric=rows["metric"].replace(_IN_FULL),
        status=np.where(rows["seeds"] > 0, MEASURED, otherwise),
        cells=[together(cells) for cells in zip(*both, strict=True)],
    ).merge(records.tasks[["task", "embeddings"]], on="task", how="left")
    columns = [
        "task",
        "dataset",
        "network",
        "variant",
        "method",
        "metric",
        "main",
        "changed",
        "difference",
    ]
    return rows[
        [
            *columns,
            "difference_sd",
            "seeds",
            "diverged_seeds",
            "embeddings",
            "status",
            CELLS,
        ]
    ]


def not_in_a_table(_: Records | None = None) -> pd.DataFrame:
    """The printed numbers that belong to no table, because they are ranges over several
    networks.
    """
    titles = {_K1_TITLE, *(spec.title for spec in SPECS.values() if spec.printed)}
    rows = read_csv(PUBLISHED / f"{paper.SLUG}.csv").rename(
        columns={"model": "network"}
    )
    rows = rows[~rows["table"].isin(titles)].assign(
        status="a range over two networks, see Table 1"
    )
    return rows[
        ["table", "dataset", "network", "method", "metric", "value", "unit", "status"]
    ].reset_index(drop=True)


wide = partial(comparison.wide, across="method")


def wide_ablation(table: pd.DataFrame) -> pd.DataFrame:
    """The ablation for a reader: one row per variant and method, one column per metric,
    "main → changed (± sd)".
    """
    keys = ["dataset", "network", "embeddings", "variant", "method", "seeds", CELLS]
    rows = table[["metric", "main", "changed", "difference_sd"]].itertuples(
        index=False, name=None
    )
    texts = np.where(
        table["status"] == MEASURED, [_change(*row) for row in rows], table["status"]
    )
    names = table["metric"].str.replace("_", " ") + table["metric"].map(is_share).map(
        {True: " (%)", False: ""}
    )
    cells = table.assign(text=texts, metric=names).groupby(
        [*keys, "metric"], sort=False, dropna=False
    )["text"]
    return (
        cells.first()
        .unstack("metric", sort=False)[list(names.unique())]
        .reset_index()
        .rename_axis(columns=None)
    )


def _change(metric: str, *numbers: float) -> str:
    """Shares in percent; of a temperature two digits after the point, too."""
    scale, two = (0.01, True) if metric == "temperature" else (1, is_share(metric))
    main, changed, sd = (
        comparison.number(scale * each, percent=two) for each in numbers
    )
    return f"{main} → {changed}" + (f" (± {sd})" if sd != comparison.MISSING else "")


def _rows(records: Records, spec: Spec) -> pd.DataFrame:
    """One row per number of the table that the trainings of the main tasks should give;
    those that diverged too.
    """
    metrics, condition = (
        spec.metrics.split(),
        [spec.condition] if spec.condition else [],
    )
    rows = paper.main_tasks(records)
    rows = rows[rows["classes"] >= spec.classes]
    is_printed = rows["printed_dataset"] != ""
    lengths = (
        rows["epochs"].astype(str)
        + " of "
        + rows["planned_epochs"].astype(str)
        + " epochs"
    )
    lengths = lengths.where(is_printed & (rows["epochs"] < rows["planned_epochs"]), "")
    differs = [
        ", ".join(filter(None, both))
        for both in zip(lengths, rows["differs"].astype(str), strict=True)
    ]
    names = {
        name: rows[f"printed_{name}"].where(is_printed, rows[name])
        for name in ("dataset", "network")
    }
    rows = rows.assign(**names, differs=differs, is_printed=is_printed)
    if condition:
        rows = rows.merge(
            getattr(records, spec.source)[["task", *condition]].drop_duplicates(),
            on="task",
        )
    arms = [*spec.arms, *(paper.other_arms(records) if spec.arms == MAIN_ARMS else [])]
    rows = rows.merge(pd.DataFrame({"arm": arms}), how="cross").merge(
        _trained(records), on=["task", "arm"]
    )
    rows = rows.merge(pd.DataFrame({"metric": metrics}), how="cross")
    keys, values = (
        ["task", "arm", *condition, "metric"],
        [_measured(records, spec.source, name) for name in metrics],
    )
    groups = pd.concat(values).groupby(keys, sort=False)
    means = groups.agg(
        **mean_and_sd("ours", "value"),
        seeds=("value", "count"),
        error=("error", "first"),
    )
    rows = (
        rows.merge(means.reset_index(), how="left", on=keys)
        .fillna({"seeds": 0})
        .astype({"seeds": int})
    )
    stage = paper.TRAINING if spec.source == "early_stopping" else paper.EVALUATION
    rows = rows.rename(columns={"arm": "method"}).assign(
        cells=cell_of_each(stage, rows, "task", "arm")
    )
    if spec.condition in {"ood", "shifted"}:
        other = rows[spec.condition]
        rows["dataset"] += " vs " + other.replace(_PRINTED_OUTLIERS).where(
            rows["is_printed"], other
        )
    return rows.replace(
        {"metric": RELEASED if spec.printed == "notebook" else _IN_FULL}
    )


def _printed(title: str) -> pd.DataFrame:
    """The printed numbers of a table, in our units; the paper's BLEU is in percent too."""
    rows = published(paper.SLUG, title).rename(columns={"model": "network"})
    is_percent = (rows["unit"] == "percent") | rows["metric"].str.contains("BLEU")
    return rows.assign(
        published=rows["value"].astype(float) / np.where(is_percent, 100, 1)
    )


def _trained(records: Records) -> pd.DataFrame:
    """Task, arm, runs, diverged_seeds."""
    runs = records.trainings.astype({"diverged": int}).groupby(
        ["task", "arm"], sort=False
    )["diverged"]
    return runs.agg(runs="size", diverged_seeds="sum").reset_index()


def _is_scaled(metric: str) -> bool:
    return metric == "temperature" or metric.endswith("+")


def _measured(
    records: Records, source: str, metric: str, by: str = SCALED
) -> pd.DataFrame:
    """The finished runs with a metric's value, and its error: the width of the
    bootstrap interval over 2 × 1.645.
    """
    rows, column = paper.finished(records, source), METRICS[metric.removesuffix("+")]
    if "scaling" in rows:
        rows = rows[rows["scaling"] == (by if _is_scaled(metric) else "none")]
    value = 1 - rows[column] if metric == "error" else rows[column]
    width: Any = (
        rows[f"{column}_high"] - rows[f"{column}_low"]
        if f"{column}_low" in rows
        else np.nan
    )
    return rows.assign(
        metric=metric,
        by=by,
        value=value,
        error=width / (2 * float(stats.norm.ppf((1 + LEVEL) / 2))),
    )


def _profile(dataset: str, network: str) -> str:
    if dataset in ("20 Newsgroups", "SST Binary"):
        return "text"
    return (
        "cifar10"
        if network == "ResNet-50" and dataset.partition(" vs ")[0] == "CIFAR-10"
        else "paper"
    )


def _changes(records: Records) -> pd.DataFrame:
    """Each variant with the task and method that it is one of, and the criterion of its
    temperatures: `by`.
    """
    about = records.tasks[["task", "dataset", "network", "variant", "variant_of"]]
    trained = _trained(records).merge(about, on="task").assign(by=SCALED)
    is_main = trained["variant"] == ""
    main_task = trained["task"].where(is_main, trained["variant_of"])
    trained = trained.assign(
        main_task=main_task, method=trained["arm"].replace(paper.WRITTEN_ARMS)
    )
    main = trained[is_main]
    written = main[main["arm"].isin(paper.WRITTEN_ARMS)].assign(variant="as written")
    by_likelihood = main.assign(
        method=main["arm"], variant="temperature by NLL", by="nll"
    )
    return pd.concat([trained[~is_main], written, by_likelihood], ignore_index=True)


TABLES: dict[str, Callable[[Records], pd.DataFrame]] = {
    name: partial(table, name=name) for name in SPECS
}
TABLES |= {"table_k1": table_k1, "not_in_a_table": not_in_a_table, "ablation": ablation}
"""Every table, by the name of its file."""
