"""The change that an ablation makes, in words.

The words come from the factors in which runs differ, not from a profile, so they cannot
contradict the runs.
"""

from __future__ import annotations

from typing import Any

import pandas as pd

from softmax_temperature.papers.shared.display import (
    ACTIVATIONS,
    OPTIMIZERS,
    SCHEDULES,
    loss_name,
)

ROLES = ("ablation", "ours")
"""The roles of runs that change the recipe or Cooling."""


def changes(table: pd.DataFrame, main: pd.DataFrame) -> list[str]:
    """The change that each run in `table` makes; "" for a run of the main recipe.

    In an experiment that changes only Cooling, a run without Cooling does not differ
    from the main recipe. Such a run takes its label from another run of the experiment.

    Args:
        table: One row per run, with its factors.
        main: The rows of `table` for the runs of the main recipe.
    """
    changing = table[table["role"].isin(ROLES)]
    labels = {
        number: change(run, _main_of(run, main)) for number, run in changing.iterrows()
    }
    by_experiment: dict[str, str] = {}
    for label, name in zip(labels.values(), changing["experiment"], strict=True):
        if label:
            by_experiment.setdefault(name, label)
    return [
        labels.get(number) or by_experiment.get(name, "")
        for number, name in table["experiment"].items()
    ]


def _main_of(run: pd.Series[Any], main: pd.DataFrame) -> pd.DataFrame:
    """The main runs with the data set and network of `run`.

    If there are none, the main runs with its data set and any network.
    """
    on_data: pd.DataFrame = main[main["dataset"] == run["dataset"]]
    same: pd.DataFrame = on_data[on_data["network"] == run["network"]]
    return on_data if same.empty else same


def change(run: pd.Series[Any], main: pd.DataFrame) -> str:
    """Describe in words how `run` differs from the main runs of its task.

    If the recipe differs, the words describe the recipe; otherwise they describe
    Cooling. If there are no main runs, the words say so.
    """
    if main.empty:
        return "no main recipe to compare with"
    recipe = [*_recipe(run, main.iloc[0])]
    if not recipe and run["schedule"] not in set(main["schedule"]):
        schedule = SCHEDULES.get(run["schedule"], run["schedule"])
        recipe.append(f"schedule {schedule}")
    return ", ".join(recipe or _cooling(run))


def _recipe(run: pd.Series[Any], main: pd.Series[Any]) -> list[str]:
    """Describe each factor of the recipe in which `run` differs from `main`."""
    words = []
    if run["activation"] != main["activation"]:
        words.append(ACTIVATIONS.get(run["activation"], run["activation"]))
    if run["optimizer"] != main["optimizer"]:
        words.append(OPTIMIZERS.get(run["optimizer"], run["optimizer"]))
    if run["learning_rate"] != main["learning_rate"]:
        words.append(f"learning rate {run['learning_rate']:g}")
    if run["warmup"] != main["warmup"]:
        words.append(f"warm-up, {run['warmup']:g} of {run['planned_epochs']:g} epochs")
    if run["weight_decay"] != main["weight_decay"]:
        words.append(f"weight decay {run['weight_decay']:g}")
    words += _augmentation(run, main)
    if run["loss"] != main["loss"]:
        words.append(loss_name(run))
    return words


def _augmentation(run: pd.Series[Any], main: pd.Series[Any]) -> list[str]:
    """Describe how the image augmentation of `run` differs from that of `main`."""
    words = []
    if run["crop_padding"] != main["crop_padding"]:
        words.append("random crops" if run["crop_padding"] else "no random crops")
    if run["flip"] != main["flip"]:
        words.append("mirroring" if run["flip"] else "no mirroring")
    return [" and ".join(words)] if words else []


def _cooling(run: pd.Series[Any]) -> list[str]:
    """Describe the settings of Cooling in which `run` differs from the paper."""
    words = []
    period = str(run["period"])
    if period == "1":
        words.append("Cooling after each batch")
    elif period.isdecimal():
        words.append(f"Cooling after every {period} batches")
    if run["refit"] == "increment":
        words.append("factor on each correction")
    if run["optimizer_state"] == "rescale":
        words.append("momentum rescaled with the weights")
    return words
