"""Tables: CSV files that are equal byte for byte when their numbers are, and the
numbers that the papers print.

Some numbers are shares: fractions in the files, percent for a reader, and differences
    of them in points.
"""

from pathlib import Path
from typing import Any

import pandas as pd

from softmax_temperature.runner.artifacts import write_text
from softmax_temperature.runner.errors import InputError

PUBLISHED = Path("data/published")
UNITS = {
    unit: f"points of {unit}"
    for unit in ("accuracy", "pixel accuracy", "mean IoU", "ECE", "AUROC")
}
_WHOLES = (
    "the mistakes",
    "the trainings",
    "the seeds diverged",
    "the seeds trained",
    "an epoch",
)
UNITS |= {
    "share of predictions": "% of predictions",
    **{f"of {whole}": f"% of {whole}" for whole in _WHOLES},
}
"""The units of claims that are shares, with the words for a reader. What follows a
comma says of which part.
"""
METRICS = {
    "accuracy",
    "error",
    "top1",
    "top5",
    "pixel_accuracy",
    "mean_iou",
    "auroc",
    "s99_share",
    "s99_accuracy",
}
METRICS |= {"ece", "mce", "adaptive_ece", "classwise_ece"}
"""The metrics of tables that are shares; what ends their names says when they were
measured.
"""


def write_csv(path: Path, table: pd.DataFrame) -> None:
    """Write a table atomically, its numbers `rounded`."""
    write_text(path, table.map(rounded).to_csv(index=False, lineterminator="\n"))


def rounded(value: Any) -> Any:
    """A float, or those in nested lists and mappings, to nine significant digits;
    anything else as it is.

    Nine tell every float32 from the next, and leave out the last bits, in which
    machines differ.
    """
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, dict):
        return {name: rounded(each) for name, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value


def read_csv(path: Path) -> pd.DataFrame:
    """Read a table that `write_csv` wrote; one without columns is empty, a missing one
    an `InputError`.
    """
    if not path.is_file():
        raise InputError(
            "no such table",
            where=str(path),
            remedy="Run `dvc repro`, or check the profile's name.",
        )
    try:
        return pd.read_csv(path)
    except pd.errors.EmptyDataError:
        return pd.DataFrame()


def published(paper: str, table: str) -> pd.DataFrame:
    """The numbers that a paper prints in a table, say "Table 1", one row each: model,
    method, metric, value, sd, ...
    """
    numbers = read_csv(PUBLISHED / f"{paper}.csv")
    rows = numbers[numbers["table"] == table].reset_index(drop=True)
    if rows.empty:
        raise ValueError(f"table: {table!r} is not in data/published/{paper}.csv")
    return rows


def is_share(metric: str) -> bool:
    """Whether a metric is a share; one that the authors' notebooks print in percent
    says so itself.
    """
    return (
        metric.removesuffix("_after_scaling").removesuffix("_last_epoch") in METRICS
        or "%" in metric
    )


def in_points(unit: str) -> str | None:
    """The unit of a share as a reader sees it; None where it is that of another number."""
    name, comma, part = unit.partition(",")
    return UNITS[name] + comma + part if name in UNITS else None
