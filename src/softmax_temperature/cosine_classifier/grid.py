"""The result of a search over inverse temperatures: accuracies, the optimum and its
plateau.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class TemperatureGrid:
    """Accuracy of every inverse temperature, repeat and epoch (classifier_temperature,
    sections 3.2 and 4.3).
    """

    inverse_temperatures: tuple[float, ...]
    # Accuracy after each epoch, shape (repeats, temperatures, epochs), fractions.
    curves: Tensor
    evaluated: int  # Number of samples behind each accuracy, at least 1.

    def __post_init__(self) -> None:
        shape, temperatures = tuple(self.curves.shape), len(self.inverse_temperatures)
        if len(shape) != 3 or 0 in shape or shape[1] != temperatures:
            raise ValueError(
                f"curves must have shape (repeats, {temperatures} temperatures, epochs), got {shape}"
            )

    @property
    def accuracy(self) -> Tensor:
        """Best accuracy over the epochs, shape (repeats, temperatures), as the paper
        tracks it (section 4.3).
        """
        return self.curves.amax(dim=2)

    @property
    def best_inverse_temperature(self) -> float:
        """The highest mean over repeats of the best accuracy; of tied ones the median,
        the lower of two middle ones.
        """
        # Deviation: the paper does not say which of several equally good temperatures
        # it takes. The middle of a saturated stretch says more than the end that a
        # search happens to meet first.
        temperatures, mean = self._ascending()
        return temperatures[self._best(mean)]

    @property
    def plateau(self) -> tuple[float, float]:
        """Lowest and highest inverse temperature of the unbroken run around the optimum
        that does as well.

        As well: a mean accuracy at most one standard error below the highest mean a.
        The standard error is the binomial sqrt(a (1 - a) / evaluated); repeats share
        one set of samples and do not make it smaller.
        """
        temperatures, mean = self._ascending()
        highest = float(mean.max())
        threshold = (
            highest
            - math.sqrt(max(highest * (1 - highest), 0.0) / self.evaluated)
            - self._tie
        )
        low = high = self._best(mean)
        while low > 0 and mean[low - 1] >= threshold:
            low -= 1
        while high + 1 < len(temperatures) and mean[high + 1] >= threshold:
            high += 1
        return temperatures[low], temperatures[high]

    @property
    def _tie(self) -> float:
        """Half a correct sample: mean accuracies closer than that are the same count,
        rounded differently.
        """
        return 0.5 / (self.evaluated * self.curves.shape[0])

    def _ascending(self) -> tuple[list[float], Tensor]:
        """Inverse temperatures in ascending order, and the mean over repeats of the
        best accuracy of each.
        """
        order = sorted(
            range(len(self.inverse_temperatures)),
            key=self.inverse_temperatures.__getitem__,
        )
        mean = self.accuracy.double().mean(dim=0)
        return [self.inverse_temperatures[position] for position in order], mean[order]

    def _best(self, mean: Tensor) -> int:
        tied = torch.nonzero(mean > mean.max() - self._tie).flatten()
        return int(tied[(len(tied) - 1) // 2])
