"""A check that tests do not change the made-up study that they share."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pandas as pd

from softmax_temperature.papers.shared.runs import Runs


@contextmanager
def unchanged(runs: Runs) -> Iterator[Runs]:
    """Give the runs to a block; fail at the end of the block if it changed the runs."""
    before = replace(
        runs,
        table=runs.table.copy(),
        measurements=runs.measurements.copy(),
        tables={name: table.copy() for name, table in runs.tables.items()},
    )
    yield runs
    pd.testing.assert_frame_equal(runs.table, before.table)
    pd.testing.assert_frame_equal(runs.measurements, before.measurements)
    assert runs.tables.keys() == before.tables.keys()
    for name, table in runs.tables.items():
        pd.testing.assert_frame_equal(table, before.tables[name])
