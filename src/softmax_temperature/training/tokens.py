"""Texts as numbers on the device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from softmax_temperature.data.tokens import PADDING
from softmax_temperature.training.samples import check_for_texts, equal_distances

if TYPE_CHECKING:
    from softmax_temperature.params.recipe import Recipe


@dataclass(frozen=True)
class TokenSet:
    """One split on one device.

    Attributes:
        tokens: (n, length) int64, padded on the right with `PADDING`; every row has at least one other token.
        labels: (n,) int64.
    """

    tokens: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        if self.tokens.ndim != 2 or self.tokens.dtype != torch.int64:
            shape, dtype = tuple(self.tokens.shape), self.tokens.dtype
            raise ValueError(f"tokens must be (n, length) int64, got {shape} {dtype}")
        count = len(self.tokens)
        if tuple(self.labels.shape) != (count,):
            raise ValueError(f"labels must have shape ({count},), got {tuple(self.labels.shape)}")
        if len(wrong := _badly_padded(self.tokens)):
            raise ValueError(f"tokens must have no padding before or between them, got some in row {int(wrong[0])}")

    @property
    def inputs(self) -> Tensor:
        """The tokens."""
        return self.tokens

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: str) -> TokenSet:
        """The same on another device."""
        return TokenSet(self.tokens.to(device), self.labels.to(device))

    def sample(self, count: int | None) -> TokenSet:
        """About `count` texts at equal distances, or all of them for None and when there are no more."""
        if count is None or count >= len(self):
            return self
        rows = equal_distances(len(self), count, self.labels.device)
        return TokenSet(self.tokens[rows], self.labels[rows])

    def check(self, recipe: Recipe) -> None:
        """Refuse a recipe that does to pixels what cannot be done to words.

        Raises:
            ValueError: it augments or normalises.
        """
        check_for_texts(recipe)

    def batch(self, rows: Tensor, generator: torch.Generator, recipe: Recipe) -> Tensor:
        """Some texts (b, length); nothing about them is random."""
        del generator
        return self.prepare(self.tokens[rows], recipe)

    def prepare(self, inputs: Tensor, recipe: Recipe) -> Tensor:
        """Tokens (b, length) as they are: the network's embedding is all that happens to them."""
        del recipe
        return inputs


def _badly_padded(tokens: Tensor) -> Tensor:
    """The rows that are empty, or go on after padding."""
    real = tokens != PADDING
    goes_on = (real[:, 1:] & ~real[:, :-1]).any(1)
    return (goes_on | ~real.any(1)).nonzero().squeeze(1)
