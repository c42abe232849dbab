"""Effects over trainings: what the claims of papers that compare trainings are judged by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from softmax_temperature.claims import Evidence, mean_with_interval

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Effect:
    """A mean over seeds, or the value of the only one.

    Attributes:
        value, n: the effect, and the number of seeds behind it.
        sd: over them; None for one.
        low, high: its 90 % interval by Student's t; None for one.
    """

    value: float
    n: int
    sd: float | None = None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, values: pd.Series[float]) -> Effect:
        """The mean over seeds of at least one value.

        Trainings of one seed start from the same weights and see the same samples in the same order. They are no
        independent pairs, so that a seed counts once, with the mean of its values.

        Args:
            values: by `seed`, and whatever else is averaged over.
        """
        values = values.groupby(level="seed").mean()
        if len(values) == 1:
            return cls(float(values.iloc[0]), 1)
        mean = mean_with_interval(np.asarray(values, np.float64))
        return cls(mean.value, mean.n, mean.sd, mean.low, mean.high)

    def above(self, bound: float) -> bool:
        """Whether the interval, or the only value, lies above a bound."""
        return (self.value if self.low is None else self.low) > bound

    def below(self, bound: float) -> bool:
        """Whether the interval, or the only value, lies below a bound."""
        return (self.value if self.high is None else self.high) < bound

    def evidence(self, *, holds: bool, unit: str, note: str = "") -> Evidence:
        """The effect as evidence; the note says what a single seed is worth."""
        notes = "; ".join(filter(None, (note, "one seed, no interval" if self.n == 1 else "")))
        return Evidence(holds, self.value, self.n, unit, sd=self.sd, low=self.low, high=self.high, note=notes)
