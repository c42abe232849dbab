"""What a training needs to know of a split, whatever its samples are."""

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import torch
from torch import Tensor

from softmax_temperature.params.recipe import Recipe


@dataclass(frozen=True)
class Samples:
    """One split: inputs (n, ...) and labels (n,), or more where a sample has several.

    The base of images, tokens, trees and batches of sentence pairs. Each kind says itself how a network is given its
    samples, so that the loop is the same for all of them.
    """

    inputs: Tensor
    labels: Tensor
    one_shape: ClassVar[bool] = False
    """Whether all batches have the same shape, whatever is in them."""

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: str) -> Self:
        """The same where a training on a device wants it."""
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

    def draw(self, batch_size: int, generator: torch.Generator, recipe: Recipe) -> Tensor:
        """What is random about the samples of a batch, from a generator on the CPU: (numbers, batch_size) int64."""
        del generator, recipe
        return torch.empty(0, batch_size, dtype=torch.int64)

    def batch(self, rows: Tensor, drawn: Tensor, recipe: Recipe) -> Tensor:
        """The samples `rows` (b,) as the network is trained on them; `rows` and `drawn` are where the inputs are."""
        del drawn
        return self.prepare(self.inputs[rows], recipe)

    def prepare(self, inputs: Tensor, recipe: Recipe) -> Tensor:
        """Inputs of the same kind, from any split, as the network is evaluated on them; nothing is random."""
        del recipe
        return inputs


class HostSamples(Samples):
    """Samples whose sizes decide what is computed: they stay in the host's memory, and networks upload a batch."""

    def to(self, device: str) -> Self:
        """Labels move; inputs stay."""
        return replace(self, labels=self.labels.to(device))
