"""Texts and parsed sentences as numbers, and the loss of trees whose nodes have labels."""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor

from softmax_temperature.data.tokens import PADDING
from softmax_temperature.data.trees import LABEL, UNLABELLED
from softmax_temperature.losses import Objective
from softmax_temperature.networks.layers import upload
from softmax_temperature.training.samples import HostSamples


@dataclass(frozen=True)
class TokenSet(HostSamples):
    """Texts: inputs (n, length) int64, padded on the right with `PADDING`, no row
    without a token; labels (n,).
    """

    def __post_init__(self) -> None:
        sound = self.inputs.ndim == 2 and self.inputs.dtype == torch.int64
        self.require(
            sound, "tokens must be (n, length) int64", tuple(self.inputs.shape[:1])
        )
        real = self.inputs != PADDING
        wrong = ((real[:, 1:] & ~real[:, :-1]).any(1) | ~real.any(1)).nonzero()
        if len(wrong):
            raise ValueError(
                f"tokens must have no padding before or between them, got some in row {int(wrong[0])}"
            )


@dataclass(frozen=True)
class TreeSet(HostSamples):
    """Parse trees as of `encode_trees`, (n, nodes, 4) int64; labels of the roots, (n,),
    or of all nodes, (n, nodes).
    """

    def __post_init__(self) -> None:
        shape = tuple(self.inputs.shape)
        sound = shape[2:] == (4,) and self.inputs.dtype == torch.int64
        self.require(sound, "trees must be (n, nodes, 4) int64", shape[:1], shape[:2])

    def to(self, device: str) -> Self:  # noqa: ARG002
        """Labels stay too: which nodes have one decides what the loss is computed of."""
        return self

    def labelled_nodes(self) -> Self:
        """The same trees with the labels of all nodes, to be trained on."""
        return replace(self, labels=self.inputs[..., LABEL])


# Deviation: the text does not say how the losses of nodes are added up. Here, as in the
# released code, they are summed over a tree and averaged over the trees of a batch,
# which sizes the plain steps of the embedding and weighs the weight decay. Equation 15
# of Tai et al. 2015 averages over nodes.


def over_labelled_nodes(objective: Objective) -> Objective:
    """An objective summed over the labelled nodes (b, nodes) of each tree, or its root
    (b,), as a mean over trees.
    """

    def loss(logits: Tensor, labels: Tensor, position: float) -> Tensor:
        known = (
            ((labels != UNLABELLED) & (labels < logits.shape[-1]))
            .flatten()
            .nonzero()
            .squeeze(1)
        )
        rows, truth = upload(logits.device, known, labels.flatten()[known])
        share = torch.tensor(len(known)) / len(labels)
        return objective(logits.flatten(0, -2)[rows], truth, position) * share

    return loss
