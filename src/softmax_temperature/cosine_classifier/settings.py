"""Checked settings of the batched training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from softmax_temperature.cosine_classifier.updates import UPDATES
from softmax_temperature.metrics.checks import check_count, check_positive

PRECISIONS = ("float32", "bfloat16", "float64")


@dataclass(frozen=True)
class Settings:
    """What `TemperatureGridTrainer` is told beside the data; its docstring explains each field."""

    batch_size: int
    lr: float
    momentum: float
    rescale: bool
    optimizer: str
    repeats: int
    seed: int
    precision: str
    problems_per_block: int | None

    def __post_init__(self) -> None:
        for name, least in (("batch_size", 1), ("repeats", 1), ("seed", 0), ("problems_per_block", 1)):
            if (value := getattr(self, name)) is not None:
                check_count(value, name, least=least)
        check_positive(self.lr, "lr")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must be in [0, 1), got {self.momentum}")
        if self.optimizer not in UPDATES:
            raise ValueError(f"optimizer must be one of {', '.join(UPDATES)}, got {self.optimizer!r}")
        if self.precision not in PRECISIONS:
            raise ValueError(f"precision must be one of {', '.join(PRECISIONS)}, got {self.precision!r}")

    @property
    def wide_dtype(self) -> torch.dtype:
        """The dtype of weights, softmax and update; only matrix products are narrower."""
        return torch.float64 if self.precision == "float64" else torch.float32


def checked_inverse_temperatures(inverse_temperatures: Sequence[float] | Tensor) -> tuple[float, ...]:
    """The same numbers.

    Raises:
        ValueError: there is none, or one is not finite and above zero.
    """
    numbers = tuple(float(number) for number in inverse_temperatures)
    if not numbers:
        raise ValueError("inverse_temperatures must hold at least one number, got none")
    for number in numbers:
        check_positive(number, "inverse_temperatures")
    return numbers
