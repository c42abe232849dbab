"""Effects over trainings: what the claims of papers that compare trainings are judged by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from softmax_temperature.papers.shared.claims import Evidence, mean_with_interval

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Effect:
    """A mean over trainings or seeds, or the value of the only one.

    Attributes:
        value, n: the effect, and the number of values behind it.
        sd: over them; None for one.
        low, high: the 90 % interval: by Student's t over several values, for a single one whatever its maker has; None
            where there is neither.
    """

    value: float
    n: int
    sd: float | None = None
    low: float | None = None
    high: float | None = None

    @classmethod
    def of(cls, values: pd.Series[float]) -> Effect:
        """The mean of at least one value, each counted as independent of the others."""
        if len(values) == 1:
            return cls(float(values.iloc[0]), 1)
        mean = mean_with_interval(np.asarray(values, np.float64))
        return cls(mean.value, mean.n, mean.sd, mean.low, mean.high)

    @classmethod
    def over_seeds(cls, values: pd.Series[float]) -> Effect:
        """The mean over seeds of at least one value.

        Trainings of one seed start from the same weights and see the same samples in the same order. They are no
        independent pairs, so that a seed counts once, with the mean of its values.

        Args:
            values: by `seed`, and whatever else is averaged over.
        """
        return cls.of(values.groupby(level="seed").mean())

    @property
    def lowest(self) -> float:
        """The lower end of the interval, or the value where there is none: of several effects the smallest decides."""
        return self.value if self.low is None else self.low

    def above(self, bound: float) -> bool:
        """Whether the interval, or the value where there is none, lies above a bound."""
        return self.lowest > bound

    def below(self, bound: float) -> bool:
        """Whether the interval, or the value where there is none, lies below a bound."""
        return (self.value if self.high is None else self.high) < bound

    def evidence(
        self, *, holds: bool, unit: str, cells: tuple[str, ...], note: str = "", bounds: tuple[float, ...] = (0.0,)
    ) -> Evidence:
        """The effect as evidence; the note says what a single seed is worth."""
        interval = "no interval" if self.low is None else "interval over test samples"
        notes = "; ".join(filter(None, (note, f"one seed, {interval}" if self.n == 1 else "")))
        spread = {"sd": self.sd, "low": self.low, "high": self.high}
        return Evidence(holds, self.value, self.n, unit, **spread, bounds=bounds, note=notes, cells=cells)

    def __str__(self) -> str:
        interval = "" if self.low is None else f" [{self.low:.3f}, {self.high:.3f}]"
        return f"{self.value:+.3f}{interval}"
