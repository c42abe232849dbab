"""Checked settings, embeddings and labels, and the random streams of a training."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from softmax_temperature.metrics.checks import check_count, check_embeddings, check_positive

OPTIMIZERS = ("sgd", "adam")
PRECISIONS = ("float32", "bfloat16", "float64")
INITIAL_WEIGHTS, BATCH_ORDER = 0, 1  # Streams of random numbers that one seed spawns.


@dataclass(frozen=True)
class Settings:
    """What `train_temperature_grid` explains, and the most problems in a block."""

    batch_size: int
    lr: float
    momentum: float = 0.9
    rescale: bool = True
    optimizer: str = "sgd"
    repeats: int = 1
    seed: int = 0
    precision: str = "float32"
    problems_per_block: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("batch_size", 1), ("repeats", 1), ("seed", 0), ("problems_per_block", 1)):
            if (value := getattr(self, name)) is not None:
                check_count(value, name, least=least)
        check_positive(self.lr, "lr")
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must be in [0, 1), got {self.momentum}")
        for name, values in (("optimizer", OPTIMIZERS), ("precision", PRECISIONS)):
            if (value := getattr(self, name)) not in values:
                raise ValueError(f"{name} must be one of {', '.join(values)}, got {value!r}")

    @property
    def wide_dtype(self) -> torch.dtype:
        """The dtype of weights, softmax and update; only matrix products are narrower."""
        return torch.float64 if self.precision == "float64" else torch.float32


def normalise(embeddings: Tensor, *, name: str = "embeddings") -> Tensor:
    """Embeddings, shape (n, dim), scaled to Euclidean length 1; ValueError if malformed, or a row has no direction."""
    # The largest entry, taken out first, keeps the squares of very small and very large embeddings in range.
    return functional.normalize(embeddings / check_embeddings(embeddings, name), dim=1)


def generator(seed: int, stream: int, index: int) -> torch.Generator:
    """The random numbers of one repeat or epoch; on the CPU, so that every device draws the same."""
    state = np.random.SeedSequence([seed, stream, index]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0] >> np.uint64(1)))
