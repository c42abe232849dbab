"""Names that papers without contrasts still import from here."""

from softmax_temperature.papers.shared.layout import MISSING, number, wide
from softmax_temperature.papers.shared.tables import (
    DIFFERENCE,
    DIVERGED,
    MEASURED,
    METRIC,
    NOT_RUN,
    OURS,
    PRINTED,
    SEEDS,
    STATUS,
    STUCK,
    beside_printed,
    lost_seeds,
    mean_and_sd,
)

__all__ = [
    "DIFFERENCE",
    "DIVERGED",
    "MEASURED",
    "METRIC",
    "MISSING",
    "NOT_RUN",
    "OURS",
    "PRINTED",
    "SEEDS",
    "STATUS",
    "STUCK",
    "beside_printed",
    "lost_seeds",
    "mean_and_sd",
    "number",
    "wide",
]
