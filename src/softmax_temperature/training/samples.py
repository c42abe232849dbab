"""What a training needs to know of a split, whatever its samples are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from softmax_temperature.params.recipe import Recipe


@dataclass(frozen=True)
class Samples:
    """One split on one device; the base of images, tokens, trees and batches of sentence pairs.

    Each kind says itself how a network is given its samples, so that the loop is the same for all of them.

    Attributes:
        inputs: (n, ...) as they are kept.
        labels: (n,) int64, or more where a sample has several.
    """

    inputs: Tensor
    labels: Tensor

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: str) -> Self:
        """The same on another device."""
        return replace(self, inputs=self.inputs.to(device), labels=self.labels.to(device))

    def sample(self, count: int | None) -> Self:
        """`count` samples at equal distances, or all of them for None and when there are no more.

        Prepared samples are often sorted by class: equal distances keep the classes balanced.
        """
        if count is None or count >= len(self):
            return self
        rows = torch.arange(count, device=self.labels.device) * len(self) // count
        return replace(self, inputs=self.inputs[rows], labels=self.labels[rows])

    def check(self, recipe: Recipe) -> None:
        """Refuse, by a ValueError, a recipe by which these samples cannot be trained: here one that is for images."""
        asked = {name: getattr(recipe, name) for name in ("crop_padding", "flip", "mean", "std")}
        if any(asked.values()):
            raise ValueError(f"recipe must neither augment nor normalise texts, got {asked}")

    def batch(self, rows: Tensor, generator: torch.Generator, recipe: Recipe) -> Tensor:
        """Some samples as the network is trained on them.

        Args:
            rows: (b,) which, on the device.
            generator: on the CPU; draws whatever is random about them.
            recipe: one that `check` accepts.
        """
        del generator
        return self.prepare(self.inputs[rows], recipe)

    def prepare(self, inputs: Tensor, recipe: Recipe) -> Tensor:
        """Inputs of the same kind, from any split, as the network is evaluated on them; nothing is random."""
        del recipe
        return inputs
