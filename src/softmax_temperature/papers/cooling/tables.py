"""The tables: ours beside the printed ones, and those of ours alone.

They are long, one row for each number; `wide` gives them the layout for a reader.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from softmax_temperature.papers.cooling.comparisons import COMPARED, comparison, wide_comparison
from softmax_temperature.papers.cooling.printed_tables import printed_table, wide_printed
from softmax_temperature.papers.cooling.quantities import quantities, wide_quantities
from softmax_temperature.papers.cooling.table_specs import SPECS, Comparison, Printed

if TYPE_CHECKING:
    import pandas as pd

    from softmax_temperature.papers.cooling.records import Records

__all__ = ["COMPARED", "SPECS", "table", "wide"]


def table(records: Records, name: str) -> pd.DataFrame:
    """One of the tables.

    Args:
        records: the paper's.
        name: a key of `SPECS`.

    Returns:
        As `printed_table`, `comparison` or `quantities` says.
    """
    spec = SPECS[name]
    if isinstance(spec, Printed):
        return printed_table(records, spec)
    return comparison(records, spec) if isinstance(spec, Comparison) else quantities(records, spec)


def wide(table: pd.DataFrame) -> pd.DataFrame:
    """The layout for a reader, numbers as text, fractions in percent.

    Args:
        table: as `table` returns it, or as it is read back.
    """
    if "quantity" in table:
        return wide_quantities(table)
    return wide_comparison(table) if "without" in table else wide_printed(table)
