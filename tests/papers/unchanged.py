"""A check that tests do not change the made-up study that they share."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pandas as pd

from softmax_temperature.papers.shared.runs import Runs


@contextmanager
def unchanged(runs: Runs) -> Iterator[Runs]:
    """Yield the runs to a `with` block; fail at the end of the block if it changed
    them.
    """
    before = replace(
        runs,
        table=runs.table.copy(),
        measurements=runs.measurements.copy(),
        tables={name: table.copy() for name, table in runs.tables.items()},
    )
    yield runs
    _expect_same(runs.table, before.table)
    _expect_same(runs.measurements, before.measurements)
    assert runs.tables.keys() == before.tables.keys()
    for name, table in runs.tables.items():
        _expect_same(table, before.tables[name])


def _expect_same(table: pd.DataFrame, before: pd.DataFrame) -> None:
    # `equals` takes milliseconds. The other check takes seconds, but names the
    # differences.
    if not (table.equals(before) and _types(table) == _types(before)):
        pd.testing.assert_frame_equal(table, before)
        raise AssertionError("the tests changed a table that they share")


def _types(table: pd.DataFrame) -> list[Any]:
    """Properties that `equals` ignores: types of columns and axes, names of axes."""
    return [
        *((str(axis.dtype), list(axis.names)) for axis in table.axes),
        *((str(one), list(getattr(one, "categories", ()))) for one in table.dtypes),
    ]
