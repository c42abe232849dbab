"""The values that the papers print."""

from pathlib import Path

import pandas as pd

from softmax_temperature.papers.shared.files import read_csv

PUBLISHED = Path("data/published")


def published(paper: str, table: str) -> pd.DataFrame:
    """The values that a paper prints in a table, such as "Table 1".

    Each row has one value, with the columns model, method, metric, value, sd and
    others.
    """
    numbers = read_csv(PUBLISHED / f"{paper}.csv")
    rows = numbers[numbers["table"] == table].reset_index(drop=True)
    if rows.empty:
        raise ValueError(f"table: {table!r} is not in data/published/{paper}.csv")
    return rows
