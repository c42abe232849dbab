"""What the stage confirm_temperature_check and the tables of its paper choose by one
rule: the learning rate.
"""

from collections.abc import Mapping, Sequence
from typing import Any


def best_rate(accuracies: Mapping[Any, Sequence[float]]) -> float:
    """The learning rate with the highest mean validation accuracy over seeds; of equal
    ones, the lowest.
    """
    best: float = max(
        sorted(accuracies),
        key=lambda rate: sum(accuracies[rate]) / len(accuracies[rate]),
    )
    return best
