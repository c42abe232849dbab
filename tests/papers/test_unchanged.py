"""The check of shared studies notices each way in which a test may change one."""

from collections.abc import Callable

import pandas as pd
import pytest

from softmax_temperature.papers.shared.runs import Runs
from tests.papers.unchanged import unchanged


def made() -> Runs:
    arms = pd.Categorical(["x", "y"])
    table = pd.DataFrame({"seed": [1, 2], "arm": arms}).rename_axis(index="run")
    measurements = pd.DataFrame({"run": [0], "value": [1.0]})
    return Runs(table, measurements, {"cost": pd.DataFrame({"seconds": [1]})})


def value(runs: Runs) -> None:
    runs.measurements["value"] = [1.0 + 1e-12]


def factor(runs: Runs) -> None:
    runs.table["seed"] = [1, 3]


def type_of_a_column(runs: Runs) -> None:
    runs.table["seed"] = runs.table["seed"].astype("int32")


def order_of_categories(runs: Runs) -> None:
    runs.table["arm"] = runs.table["arm"].cat.reorder_categories(["y", "x"])


def name_of_the_index(runs: Runs) -> None:
    runs.table.index.name = "cell"


def another_table(runs: Runs) -> None:
    runs.tables["cost"]["seconds"] = [2]


def a_new_column(runs: Runs) -> None:
    runs.tables["cost"]["share"] = [2]


@pytest.mark.parametrize(
    "change",
    [
        value,
        factor,
        type_of_a_column,
        order_of_categories,
        name_of_the_index,
        another_table,
        a_new_column,
    ],
)
def test_every_change_of_a_shared_study_is_noticed(
    change: Callable[[Runs], None],
) -> None:
    runs = made()
    with unchanged(runs):
        pass
    with pytest.raises(AssertionError), unchanged(runs):
        change(runs)
