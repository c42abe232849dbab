"""Texts and parse trees as token IDs, and the loss of trees with a label per node."""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from softmax_temperature.data.tokens import PADDING
from softmax_temperature.data.trees import LABEL, UNLABELLED
from softmax_temperature.losses.base import Loss
from softmax_temperature.networks.layers import upload
from softmax_temperature.training.samples import HostSamples


@dataclass(frozen=True)
class TokenSet(HostSamples):
    """Texts: int64 token IDs of shape (n, length), and labels of shape (n,).

    Rows are padded on the right with `PADDING`, and every row has at least one token.
    """

    def __post_init__(self) -> None:
        sound = self.inputs.ndim == 2 and self.inputs.dtype == torch.int64
        form = "tokens must be (n, length) int64"
        self.require(sound, form, tuple(self.inputs.shape[:1]))
        is_token = self.inputs != PADDING
        after_padding = is_token[:, 1:] & ~is_token[:, :-1]
        wrong = (after_padding.any(1) | ~is_token.any(1)).nonzero()
        if len(wrong):
            row = int(wrong[0])
            raise ValueError(
                f"tokens must have no padding before or between them, got some in row "
                f"{row}"
            )


@dataclass(frozen=True)
class TreeSet(HostSamples):
    """Parse trees from `encode_trees`, (n, nodes, 4) int64.

    Labels belong to the roots, (n,), or to all nodes, (n, nodes).
    """

    def __post_init__(self) -> None:
        shape = tuple(self.inputs.shape)
        sound = shape[2:] == (4,) and self.inputs.dtype == torch.int64
        self.require(sound, "trees must be (n, nodes, 4) int64", shape[:1], shape[:2])

    def to(self, device: str) -> Self:  # noqa: ARG002
        """Leave the samples on the CPU, because labels determine tensors' shapes."""
        return self

    def labelled_nodes(self) -> Self:
        """Return the same trees with the labels of all nodes, for training."""
        return replace(self, labels=self.inputs[..., LABEL])


# Deviation: as in the released code, we sum the losses of nodes over a tree and average
# over the trees of a batch; the paper does not say how they are combined. Equation 15
# of Tai et al. 2015 averages over nodes. A sum has larger gradients than an average, so
# the separate gradient steps of the word embedding (`EmbeddingSteps`) are longer, and
# the weight decay counts for less relative to the loss.


class OverLabelledNodes(Loss):
    """Sums `loss` over the labelled nodes of each tree, and averages over the trees.

    Labels are (b, nodes), or (b,) for the roots only.
    """

    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self.loss = loss

    def forward(
        self, logits: Tensor, labels: Tensor, epoch: float | None = None
    ) -> Tensor:
        """The loss of a batch with logits (b, nodes, classes) or (b, classes)."""
        is_labelled = (labels != UNLABELLED) & (labels < logits.shape[-1])
        nodes = is_labelled.flatten().nonzero().squeeze(1)
        rows, truth = upload(logits.device, nodes, labels.flatten()[nodes])
        share = torch.tensor(len(nodes)) / len(labels)
        total: Tensor = self.loss(logits.flatten(0, -2)[rows], truth, epoch) * share
        return total

    def tempered(self, logits: Tensor) -> Tensor:
        """The logits whose softmax the loss evaluates."""
        return self.loss.tempered(logits)
