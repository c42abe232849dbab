"""What the stage and the tables of the temperature_check paper choose by one rule."""

from collections.abc import Mapping, Sequence
from typing import Any


def best_rate(accuracies: Mapping[Any, Sequence[float]]) -> float:
    """The learning rate with the highest mean validation accuracy over seeds; of equal ones, the lowest."""
    best: float = max(sorted(accuracies), key=lambda rate: sum(accuracies[rate]) / len(accuracies[rate]))
    return best
