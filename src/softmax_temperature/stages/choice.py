"""The rule by which the stages and tables of temperature_check choose a rate."""

from collections.abc import Mapping, Sequence


def best_rate(accuracies: Mapping[float, Sequence[float]]) -> float:
    """The learning rate with the highest mean validation accuracy over seeds.

    Of equal rates it is the lowest.
    """

    def mean_accuracy(rate: float) -> float:
        return sum(accuracies[rate]) / len(accuracies[rate])

    return max(sorted(accuracies), key=mean_accuracy)
