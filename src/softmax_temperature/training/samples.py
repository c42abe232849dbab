"""What a training needs to know of a split, whatever its samples are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, Self

import torch
from torch import Tensor

if TYPE_CHECKING:
    from softmax_temperature.params.recipe import Recipe


class Samples(Protocol):
    """One split on one device: `ImageSet`, `TokenSet`, `TreeSet`, and `LengthBatches` of sentence pairs.

    Each kind says itself how a network is given its samples, so that the loop is the same for all of them.
    """

    @property
    def inputs(self) -> Tensor:
        """(n, ...) as they are kept."""

    @property
    def labels(self) -> Tensor:
        """(n,) int64, or more where a sample has several."""

    def __len__(self) -> int:
        """How many samples."""

    def to(self, device: str) -> Self:
        """The same on another device."""

    def sample(self, count: int | None) -> Self:
        """About `count` samples at equal distances, or all of them for None and when there are no more."""

    def check(self, recipe: Recipe) -> None:
        """Refuse a recipe that these samples cannot be trained by.

        Raises:
            ValueError: it asks for what has no meaning for them, or does not say what they need.
        """

    def batch(self, rows: Tensor, generator: torch.Generator, recipe: Recipe) -> Tensor:
        """Some samples as the network is trained on them.

        Args:
            rows: (b,) which, on the device.
            generator: on the CPU; draws whatever is random about them.
            recipe: one that `check` lets pass.
        """

    def prepare(self, inputs: Tensor, recipe: Recipe) -> Tensor:
        """Inputs of the same kind, from any split, as the network is evaluated on them; nothing is random."""


def equal_distances(size: int, count: int, device: torch.device) -> Tensor:
    """(count,) row numbers of `size`, at equal distances: balanced over classes that come one after another."""
    return torch.arange(count, device=device) * size // count


def check_for_texts(recipe: Recipe) -> None:
    """Refuse a recipe that does to pixels what cannot be done to words.

    Raises:
        ValueError: it augments or normalises.
    """
    asked = {name: getattr(recipe, name) for name in ("crop_padding", "flip", "mean", "std")}
    if any(asked.values()):
        raise ValueError(f"recipe must neither augment nor normalise texts, got {asked}")
