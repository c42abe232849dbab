"""Numbers as a reader sees them. They are fractions and nats, as in the records; what is missing is a dash."""

from __future__ import annotations

from typing import Any

import pandas as pd

NONE = "–"
LARGE = 10


def number(value: Any) -> str:
    """Four digits after the point; from 10 on five in all, and none after the point of a whole number.

    Args:
        value: a number; None and NaN are missing.
    """
    if value is None or pd.isna(value):
        return NONE
    text = f"{value:.4f}" if abs(value) < LARGE else f"{value:.5g}"
    return _minus(text if float(text) else text.removeprefix("-"))


def with_deviation(value: Any, deviation: Any) -> str:
    """A mean ± its standard deviation, or the mean alone."""
    parts = [number(value), number(deviation)]
    return parts[0] if NONE in parts else " ± ".join(parts)


def as_printed(value: Any) -> str:
    """A number with no more digits than it has."""
    return NONE if value is None or pd.isna(value) else _minus(f"{value:g}")


def signed(value: float) -> str:
    """One digit after the point, with its sign."""
    return _minus(f"{value:+.1f}")


def _minus(text: str) -> str:
    """The sign of a negative number as long as a plus."""
    return text.replace("-", "−")
