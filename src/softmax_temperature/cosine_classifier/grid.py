"""Result of a search over inverse temperatures: accuracies, optimum and plateau."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class TemperatureGrid:
    """Accuracy for every inverse temperature, repeat and epoch.

    classifier_temperature, sections 3.2 and 4.3.

    Attributes:
        inverse_temperatures: The searched values, in any order.
        curves: Accuracy after each epoch, as a fraction; the tensor has shape (repeats,
            temperatures, epochs).
        evaluated: Number of samples from which each accuracy is computed, at least 1.
    """

    inverse_temperatures: tuple[float, ...]
    curves: Tensor
    evaluated: int

    def __post_init__(self) -> None:
        shape = tuple(self.curves.shape)
        temperatures = len(self.inverse_temperatures)
        if len(shape) != 3 or 0 in shape or shape[1] != temperatures:
            raise ValueError(
                f"curves must have shape (repeats, {temperatures} temperatures, "
                f"epochs), got {shape}"
            )

    @property
    def accuracy(self) -> Tensor:
        """Best accuracy over the epochs, shape (repeats, temperatures).

        The paper records the same accuracy (section 4.3).
        """
        return self.curves.amax(dim=2)

    @property
    def best_inverse_temperature(self) -> float:
        """The inverse temperature with the highest mean accuracy over repeats.

        If several values are tied, the result is their median, or the lower of the two
        middle values.
        """
        # Deviation: among equally good temperatures we take the median, which
        # represents a saturated range better than its first value. The paper does not
        # say which one it takes.
        temperatures, mean = self._ascending()
        return temperatures[self._best(mean)]

    @property
    def plateau(self) -> tuple[float, float]:
        """Lowest and highest inverse temperature of the plateau around the optimum.

        The plateau is the unbroken run around the optimum in which the mean accuracy
        stays within one standard error of the highest mean a. The standard error is the
        binomial sqrt(a (1 - a) / evaluated); repeats share one set of samples and do
        not make it smaller.
        """
        temperatures, mean = self._ascending()
        highest = float(mean.max())
        variance = max(highest * (1 - highest), 0.0) / self.evaluated
        threshold = highest - math.sqrt(variance) - self._tie
        low = high = self._best(mean)
        while low > 0 and mean[low - 1] >= threshold:
            low -= 1
        while high + 1 < len(temperatures) and mean[high + 1] >= threshold:
            high += 1
        return temperatures[low], temperatures[high]

    @property
    def _tie(self) -> float:
        """The change in mean accuracy that half a correct sample would make.

        Means that differ by less have the same number of correct samples and differ
        only by rounding.
        """
        return 0.5 / (self.evaluated * self.curves.shape[0])

    def _ascending(self) -> tuple[list[float], Tensor]:
        """The sorted inverse temperatures, and the mean accuracy at each of them."""
        temperatures = self.inverse_temperatures
        order = sorted(range(len(temperatures)), key=temperatures.__getitem__)
        mean = self.accuracy.double().mean(dim=0)
        return [temperatures[position] for position in order], mean[order]

    def _best(self, mean: Tensor) -> int:
        """The position of the optimum among the sorted inverse temperatures."""
        tied = torch.nonzero(mean > mean.max() - self._tie).flatten()
        return int(tied[(len(tied) - 1) // 2])
