"""Parsed sentences on the device, with a label at the root or at every node (focal paper, appendix E: SST)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from softmax_temperature.data.tokens import PADDING
from softmax_temperature.data.trees import LABEL, UNLABELLED
from softmax_temperature.training.samples import check_for_texts, equal_distances

if TYPE_CHECKING:
    from softmax_temperature.params.recipe import Recipe
    from softmax_temperature.training.trainer import Objective


@dataclass(frozen=True)
class TreeSet:
    """One split on one device.

    Attributes:
        trees: (n, nodes, 4) int64, as `trees.encode_trees` gives them.
        labels: (n,) int64, of the roots; or (n, nodes), of all nodes, `UNLABELLED` where there is none.
    """

    trees: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        if self.trees.ndim != 3 or self.trees.shape[2] != 4 or self.trees.dtype != torch.int64:
            raise ValueError(f"trees must be (n, nodes, 4) int64, got {tuple(self.trees.shape)} {self.trees.dtype}")
        shapes = {tuple(self.trees.shape[:1]), tuple(self.trees.shape[:2])}
        if tuple(self.labels.shape) not in shapes:
            raise ValueError(f"labels must have one of the shapes {shapes}, got {tuple(self.labels.shape)}")
        if len(wrong := _no_trees(self.trees)):
            raise ValueError(f"trees must have each node but the root below one before it, not so in row {wrong[0]}")

    @property
    def inputs(self) -> Tensor:
        """The trees."""
        return self.trees

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: str) -> TreeSet:
        """The same on another device."""
        return TreeSet(self.trees.to(device), self.labels.to(device))

    def sample(self, count: int | None) -> TreeSet:
        """About `count` trees at equal distances, or all of them for None and when there are no more."""
        if count is None or count >= len(self):
            return self
        rows = equal_distances(len(self), count, self.labels.device)
        return TreeSet(self.trees[rows], self.labels[rows])

    def labelled_nodes(self) -> TreeSet:
        """The same trees with the labels of all nodes, to be trained on."""
        return TreeSet(self.trees, self.trees[..., LABEL])

    def check(self, recipe: Recipe) -> None:
        """Refuse a recipe that does to pixels what cannot be done to words.

        Raises:
            ValueError: it augments or normalises.
        """
        check_for_texts(recipe)

    def batch(self, rows: Tensor, generator: torch.Generator, recipe: Recipe) -> Tensor:
        """Some trees (b, nodes, 4); nothing about them is random."""
        del generator
        return self.prepare(self.trees[rows], recipe)

    def prepare(self, inputs: Tensor, recipe: Recipe) -> Tensor:
        """Trees (b, nodes, 4) as they are."""
        del recipe
        return inputs


# Deviation: the text does not say how the losses of nodes are added up. Here, as in the released code, they are summed
# over a tree and averaged over the trees of a batch, which sizes the plain steps of the embedding and weighs the weight
# decay. Equation 15 of Tai et al. 2015 averages over nodes.


def over_labelled_nodes(objective: Objective) -> Objective:
    """An objective's sum over the nodes of a tree, as a mean over the trees of a batch.

    Nodes count that have a label for which there is a logit: without one for neutral nodes, these have no loss.

    Args:
        objective: a mean over m nodes, of logits (m, classes) and labels (m,).

    Returns:
        Of logits (b, nodes, classes) and labels (b, nodes), or of (b, classes) and (b,).
    """

    def loss(logits: Tensor, labels: Tensor, position: float) -> Tensor:
        known = (labels != UNLABELLED) & (labels < logits.shape[-1])
        return objective(logits[known], labels[known], position) * (known.sum() / len(labels))

    return loss


def _no_trees(trees: Tensor) -> list[int]:
    """The rows whose nodes do not hang together as one tree."""
    words, left, right, _ = trees.unbind(2)
    numbers = torch.arange(trees.shape[1], device=trees.device)
    inner = (left != 0) | (right != 0)
    real = inner | (words != PADDING)
    is_below = torch.zeros_like(left)
    misplaced = (inner & (words != PADDING)) | (words < 0)
    for side in (left, right):
        misplaced |= inner & ((side <= numbers) | (side >= len(numbers)))
        is_below.scatter_add_(1, side.clamp(0, len(numbers) - 1), inner.long())
    apart = is_below != real.long()
    apart[:, 0] = ~real[:, 0] | (is_below[:, 0] != 0)
    return [int(row) for row in (misplaced | apart).any(1).nonzero().squeeze(1)]
