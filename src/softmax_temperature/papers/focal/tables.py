"""The tables, ours beside the printed ones, and the ablation of the recipe.

They are long, one row for each data set, network, method and metric; `wide` gives them the printed layout.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from softmax_temperature.papers.focal.records import SLUG
from softmax_temperature.papers.focal.selection import (
    ARMS,
    EVALUATION,
    MAIN_ARMS,
    RELEASED_ARMS,
    SCALED,
    SOURCES,
    finished,
    main_tasks,
    other_arms,
    tasks,
)
from softmax_temperature.papers.focal.table_specs import ABLATED, SPECS, TEMPERATURES, Metric, Spec
from softmax_temperature.papers.focal.translation_table import TITLE as TRANSLATION
from softmax_temperature.papers.shared.claims import LEVEL
from softmax_temperature.papers.shared.sources import CELLS, cell_of_each, together
from softmax_temperature.papers.shared.tables import PUBLISHED, published, read_csv

if TYPE_CHECKING:
    from collections.abc import Sequence

    from softmax_temperature.papers.focal.records import Records

MEASURED, DIVERGED, NOTHING_TO_COMPARE = "measured", "diverged", "no finished run of the main recipe"
# Deviation: where CIFAR-10-C is not at hand, Gaussian noise of its severity 5 is compared with what is printed for it.
_PRINTED_OUTLIERS = MappingProxyType({"svhn": "SVHN", "gaussian-noise": "CIFAR-10-C (Gaussian noise sev 5)"})
_TEXTS = ("20 Newsgroups", "SST Binary")
_NUMBERS = [
    "published",
    "ours",
    "ours_sd",
    "seeds",
    "diverged_seeds",
    "difference_in_standard_errors",
    "embeddings",
    "differs",
    "status",
    "cells",
]
_REMARKS = MappingProxyType({"embeddings": "; embeddings: {}", "differs": "; {}"})
_SHOWN = MappingProxyType(
    {
        "ours": "ours",
        "ours_sd": "sd over seeds",
        "published": "printed",
        "difference_in_standard_errors": "difference, in standard errors",
    }
)


def table(records: Records, name: str) -> pd.DataFrame:
    """One of the paper's tables.

    Args:
        records: the paper's.
        name: a key of `SPECS`.

    Returns:
        Columns task (empty where nothing ran), dataset and network (as printed, or the task's own), criterion (Table
        J.1 alone), method, metric; published, ours (mean over seeds), ours_sd, seeds (that finished), diverged_seeds,
        difference_in_standard_errors, embeddings (of our words: where they come from; empty for images), differs (what
        else sets our task apart from the paper's), status, cells. All numbers but temperatures and NLL are fractions.

        The difference is ours minus published over the standard error of ours: over seeds where at least two finished;
        for one, that of its bootstrap over test samples (the width of the 90 % interval over 2 × 1.645); empty where
        the metric has neither, or the error is 0. What is printed is one run, whose own error is not in it.

        The status is "measured"; "diverged", if every seed did; or "not run", with the profile that would, if any.

        The last column, cells, says what ours comes from.
    """
    spec = SPECS[name]
    keys = [*_row_columns(spec), "method", "metric"]
    found = _measured(records, spec)
    rows = _expected(records, spec).merge(found, how="left", on=["task", *_own_keys(spec), "metric"])
    rows["cells"] = SOURCES[spec.source] + "/" + rows["task"] + "/" + rows["arm"]
    rows = _named_as_printed(rows.rename(columns={"arm": "method"}))
    printed = _printed(spec)
    rows = rows.merge(printed, how="inner" if spec.printed_only else "left", on=keys)
    rows["seeds"] = rows["seeds"].fillna(0).astype(int)
    rows["status"] = np.where(rows["runs"] > rows["diverged_seeds"], MEASURED, DIVERGED)
    rows["difference_in_standard_errors"] = (rows["ours"] - rows["published"]) / rows["error"].replace(0, np.nan)
    parts = [part for part in (rows, _not_run(printed, rows, keys)) if len(part)] or [rows]
    return pd.concat(parts, ignore_index=True).reindex(columns=["task", *keys, *_NUMBERS])


def ablation(records: Records) -> pd.DataFrame:
    """What each variant of a recipe, of a method, or of the search for a temperature does, relative to the main one.

    Returns:
        Columns task (the main one), dataset, network, variant, method, metric; main and changed (means over the seeds
        that finished with both), difference (changed minus main, mean over these seeds), difference_sd, seeds,
        diverged_seeds (of the variant), embeddings (as in `table`), status, cells. All numbers but temperatures and NLL
        are fractions.
    """
    variants = _variants(records)
    found = _compared(_pairs_with_the_main_one(records, variants))
    rows = variants.merge(_names(ABLATED), how="cross").merge(found, how="left", on=["task", "arm", "metric"])
    rows["seeds"] = rows["seeds"].fillna(0).astype(int)
    all_diverged = rows["runs"] == rows["diverged_seeds"]
    rows["status"] = np.where(rows["seeds"] > 0, MEASURED, np.where(all_diverged, DIVERGED, NOTHING_TO_COMPARE))
    both = (cell_of_each(EVALUATION, rows, *names) for names in (("task", "arm"), ("main_task", "method")))
    rows["cells"] = [together(cells) for cells in zip(*both, strict=True)]
    rows = rows.drop(columns="task").rename(columns={"main_task": "task"})
    names = ["task", "dataset", "network", "variant", "method", "metric"]
    numbers = ["main", "changed", "difference", "difference_sd", "seeds", "diverged_seeds", "embeddings", "status"]
    numbers += [CELLS]
    parts = [part for part in (rows, _by_likelihood(records)) if len(part)] or [rows]
    table = pd.concat(parts, ignore_index=True).merge(tasks(records)[["task", "embeddings"]], on="task", how="left")
    return table[[*names, *numbers]]


def _pairs_with_the_main_one(records: Records, variants: pd.DataFrame) -> pd.DataFrame:
    keys = ["task", "arm", "metric", "seed", "value"]
    values = pd.concat([_values(records, "runs", metric) for metric in ABLATED])[keys]
    main = values.rename(columns={"task": "main_task", "arm": "method", "value": "main"})
    pairs = values.merge(variants[["task", "arm", "main_task", "method"]], on=["task", "arm"])
    return pairs.merge(main, on=["main_task", "method", "metric", "seed"])


def _compared(pairs: pd.DataFrame) -> pd.DataFrame:
    """Means over seeds of value and main, and their difference."""
    groups = pairs.assign(difference=pairs["value"] - pairs["main"]).groupby(["task", "arm", "metric"], sort=False)
    return groups.agg(
        main=("main", "mean"),
        changed=("value", "mean"),
        difference=("difference", "mean"),
        difference_sd=("difference", "std"),
        seeds=("difference", "count"),
    ).reset_index()


def not_in_a_table() -> pd.DataFrame:
    """The printed numbers that stand in none of the tables, and why: dataset, network, method, metric, value, status.

    They are ranges over several networks.
    """
    rows = read_csv(PUBLISHED / f"{SLUG}.csv").rename(columns={"model": "network"})
    rows = rows[~rows["table"].isin({TRANSLATION, *(spec.title for spec in SPECS.values() if spec.printed)})]
    rows = rows.assign(status="a range over two networks, see Table 1")
    return rows[["table", "dataset", "network", "method", "metric", "value", "unit", "status"]].reset_index(drop=True)


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """The printed layout: a column a method, up to four rows for each data set and network.

    The rows are ours, its standard deviation over seeds, what is printed, and the difference in standard errors;
    those that would be empty are left out. Ours says where the word embeddings of texts come from, and what sets the
    task apart from the paper's. A cell has its metrics in their order, "before / after", temperatures in parentheses,
    all but these times 100.

    Args:
        table: as `table` returns it.
    """
    columns = list(table.columns)
    keys = columns[1 : columns.index("method")]
    there = list(table["method"].unique())
    methods = [arm for arm in ARMS if arm in there] + [arm for arm in there if arm not in ARMS]
    # What is printed stands with our task of the same names; a file gives an empty task back as none at all.
    task = table["task"].astype(object).where(table["task"] != "")
    task = task.fillna(task.groupby([table[key] for key in keys]).transform("first"))
    rows = []
    for (_, *key), group in table.groupby([task, *keys], sort=False, dropna=False):
        names = dict(zip(keys, key, strict=True))
        for column in _SHOWN:
            if group[column].notna().any() or (column == "ours" and (group["status"] == DIVERGED).any()):
                cells = {method: _cell(group[group["method"] == method], column) for method in methods}
                rows.append({**names, "numbers": _row_name(group, column), **cells})
    return pd.DataFrame(rows, columns=[*keys, "numbers", *methods])


def wide_ablation(table: pd.DataFrame) -> pd.DataFrame:
    """The ablation for a reader: a row for each variant and method, a column a metric, "main → changed (± sd)".

    The standard deviation is that of the difference over seeds. All but temperatures are times 100.

    Args:
        table: as `ablation` returns it.
    """
    keys = ["dataset", "network", "variant", "method", "seeds"]
    rows = []
    for key, group in table.groupby(keys, sort=False):
        names = dict(zip(keys, key, strict=True))
        names["network"] = f"{names['network']}{_remarks(group)}"
        changes = {str(row.metric): _change(row) for row in group.itertuples()}
        rows.append({**names, **changes, CELLS: group[CELLS].iloc[0] if CELLS in group else None})
    return pd.DataFrame(rows, columns=[*keys, *table["metric"].unique(), CELLS])


def _row_columns(spec: Spec) -> list[str]:
    """What names a row of the printed table; an out-of-distribution set is part of the data set's name there."""
    return ["dataset", "network", *(["criterion"] if spec.condition == "criterion" else [])]


def _own_keys(spec: Spec) -> list[str]:
    """What names a number of a task in the records, beside the metric."""
    return ["arm", *([spec.condition] if spec.condition else [])]


def _names(metrics: Sequence[Metric]) -> pd.DataFrame:
    return pd.DataFrame({"metric": [metric.name for metric in metrics]})


def _expected(records: Records, spec: Spec) -> pd.DataFrame:
    """A row for each number that the trainings of the main tasks should give, in the order of the table."""
    rows = main_tasks(records)
    rows = rows.assign(differs=_differs(rows))[rows["classes"] >= spec.classes]
    rows = rows[["task", "dataset", "network", "printed_dataset", "printed_network", "embeddings", "differs"]]
    if spec.condition:
        rows = rows.merge(getattr(records, spec.source)[["task", spec.condition]].drop_duplicates(), on="task")
    others = other_arms(records) if spec.arms == MAIN_ARMS and not spec.printed_only else []
    rows = rows.merge(pd.DataFrame({"arm": [*spec.arms, *others]}), how="cross").merge(
        _trained(records), on=["task", "arm"]
    )
    return rows.merge(_names(spec.metrics), how="cross")


def _differs(rows: pd.DataFrame) -> list[str]:
    """What sets our tasks apart: a shorter training than what is printed had, and what the parameters say."""
    is_shorter = (rows["printed_dataset"] != "") & (rows["epochs"] < rows["planned_epochs"])
    lengths = rows["epochs"].astype(str) + " of " + rows["planned_epochs"].astype(str) + " epochs"
    parts = zip(lengths.where(is_shorter, ""), rows["differs"].astype(str), strict=True)
    return [", ".join(filter(None, both)) for both in parts]


def _trained(records: Records) -> pd.DataFrame:
    """Task, arm, runs, diverged_seeds."""
    runs = records.trainings.astype({"diverged": int}).groupby(["task", "arm"], sort=False)["diverged"]
    return runs.agg(runs="size", diverged_seeds="sum").reset_index()


def _measured(records: Records, spec: Spec) -> pd.DataFrame:
    """Task, arm, condition, metric; ours, ours_sd, seeds, error (standard, of ours)."""
    values = pd.concat([_values(records, spec.source, metric) for metric in spec.metrics])
    found = values.groupby(["task", *_own_keys(spec), "metric"], sort=False).agg(
        ours=("value", "mean"), ours_sd=("value", "std"), seeds=("value", "count"), error=("bootstrap_error", "first")
    )
    found["error"] = (found["ours_sd"] / found["seeds"] ** 0.5).where(found["seeds"] > 1, found["error"])
    return found.reset_index()


def _values(records: Records, source: str, metric: Metric) -> pd.DataFrame:
    """The rows of the finished runs that hold a metric, with the columns metric, value and bootstrap_error."""
    rows = finished(records, source)
    if "scaling" in rows:
        rows = rows[rows["scaling"] == metric.scaling]
    low, high = f"{metric.column}_low", f"{metric.column}_high"
    width = rows[high] - rows[low] if low in rows else np.nan
    value = 1 - rows[metric.column] if metric.complement else rows[metric.column]
    normal = float(stats.norm.ppf((1 + LEVEL) / 2))
    return rows.assign(metric=metric.name, value=value, bootstrap_error=width / (2 * normal))


def _named_as_printed(rows: pd.DataFrame) -> pd.DataFrame:
    """Data set and network as the paper calls them, where it does."""
    is_printed = rows["printed_dataset"] != ""
    for column in ("dataset", "network"):
        rows[column] = rows[f"printed_{column}"].where(is_printed, rows[column])
    if "ood" in rows:
        rows["dataset"] += " vs " + rows["ood"].replace(dict(_PRINTED_OUTLIERS)).where(is_printed, rows["ood"])
    return rows


def _printed(spec: Spec) -> pd.DataFrame:
    """The printed numbers of the table, in our names and units."""
    keys = [*_row_columns(spec), "method", "metric"]
    if not spec.printed:
        return pd.DataFrame(columns=[*keys, "published"]).astype({"published": float})
    rows = published(SLUG, spec.title).rename(columns={"model": "network"})
    return rows[keys].assign(published=rows["value"].astype(float) / np.where(rows["unit"] == "percent", 100, 1))


def _not_run(printed: pd.DataFrame, rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The printed numbers that no task of this profile gives."""
    known, wanted = (pd.MultiIndex.from_frame(table[keys]) for table in (rows, printed))
    missing = printed[~wanted.isin(known)]
    profiles = map(_profile, missing["dataset"], missing["network"])
    return missing.assign(task="", seeds=0, diverged_seeds=0, status=[f"not run: {profile}" for profile in profiles])


def _profile(dataset: str, network: str) -> str:
    """The profile that gives a printed number."""
    if dataset in _TEXTS:
        return "profile text_cpu"
    return f"profile {'cifar10' if network == 'ResNet-50' and dataset.partition(' vs ')[0] == 'CIFAR-10' else 'paper'}"


def _variants(records: Records) -> pd.DataFrame:
    """Task, arm, runs and diverged_seeds of each variant; main_task and method that it is one of; dataset, network."""
    trained = _trained(records).merge(
        tasks(records)[["task", "dataset", "network", "variant", "variant_of"]], on="task"
    )
    recipes = trained[trained["variant"] != ""]
    recipes = recipes.assign(main_task=recipes["variant_of"], method=recipes["arm"])
    methods = trained[(trained["variant"] == "") & trained["arm"].isin(RELEASED_ARMS)]
    methods = methods.assign(main_task=methods["task"], method=methods["arm"].replace(dict(RELEASED_ARMS)))
    return pd.concat([recipes, methods.assign(variant="as released")], ignore_index=True)


def _by_likelihood(records: Records) -> pd.DataFrame:
    """The rows of the ablation for the temperature of least validation NLL in the place of least ECE."""
    keys, pieces = ["task", "arm", "seed", "metric"], []
    for metric in (metric for metric in ABLATED if metric.scaling == SCALED):
        main, changed = (_values(records, "runs", replace(metric, scaling=name)) for name in (SCALED, "nll"))
        pieces.append(
            changed[[*keys, "value"]].merge(main[[*keys, "value"]].rename(columns={"value": "main"}), on=keys)
        )
    trained = main_tasks(records)[["task", "dataset", "network"]].merge(_trained(records), on="task")
    rows = trained.merge(_compared(pd.concat(pieces)), on=["task", "arm"])
    cells = cell_of_each(EVALUATION, rows, "task", "arm")
    return rows.assign(variant="temperature by NLL", method=rows["arm"], status=MEASURED, cells=cells)


def _row_name(group: pd.DataFrame, column: str) -> str:
    measured = group[group["status"] == MEASURED]
    if column == "ours" and len(measured):
        few, many = measured["seeds"].min(), measured["seeds"].max()
        seeds = f"{few} seed{'s' if few > 1 else ''}" if few == many else f"{few} to {many} seeds"
        return f"ours, {seeds}{_remarks(measured)}"
    status = group["status"].iloc[0]
    return _SHOWN[column] + (f"; {status}" if column == "published" and status.startswith("not run") else "")


def _remarks(rows: pd.DataFrame) -> str:
    """Where a task's word embeddings come from, and what sets it apart from the paper's, where there is either.

    Results that are older than tasks on texts have neither column; a file gives an empty text back as none at all.
    """
    texts = [(form, rows[name].iloc[0]) for name, form in _REMARKS.items() if name in rows]
    return "".join(form.format(text) for form, text in texts if isinstance(text, str) and text)


def _cell(rows: pd.DataFrame, column: str) -> str:
    if column == "ours" and len(rows) and (rows["status"] == DIVERGED).all():
        return DIVERGED
    if rows[column].isna().all():
        return "–"
    texts = {row.metric: _number(row.metric, getattr(row, column), column) for row in rows.itertuples()}
    plain = " / ".join(text for metric, text in texts.items() if metric not in TEMPERATURES)
    return plain + "".join(f" ({text})" for metric, text in texts.items() if metric in TEMPERATURES and text != "–")


def _number(metric: Any, value: float, column: str = "ours") -> str:
    if np.isnan(value):
        return "–"
    if column == "difference_in_standard_errors":
        return f"{value:+.1f}"
    return f"{value:.3g}" if metric in TEMPERATURES else f"{100 * value:.2f}"


def _change(row: Any) -> str:
    """A cell of the ablation."""
    if row.status != MEASURED:
        return str(row.status)
    main, changed, sd = (_number(row.metric, value) for value in (row.main, row.changed, row.difference_sd))
    return f"{main} → {changed}" + (f" (± {sd})" if sd != "–" else "")
