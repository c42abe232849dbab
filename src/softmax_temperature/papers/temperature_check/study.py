"""The runs of the temperature_check paper, and predicates to select them.

A run is a training run or a trajectory of gradient flow. A sweep is a network on a data
set, trained at several inverse temperatures or from several starts, with several
learning rates. `learning_rate` is the rescaled learning rate: the optimizer's rate
times the inverse temperature squared.

The first seeds of a sweep are used to tune the learning rate. Networks with fresh seeds
may then be trained with the rate that has the best validation accuracy. If there are
fresh seeds, only the runs with these seeds are judged. Runs with Cooling never have
fresh seeds, so they are judged on the first seeds, at the chosen rate.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.early_learning.flows import UNIT
from softmax_temperature.papers.shared.display import architecture_label
from softmax_temperature.papers.shared.factors import (
    ALL,
    Where,
    at_least,
    at_most,
    is_part,
    less_than,
    more_than,
    where,
)
from softmax_temperature.papers.shared.metrics import Derived, Factor, Metric
from softmax_temperature.papers.shared.runs import (
    SEED,
    Runs,
    cell_names,
    read_runs,
)
from softmax_temperature.stages.choice import best_rate

SLUG = "temperature_check"
COURSES = "courses"
MEASURED_TABLES = (COURSES,)
"""The names of the measured tables; each is a file in `tables/`.

courses: one row for each moment of each gradient-flow trajectory that starts from zero
    logits. A moment is a requested time or an event. The columns are `time` (in
    rescaled units), `loss` (the mean loss, in nats), `change` (the norm of the change
    in the tempered logits), `drift` (the relative change of the kernel) with its error
    `drift_error`, and `distance` (the distance between the tempered logits and those of
    the linearised network).
"""
OF_ONE_TASK = (
    "sweep",
    "role",
    "mode",
    "learning_rate",
    "start_norm",
    "correlation",
    "dynamics",
    "smooth",
    "unit_time",
    "logit_time",
    "drift_rate",
)
"""Columns that a study may lack, because only runs of some kinds have them."""
_NUMBERS_OF_A_START = ("inverse_temperature", "start_norm", "correlation")
DATA = ("cifar10", "imagenet", "imagenet64", "imdb")
"""The data sets that count as the paper's.

A part of one of these data sets, such as "cifar10-5000", also counts.
"""
STILL = 0.02
"""The largest relative drift of a kernel that counts as constant.

A drift of 0.1 changes a slope by half a percent, which is more than the difference
between seeds. The bound was 0.2 at first; 0.02 was chosen after the slopes with the
bounds 0.2, 0.05 and 0.02 had been seen.
"""
SMALL = 0.35
LARGE = 20.0
"""Two bounds for the norm of one image's tempered logits.

With ten classes, the softmax is nearly uniform if the norm is at most `SMALL`, and
nearly certain if the norm is at least `LARGE`.
"""

# Kinds of runs. -----------------------------------------------------------------------

TRAINING = where(task="training")
FLOW = where(task="gradient_flow")
OWN_START = TRAINING & where(start="own", mode="none")
"""Networks with their own initial logits, trained without Cooling."""
COOLED = TRAINING & where(start="own", mode="last_layer")
SET_START = TRAINING & where(start=("norm", "pair"))
"""The runs that use a pair of networks, so that the initial logits can be chosen.

The logits are those of a trained network minus those of a frozen one. The start "pair"
sets the correlation between the initial weights of the two networks. With the start
"norm", both networks have the same initial weights, and the frozen logits are scaled so
that the difference has the given mean norm.
"""
TUNING = TRAINING & where(role="tuning")
CHOSEN_RATE = where(is_judged=True).called("the chosen learning rate")
"""The runs with the learning rate of highest validation accuracy.

The rate is chosen separately for each inverse temperature and start. If fresh seeds
were trained at the chosen rate, only their runs are selected.
"""
INSIDE = where(rate_is_inside=True).called("a chosen learning rate inside its grid")
"""The runs whose learning rate is not at the edge of its grid.

If a rate is at the edge, a better rate outside the grid could explain a gain that seems
due to β.
"""
ASKED = where(is_asked=True)
"""The runs on the paper's data sets; all runs if no training run is on one of them."""

SEVERAL_STARTS = where(starts_in_sweep=more_than(1))
SEVERAL_TEMPERATURES = where(temperatures_in_sweep=more_than(1))
TEMPERATURES = (ASKED & CHOSEN_RATE & OWN_START & SEVERAL_TEMPERATURES).called(
    "a sweep of inverse temperatures"
)
NORMS = (CHOSEN_RATE & SET_START & SEVERAL_STARTS).called(
    "a sweep of norms of the logits at the start"
)
NORMS_AFTER_50 = (CHOSEN_RATE & SET_START & where(epochs=50.0)).called(
    "norms of the logits at the start, 50 epochs"
)
"""The runs in `SET_START` that train for 50 epochs with the chosen learning rate.

Each norm has its own learning rates, and is therefore a separate sweep.
"""
SAME_START = CHOSEN_RATE & SET_START & ~SEVERAL_STARTS & SEVERAL_TEMPERATURES
TEMPERATURES_FROM_ONE_START = (ASKED & SAME_START).called(
    "a sweep of inverse temperatures whose networks start as the same function"
)
BELOW_1 = where(inverse_temperature=less_than(1))
FROM_1 = where(inverse_temperature=at_least(1))
AT_1 = where(inverse_temperature=1.0)

NETWORK_ITSELF = FLOW & where(dynamics="network")
FROM_ZERO = NETWORK_ITSELF & where(start="zero")
FROM_A_NORM = NETWORK_ITSELF & where(start="norm")
STILL_KERNEL = (FROM_ZERO & where(kernel_is_still=True)).called(
    "a kernel that is still"
)
SMALL_LOGITS = (FROM_A_NORM & where(norm_of_an_image=at_most(SMALL))).called(
    "small logits"
)
LARGE_LOGITS = (FROM_A_NORM & where(norm_of_an_image=at_least(LARGE))).called(
    "large logits"
)
SMOOTH = where(smooth=True).called("smooth networks")
KINKED = where(smooth=False).called("networks with ReLU")

# Metrics. -----------------------------------------------------------------------------

GUESSING = "guessing"
"""Column: the accuracy of guessing, which counts as the accuracy of a diverged run."""
VALIDATION_ACCURACY = Metric("accuracy", split="validation", lost=GUESSING)
ACCURACY = Metric("accuracy", lost=GUESSING)
ACCURACY_OF_FINISHED = Metric("accuracy")
NLL = Metric("nll", label="nats")
NLL_SCALED = Metric("nll", scaled=True, label="nats")
ECE = Metric("ece")
ECE_SCALED = Metric("ece", scaled=True)
CONFIDENCE = Metric("confidence")
TEMPERATURE = Metric("temperature", scaled=True)
"""The temperature by which temperature scaling divides the tempered logits."""
AT_BOUND = Metric("at_bound", scaled=True)
"""1 if the search for the temperature ended at a bound of its range, else 0."""
COOLED_TEMPERATURE = Metric("temperature", split="validation")
"""The product of the temperatures that all Cooling steps applied."""
HEURISTIC = Metric("heuristic_inverse_temperature", split="train")
"""The inverse temperature that the heuristic of classifier_temperature predicts for the
features of a network that was trained at 1.
"""
NORM_AT_START = Factor("initial_logit_norm")
"""The norm of the tempered logits before the first step. For a training run it is the
mean over validation samples; for gradient flow it is the norm over all images and
classes together.
"""
INVERSE_TEMPERATURE = Factor("inverse_temperature")


def time_to(event: str) -> Metric:
    """The rescaled time at which `event` happens in gradient flow.

    See `early_learning.flows` for the events.
    """
    return Metric(f"time_to_{event}", split="train")


def _drift_at_unit(runs: Runs, _: pd.DataFrame) -> pd.Series[float]:
    rows = runs.tables[COURSES]
    drifts = rows[rows["moment"] == UNIT].set_index("run")["drift"]
    return drifts.astype(float)


DRIFT = Derived("drift of the kernel", _drift_at_unit)
"""The relative drift of the kernel when the tempered logits have changed by 1."""

_NUMBERS = {
    "validation_accuracy": VALIDATION_ACCURACY,
    "test_accuracy": ACCURACY,
    "test_nll": NLL,
    "test_ece": ECE,
    "confidence": CONFIDENCE,
    "temperature": TEMPERATURE,
    "at_bound": AT_BOUND,
    "scaled_nll": NLL_SCALED,
    "scaled_ece": ECE_SCALED,
    "cooled_temperature": COOLED_TEMPERATURE,
    "heuristic": HEURISTIC,
}


def read(folder: Path) -> Runs:
    """The runs in `results/<study>/temperature_check`, with derived columns."""
    return tidied(read_runs(folder, MEASURED_TABLES))


def tidied(runs: Runs) -> Runs:
    """Return `runs` with the columns that are derived from factors and values.

    Returns:
        The runs. The new columns are `own` (whether the data set is in `DATA`),
        `is_asked` (see `ASKED`), `guessing`, `label` (the kind of network),
        `network_and_data` (the title of a sweep; for gradient flow, the network alone),
        `arm`, `start_value` (the given norm or correlation of the start),
        `starts_in_sweep` and `temperatures_in_sweep` (how many the run's sweep has),
        `is_judged` (see `CHOSEN_RATE`), `rate_is_inside` (see `INSIDE`),
        `norm_of_an_image` (the root mean square of the initial norms of single images)
        and `kernel_is_still` (see `STILL`).
    """
    columns = dict.fromkeys([*runs.table, *OF_ONE_TASK])
    table = runs.table.reindex(columns=list(columns))
    table = table.astype(dict.fromkeys(_NUMBERS_OF_A_START, float))
    is_training = TRAINING.mask(table)
    is_paper_data = table["dataset"].map(lambda name: is_part(name, DATA)).astype(bool)
    names = [architecture_label(run) for _, run in table.iterrows()]
    labels = pd.Series(names, table.index, dtype=object)
    titles = table["network"].where(~is_training, labels + ", " + table["dataset"])
    table = table.assign(
        own=is_paper_data,
        is_asked=is_paper_data | (not is_paper_data[is_training].any()),
        guessing=1 / table["classes"],
        label=labels,
        # Use categories, which keep the order of the runs.
        network_and_data=pd.Categorical(titles, categories=titles.unique()),
        arm=[f"β = {value:g}" for value in table["inverse_temperature"]],
        start_value=table["start_norm"].fillna(table["correlation"]),
        norm_of_an_image=table["initial_logit_norm"] / table["train_samples"] ** 0.5,
    )
    sweeps = table.groupby("sweep")
    table = table.assign(
        starts_in_sweep=sweeps["start_value"].transform("nunique"),
        temperatures_in_sweep=sweeps["inverse_temperature"].transform("nunique"),
    )
    runs = replace(runs, table=table)
    still = _kernel_is_still(runs)
    return replace(runs, table=table.assign(kernel_is_still=still).join(_choices(runs)))


def _choices(runs: Runs) -> pd.DataFrame:
    """The columns `is_judged` (see `CHOSEN_RATE`) and `rate_is_inside` (see `INSIDE`).

    If learning rates tie, the lowest one is chosen. A setting without tuning runs has
    no judged runs.
    """
    chosen = runs.select(TRAINING)
    accuracies = VALIDATION_ACCURACY.of(runs, chosen)
    is_judged = pd.Series(False, runs.table.index)
    is_inside = pd.Series(False, runs.table.index)
    setting = ["sweep", "mode", "start_value", "inverse_temperature"]
    for _, rows in chosen.groupby(setting, dropna=False, sort=False):
        tuned = TUNING.select(rows)
        if tuned.empty:
            continue
        by_rate = accuracies[tuned.index].groupby(tuned["learning_rate"]).agg(list)
        rates = rows["learning_rate"]
        is_inside[rows.index] = rates.between(
            by_rate.index.min(), by_rate.index.max(), inclusive="neither"
        )
        is_judged[rows.index] = (~TUNING).mask(rows)
        if len(tuned) == len(rows):
            is_judged[rows.index] = rates == best_rate(by_rate.to_dict())
    return pd.DataFrame({"is_judged": is_judged, "rate_is_inside": is_inside})


def _kernel_is_still(runs: Runs) -> pd.Series[bool]:
    """Whether each trajectory's kernel is constant until the logits have changed by 1.

    Drifts are averaged geometrically over all seeds with the same network and inverse
    temperature.
    """
    chosen = runs.select(FROM_ZERO)
    logarithms = DRIFT.of(runs, chosen).map(np.log)
    groups = logarithms.groupby([chosen["network"], chosen["inverse_temperature"]])
    means = groups.transform("mean").reindex(runs.table.index)
    return means.le(np.log(STILL))


def numbers(runs: Runs, of: Where = ALL) -> pd.DataFrame:
    """One row per training run, with its factors, metrics and cell.

    The table has the columns of `runs.table` and, in addition, `validation_accuracy`
    and `test_accuracy` (both are the accuracy of guessing for a diverged run),
    `test_nll`, `test_ece`, `confidence`, `temperature`, `at_bound`, `scaled_nll`,
    `scaled_ece`, `cooled_temperature`, `heuristic` and `cells`.
    """
    chosen = runs.select(TRAINING & of)
    measured = {name: metric.of(runs, chosen) for name, metric in _NUMBERS.items()}
    return chosen.assign(**measured, cells=cell_names(chosen))


def by_sweep(rows: pd.DataFrame) -> list[tuple[str, pd.DataFrame]]:
    """Group `rows` by sweep, as pairs of the sweep's title and its rows."""
    groups = rows.groupby("sweep", sort=False)
    return [(str(group["network_and_data"].iloc[0]), group) for _, group in groups]


def by_seed(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    """The values of `column` by seed (rows) and inverse temperature (columns)."""
    return rows.pivot(index=SEED, columns="inverse_temperature", values=column)


def sweeps(runs: Runs) -> pd.DataFrame:
    """The table of sweeps for readers: data set, network and sizes."""
    rows = runs.select(TRAINING)
    columns: dict[str, Any] = {
        name: rows[name]
        for name in (
            "sweep",
            "dataset",
            "network",
            "label",
            "classes",
            "parameters",
            "epochs",
            "train_samples",
            "validation_samples",
            "test_samples",
        )
    }
    cells = ["/".join(cell.split("/")[:3]) for cell in rows["cell"]]
    table = pd.DataFrame(columns).assign(cells=cells)
    table = table.rename(columns={"label": "architecture"})
    table["start"] = "its own logits"
    for chosen, words in ((NORMS, "norm set"), (SAME_START, "one for all β")):
        is_chosen = table["sweep"].isin(runs.select(chosen)["sweep"])
        table.loc[is_chosen, "start"] = words
    return table.drop_duplicates("sweep").reset_index(drop=True)
