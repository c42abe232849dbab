"""The tables of the focal paper: our values beside the printed ones, and our own.

The tables are in long format, with one row per data set, network, loss and metric;
`layout.wide` arranges them as in the paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import scipy  # Imports `scipy.stats`, which takes a second, when first used.

from softmax_temperature.papers.focal import ablation
from softmax_temperature.papers.focal.curves import (
    CRITERIA,
    stopped_at_any_epoch,
    stopped_early,
)
from softmax_temperature.papers.focal.study import (
    ADAPTIVE_ECE,
    AUROC,
    CE,
    CLASSWISE_ECE,
    CONFIDENT_ACCURACY,
    CONFIDENT_SHARE,
    ECE,
    ERROR,
    EVALUATION_CELL,
    FLSD_53,
    FOCAL_LOSSES,
    MAIN,
    MCE,
    MMCE,
    NLL,
    OTHER_LOSSES,
    SLUG,
    TABLE_1_LOSSES,
    TEMPERATURE,
    after_scaling,
    any_of,
    at_selected_epoch,
    in_shown_order,
    outlier_sets,
    shifted_sets,
)
from softmax_temperature.papers.shared import layout
from softmax_temperature.papers.shared.factors import Where, at_least, where
from softmax_temperature.papers.shared.files import read_csv
from softmax_temperature.papers.shared.metrics import Derived, Metric
from softmax_temperature.papers.shared.printed import PUBLISHED, published
from softmax_temperature.papers.shared.runs import CELL, Runs
from softmax_temperature.papers.shared.sources import CELLS
from softmax_temperature.papers.shared.statistics import LEVEL
from softmax_temperature.papers.shared.tables import (
    DIFFERENCE,
    METRIC,
    OURS,
    PRINTED,
    STATUS,
    Made,
    Number,
    Table,
    beside_printed,
    means_over_seeds,
    places_without_data,
    studies_of,
)

AFTER = "_after_scaling"
"""Suffix of a metric at the temperature with the lowest validation ECE."""
_COUNTS = ["seeds", "diverged_seeds"]
_COLUMNS = [PRINTED, OURS, f"{OURS}_sd", *_COUNTS, DIFFERENCE]
_REMARKS = ["embeddings", "differs"]
_VERSUS = " vs "
_OTHER_SET = "other_set"
"""Column: the out-of-distribution or shifted set on which a number was measured."""
# Deviation: if CIFAR-10-C is not on disk, we add Gaussian noise of its severity 5 to
# the test images ourselves, and do not compare these scores with the printed ones.
_NOISE = "gaussian-noise"
_NOISE_ARCHIVE = "CIFAR-10-C"
_PRINTED_OUTLIERS = {
    "svhn": "SVHN",
    _NOISE: f"{_NOISE_ARCHIVE} (Gaussian noise sev 5)",
}
_BEST = "best BLEU over temperatures"
_K1_TITLE = "text of appendix K"
_K1_PRINTED = {
    "best test BLEU over temperatures": (_BEST, "bleu"),
    "optimal T (validation)": ("ECE", "temperature"),
}
"""Maps the name of a printed number to its criterion and metric in our Table K.1."""
_NEAR_BEST = "near best accuracy"
"""Words for a criterion of early stopping that considers only epochs whose validation
accuracy is near the best.
"""
_TEXT_DATASETS = ("20 Newsgroups", "SST Binary")


def by_loss(table: pd.DataFrame) -> pd.DataFrame:
    """Lay out a comparison as text, with one column per loss, grouped by family."""
    texts = layout.wide(table, across="method")
    columns = [*texts]
    losses = [
        name
        for name in dict.fromkeys(table["method"])
        if name in columns or f"{name}, printed" in columns
    ]
    numbers = [
        column
        for loss in in_shown_order(losses)
        for column in (loss, f"{loss}, printed")
        if column in columns
    ]
    if not numbers:
        return texts
    start = min(map(columns.index, numbers))
    other_columns = [column for column in columns if column not in numbers]
    return texts[[*other_columns[:start], *numbers, *other_columns[start:]]]


def by_metric(table: pd.DataFrame) -> pd.DataFrame:
    """Lay out a comparison as text, with one row per loss, grouped by family."""
    texts = layout.wide(table, across=METRIC)
    place = texts.columns.get_loc("method")
    tasks = texts.assign(**{"": ""}).groupby(["", *texts.columns[:place]], sort=False)
    losses = in_shown_order(list(dict.fromkeys(texts["method"])))
    order = texts.assign(task=tasks.ngroup(), loss=texts["method"].map(losses.index))
    return texts.loc[order.sort_values(["task", "loss"], kind="stable").index]


@dataclass(frozen=True, kw_only=True)
class LossTable(Table):
    """A table of means over seeds for each loss, with the printed values.

    Values are fractions, except temperatures and NLL. If there is only one seed, its
    standard error comes from the bootstrap over test samples. The column `differs` says
    how our experiment differs from the paper's.

    Attributes:
        losses: The losses, keyed by label, in the paper's order.
        numbers: Function that returns the metrics to show for the runs of a study, in
            the paper's order.
        title: The title of the printed table or notebook; "" if we do not have its
            values.
        with_others: Whether to append losses that the paper does not have.
        by_criterion: Whether the table has values for several criteria of early
            stopping.
        printed_only: Whether to leave out values that the paper does not print.
        fewest_classes: The minimum number of classes for a data set to be shown.
        is_evaluated: Whether the values come from the evaluation's cells instead of the
            training's.
    """

    losses: Mapping[str, Where]
    numbers: Callable[[Runs], Sequence[Number]]
    title: str = ""
    with_others: bool = False
    by_criterion: bool = False
    printed_only: bool = False
    fewest_classes: int = 2
    is_evaluated: bool = True
    lay_out: Callable[[pd.DataFrame], pd.DataFrame] = by_loss
    in_rows: Callable[[pd.DataFrame], pd.DataFrame] | None = by_metric

    def make(self, runs: Runs) -> pd.DataFrame:
        """Make the table from the runs of a study."""
        criterion = ["criterion"] if self.by_criterion else []
        names = ["dataset", "network", *criterion, "method", METRIC]
        printed = pd.DataFrame(columns=[*names, PRINTED])
        if self.title:
            printed = printed_numbers(self.title).reindex(columns=printed.columns)
        table = beside_printed(
            self._ours(runs, ["task", *names]),
            printed,
            ["task", *names],
            columns=[*_COLUMNS, STATUS, CELLS],
            profiles=profiles_of,
            studies=studies_of(runs),
            printed_only=self.printed_only,
            missing=_missing(runs, printed),
        )
        return _with_remarks(runs, table)

    def _ours(self, runs: Runs, keys: list[str]) -> pd.DataFrame:
        """Compute our means over seeds, in the order of the paper."""
        losses = any_of(self.losses)
        if self.with_others:
            losses = losses | OTHER_LOSSES
        chosen = runs.select(MAIN & where(classes=at_least(self.fewest_classes)))
        chosen = losses.select(chosen)
        if self.is_evaluated:
            chosen = chosen.assign(**{CELL: chosen[EVALUATION_CELL]})
        numbers = self.numbers(runs)
        if chosen.empty or not numbers:
            return pd.DataFrame(columns=[*keys, OURS, f"{OURS}_sd", *_COUNTS, "runs"])
        rows = means_over_seeds(runs, chosen, numbers, keys, named=_named)
        methods = [*self.losses, *chosen["arm"]]
        metrics = [number.metric for number in numbers]
        return in_order(rows, keys, {"method": methods, METRIC: metrics})


def _missing(runs: Runs, printed: pd.DataFrame) -> list[tuple[str, str]]:
    """The data set and network of each experiment that lacks data.

    An experiment that lacks an out-of-distribution set is included only if the paper
    prints values for the set.
    """
    places = places_without_data(runs, MAIN, _named_missing)
    printed_places = set(
        printed[["dataset", "network"]].itertuples(index=False, name=None)
    )
    return [
        place for place in places if _VERSUS not in place[0] or place in printed_places
    ]


def _named_missing(rows: pd.DataFrame) -> pd.DataFrame:
    """The `rows` of experiments without runs, with the names that `_named` gives."""
    rows = rows.assign(
        is_printed=rows["printed_dataset"] != "", arm="", value=0.0, noise=""
    )
    if _OTHER_SET not in rows:
        return _named(rows)
    is_scored = rows[_OTHER_SET] != ""
    whole = rows[~is_scored].drop(columns=_OTHER_SET)
    return pd.concat([_named(whole), _named(rows[is_scored])])


def in_order(
    rows: pd.DataFrame, keys: Sequence[str], orders: Mapping[str, Sequence[str]]
) -> pd.DataFrame:
    """Sort `rows` by `keys`.

    The values of a key are in the order that `orders` gives for it, or else in their
    order of appearance.
    """
    ranks = pd.DataFrame(index=rows.index)
    for key in keys:
        order = list(dict.fromkeys(orders.get(key, rows[key])))
        ranks[key] = rows[key].map(order.index)
    return rows.loc[ranks.sort_values(list(keys), kind="stable").index]


def _named(rows: pd.DataFrame) -> pd.DataFrame:
    """Return `rows` with the paper's data set and network names, if there are any.

    An out-of-distribution or shifted set becomes part of the data set's name. If an
    experiment has no scores on such a set, the set's rows are left out.
    """
    if _OTHER_SET in rows:
        scored = rows.groupby(["experiment", _OTHER_SET])["value"].transform("count")
        rows = rows[scored > 0]
    is_printed = rows["is_printed"]
    dataset = rows["printed_dataset"].where(is_printed, rows["dataset"])
    network = rows["printed_network"].where(is_printed, rows["network"])
    if _OTHER_SET in rows:
        other_set = rows[_OTHER_SET]
        printed_other = other_set.replace(_PRINTED_OUTLIERS)
        is_own_noise = (other_set == _NOISE) & (rows["noise"] != _NOISE_ARCHIVE)
        has_printed = is_printed & ~is_own_noise
        dataset = dataset + _VERSUS + printed_other.where(has_printed, other_set)
    return rows.assign(
        task=rows["experiment"],
        dataset=dataset,
        network=network,
        method=rows["arm"],
    )


def _with_remarks(runs: Runs, table: pd.DataFrame) -> pd.DataFrame:
    """Add the sources of word vectors, and remarks on differences from the paper."""
    runs_of = runs.select(MAIN).drop_duplicates("experiment").set_index("experiment")
    differs = {name: _differs(row) for name, row in runs_of.iterrows()}
    remarks = {
        "embeddings": table["task"].map(runs_of["embeddings"]),
        "differs": table["task"].map(differs),
    }
    columns = [*table.columns[:-2], *_REMARKS, STATUS, CELLS]
    return table.assign(**remarks)[columns]


def _differs(run: pd.Series[Any]) -> str:
    """The differences between `run` and the paper, in words."""
    texts = []
    if run["is_printed"] and run["epochs"] < run["planned_epochs"]:
        texts.append(f"{run['epochs']} of {run['planned_epochs']} epochs")
    if pd.notna(run["differs"]):
        texts.append(run["differs"])
    return ", ".join(texts)


def printed_numbers(title: str) -> pd.DataFrame:
    """The printed values of the table `title`, in our units.

    Percentages become fractions, and so does BLEU, which the paper prints on a scale
    from 0 to 100.
    """
    rows = published(SLUG, title).rename(columns={"model": "network"})
    is_percent = (rows["unit"] == "percent") | rows["metric"].str.contains("BLEU")
    scale = np.where(is_percent, 100, 1)
    return rows.assign(published=rows["value"].astype(float) / scale)


def profiles_of(dataset: str, network: str) -> tuple[str, ...]:
    """The profiles that train `network` on `dataset`, both named as in the paper.

    The first is the one to suggest to the reader.
    """
    if dataset in _TEXT_DATASETS:
        return ("text", "paper")
    is_cifar10 = dataset.partition(" vs ")[0] == "CIFAR-10"
    if is_cifar10 and network == "ResNet-50":
        return ("cifar10", "paper")
    return ("paper",)


def number(name: str, metric: Metric, **about: str) -> Number:
    """A table entry for `metric` at the selected epoch, with its bootstrap error."""
    selected = at_selected_epoch(metric)
    return Number(name, selected, about, error=bootstrap_error(selected))


def scaled(name: str, metric: Metric, **about: str) -> Number:
    """A table entry for `metric` at the temperature of lowest validation ECE."""
    return number(f"{name}{AFTER}", after_scaling(metric), **about)


def both(name: str, metric: Metric, **about: str) -> list[Number]:
    """Table entries for `metric` before and after temperature scaling."""
    return [number(name, metric, **about), scaled(name, metric, **about)]


def bootstrap_error(metric: Metric) -> Derived:
    """The standard error of a metric: its interval's width divided by 2 × 1.645."""
    low = replace(metric, name=f"{metric.name}_low", complement=False)
    high = replace(metric, name=f"{metric.name}_high", complement=False)
    width_in_errors = 2 * float(scipy.stats.norm.ppf((1 + LEVEL) / 2))

    def compute(runs: Runs, chosen: pd.DataFrame) -> pd.Series[float]:
        width = high.of(runs, chosen) - low.of(runs, chosen)
        return width / width_in_errors

    return Derived(f"standard error of {metric.unit}", compute)


def _always(*numbers: Number) -> Callable[[Runs], Sequence[Number]]:
    """Build a function that returns the metrics `numbers` for every study."""
    return lambda _: numbers


def _on_outliers(runs: Runs) -> list[Number]:
    return [
        result
        for name in outlier_sets(runs)
        for result in both("auroc", replace(AUROC, split=name), other_set=name)
    ]


def _on_shifted_sets(runs: Runs) -> list[Number]:
    numbers = []
    for name in shifted_sets(runs):
        error = replace(ERROR, split=name)
        ece = replace(ECE, split=name)
        numbers.append(number("error", error, other_set=name))
        numbers += both("ece", ece, other_set=name)
    return numbers


def _stopped_early(_: Runs) -> list[Number]:
    """The metrics with early stopping among all epochs, then among accurate epochs.

    An epoch is accurate if its validation accuracy is near the best. Stopping by
    accuracy appears once, because it chooses the same epoch in both cases.
    """
    numbers = []
    for criterion in CRITERIA:
        about = {"criterion": criterion}
        for name, metric in (("error", ERROR), ("ece", ECE)):
            measure = stopped_at_any_epoch(metric, criterion)
            numbers.append(Number(name, measure, about))
    for criterion in ("nll", "ece"):
        about = {"criterion": f"{criterion}, {_NEAR_BEST}"}
        for name, metric in (("error", ERROR), ("ece", ECE)):
            numbers.append(Number(name, stopped_early(metric, criterion), about))
    return numbers


def _released_outliers(runs: Runs) -> list[Number]:
    """The AUROC before scaling, under the name that the authors' notebook gives it."""
    return [
        number("AUROC% pre T (entropy)", replace(AUROC, split=name), other_set=name)
        for name in outlier_sets(runs)
    ]


_TEMPERATURE = number("temperature", TEMPERATURE)
_CONFIDENT = [
    number("s99_share", CONFIDENT_SHARE),
    number("s99_accuracy", CONFIDENT_ACCURACY),
    scaled("s99_share", CONFIDENT_SHARE),
    scaled("s99_accuracy", CONFIDENT_ACCURACY),
]
_RELEASED = [
    number("test error %", ERROR),
    number("ECE% pre T (15 bins)", ECE),
    number("ECE% post T=2.5", after_scaling(ECE)),
    number("MCE% pre T", MCE),
    number("MCE% post T=2.5", after_scaling(MCE)),
    number("optimal T", TEMPERATURE),
]
"""The metrics under the names that the authors' notebooks give them."""


def _main_table(name: str, *numbers: Number, **about: Any) -> LossTable:
    """A table with the losses of Table 1 first, then those that the paper lacks."""
    return LossTable(
        name=name,
        losses=TABLE_1_LOSSES,
        numbers=_always(*numbers),
        with_others=True,
        **about,
    )


def _focal_table(name: str, *numbers: Number) -> LossTable:
    """A table that compares the focal losses."""
    return LossTable(name=name, losses=FOCAL_LOSSES, numbers=_always(*numbers))


def translation_scores(runs: Runs) -> pd.DataFrame:
    """Table K.1, with the values that the paper prints in the text of appendix K."""
    names = ["dataset", "network", "criterion", "method", METRIC]
    keys = ["task", *names]
    printed = printed_numbers(_K1_TITLE)
    printed[["criterion", METRIC]] = printed[METRIC].map(_K1_PRINTED).tolist()
    chosen = runs.select(where(task="translation"))
    rows = pd.DataFrame(columns=[*keys, OURS, f"{OURS}_sd", *_COUNTS, "runs"])
    if len(chosen):
        rows = means_over_seeds(
            runs, chosen, _TRANSLATION_SCORES, keys, named=_translation_named
        )
        order = ["criterion", "dataset", "method", METRIC]
        rows = in_order(rows, order, {METRIC: _TRANSLATION_METRICS})
    return beside_printed(
        rows,
        printed[[*names, PRINTED]],
        keys,
        columns=[*_COLUMNS, STATUS, CELLS],
        profiles=profiles_of,
        studies=studies_of(runs),
        missing=places_without_data(
            runs, where(task="translation"), _translation_missing
        ),
    )


def _translation_missing(rows: pd.DataFrame) -> pd.DataFrame:
    return _translation_named(rows.assign(arm=""))


def _translation_named(rows: pd.DataFrame) -> pd.DataFrame:
    dataset = rows["dataset"].replace({"wmt14_en_de": "WMT14 En-De"})
    return rows.assign(task=rows["experiment"], dataset=dataset, method=rows["arm"])


def _translated(name: str, metric: Metric, criterion: str) -> Number:
    about = {"criterion": criterion}
    return Number(name, at_selected_epoch(metric), about)


_BLEU = Metric("bleu")
_TRANSLATION_METRICS = (
    "ece",
    "ece_after_scaling",
    "bleu",
    "bleu_after_scaling",
    "temperature",
)
_TRANSLATION_SCORES = (
    _translated("ece", ECE, "ECE"),
    _translated("ece_after_scaling", after_scaling(ECE), "ECE"),
    _translated("temperature", TEMPERATURE, "ECE"),
    _translated("bleu", _BLEU, "BLEU"),
    _translated("bleu_after_scaling", after_scaling(_BLEU), "BLEU"),
    _translated("bleu", Metric("best_bleu"), _BEST),
    _translated("temperature", Metric("best_bleu_temperature"), _BEST),
)


def not_in_a_table(_: Runs | None = None) -> pd.DataFrame:
    """The printed values that are ranges over several networks.

    These values belong to no table.
    """
    titles = {_K1_TITLE}
    titles |= {table.title for table in TABLES if isinstance(table, LossTable)}
    rows = read_csv(PUBLISHED / f"{SLUG}.csv").rename(columns={"model": "network"})
    rows = rows[~rows["table"].isin(titles)]
    rows = rows.assign(status="a range over two networks, see Table 1")
    columns = [
        "table",
        "dataset",
        "network",
        "method",
        "metric",
        "value",
        "unit",
        "status",
    ]
    return rows[columns].reset_index(drop=True)


TABLES: tuple[Table, ...] = (
    _main_table("table_1", *both("ece", ECE), _TEMPERATURE, title="Table 1"),
    _main_table("table_2", number("error", ERROR), title="Table 2"),
    LossTable(
        name="table_3",
        losses=TABLE_1_LOSSES,
        numbers=_on_outliers,
        title="Table 3",
        with_others=True,
    ),
    _main_table("table_f1", *both("adaptive_ece", ADAPTIVE_ECE), _TEMPERATURE),
    _main_table("table_f2", *both("classwise_ece", CLASSWISE_ECE), _TEMPERATURE),
    _focal_table("table_f3", *both("ece", ECE), _TEMPERATURE),
    _focal_table("table_f4", *both("adaptive_ece", ADAPTIVE_ECE), _TEMPERATURE),
    _focal_table("table_f5", *both("classwise_ece", CLASSWISE_ECE), _TEMPERATURE),
    _focal_table("table_f6", number("error", ERROR)),
    _main_table(
        "table_f7",
        number("top1", Metric("accuracy")),
        number("top5", Metric("top5_accuracy")),
        # With five classes or fewer, every class is among the top five.
        fewest_classes=6,
    ),
    _main_table("table_f8", number("nll", NLL)),
    _main_table("table_f9", scaled("nll", NLL)),
    _main_table("table_f10", number("mce", MCE)),
    _main_table("table_f11", scaled("mce", MCE)),
    LossTable(
        name="table_h1",
        losses={"CE": CE, "MMCE": MMCE, "FLSD-53": FLSD_53},
        numbers=_always(*_CONFIDENT),
    ),
    # Deviation: our Table J.1 shows FLSD-53, the method that the paper proposes,
    # because the paper does not say which focal loss its table shows. The paper's
    # criteria choose among all epochs, and in a short run they may choose an untrained
    # network; so we also show each criterion among the epochs whose accuracy is near
    # the best.
    LossTable(
        name="table_j1",
        losses={"CE": CE, "FLSD-53": FLSD_53},
        numbers=_stopped_early,
        by_criterion=True,
        is_evaluated=False,
    ),
    # The authors' notebooks evaluate the released weights, and print more digits than
    # the paper's tables.
    LossTable(
        name="released",
        losses={"CE": CE},
        numbers=_always(*_RELEASED),
        title="evaluation notebook",
        printed_only=True,
    ),
    LossTable(
        name="released_ood",
        losses={"CE": CE},
        numbers=_released_outliers,
        title="notebook evaluate_single_model_ood.ipynb",
        printed_only=True,
    ),
    # This table is our own: it has scores on test images of another data set with the
    # same classes.
    LossTable(
        name="table_shift",
        losses=TABLE_1_LOSSES,
        numbers=_on_shifted_sets,
        with_others=True,
    ),
    Made(name="table_k1", by=translation_scores, lay_out=by_loss, in_rows=by_metric),
    Made(name="not_in_a_table", by=not_in_a_table),
    Made(name="ablation", by=ablation.table, lay_out=ablation.lay_out),
)
"""All tables; those of the paper are in the paper's order."""
