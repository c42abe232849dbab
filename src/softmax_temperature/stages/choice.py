"""The rule by which temperature_check's stages and tables choose a learning rate."""

from collections.abc import Mapping, Sequence
from typing import Any


def best_rate(accuracies: Mapping[Any, Sequence[float]]) -> float:
    """Choose the learning rate with the highest mean validation accuracy over seeds.

    If several rates tie, the lowest of them is returned.
    """

    def mean_accuracy(rate: float) -> float:
        return sum(accuracies[rate]) / len(accuracies[rate])

    best: float = max(sorted(accuracies), key=mean_accuracy)
    return best
