"""Texts and parsed sentences as numbers, and word embeddings that start from given vectors."""

from dataclasses import dataclass, replace
from typing import Self

import torch
from torch import Tensor, nn

from softmax_temperature.data.tokens import LABEL, PADDING, UNLABELLED
from softmax_temperature.losses import Objective
from softmax_temperature.networks.layers import upload
from softmax_temperature.training.samples import HostSamples
from softmax_temperature.training.trainer import Trainer


@dataclass(frozen=True)
class TokenSet(HostSamples):
    """Texts: inputs (n, length) int64, padded on the right with `PADDING`, no row without a token; labels (n,)."""

    def __post_init__(self) -> None:
        sound = self.inputs.ndim == 2 and self.inputs.dtype == torch.int64
        self.require(sound, "tokens must be (n, length) int64", tuple(self.inputs.shape[:1]))
        real = self.inputs != PADDING
        wrong = ((real[:, 1:] & ~real[:, :-1]).any(1) | ~real.any(1)).nonzero()
        if len(wrong):
            raise ValueError(f"tokens must have no padding before or between them, got some in row {int(wrong[0])}")


@dataclass(frozen=True)
class TreeSet(HostSamples):
    """Parse trees as of `encode_trees`, (n, nodes, 4) int64; labels of the roots, (n,), or of all nodes, (n, nodes)."""

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


# Deviation: the text does not say how the losses of nodes are added up. Here, as in the released code, they are summed
# over a tree and averaged over the trees of a batch, which sizes the plain steps of the embedding and weighs the weight
# decay. Equation 15 of Tai et al. 2015 averages over nodes.


def over_labelled_nodes(objective: Objective) -> Objective:
    """An objective summed over the labelled nodes (b, nodes) of each tree, or its root (b,), as a mean over trees."""

    def loss(logits: Tensor, labels: Tensor, position: float) -> Tensor:
        known = ((labels != UNLABELLED) & (labels < logits.shape[-1])).flatten().nonzero().squeeze(1)
        rows, truth = upload(logits.device, known, labels.flatten()[known])
        share = torch.tensor(len(known)) / len(labels)
        return objective(logits.flatten(0, -2)[rows], truth, position) * share

    return loss


def set_embedding(network: nn.Module, vectors: Tensor) -> None:
    """Start a network's word embedding from vectors (numbers, width); those of higher numbers stay as they are."""
    weight = embedding_of(network).weight
    if len(vectors) > len(weight) or vectors.shape[1] != weight.shape[1]:
        raise ValueError(f"vectors must fit the embedding {tuple(weight.shape)}, got {tuple(vectors.shape)}")
    with torch.no_grad():
        weight[: len(vectors)] = vectors


def freeze_embedding(network: nn.Module) -> None:
    """Make a network's word embedding a buffer, which no training changes."""
    embedding = embedding_of(network)
    weight = embedding.weight.detach()
    del embedding.weight
    embedding.register_buffer("weight", weight)


class EmbeddingSteps:
    """Moves the word embedding by plain steps of its own, without weight decay; append it to `Trainer.after_batch`."""

    # Deviation: section E says that the vectors were tuned, not how. Plain steps of 0.1 are the released code's.

    def __init__(self, trainer: Trainer, step: float) -> None:
        self._weight, self._step = embedding_of(trainer.network).weight, step
        for group in trainer.optimizer.param_groups:
            group["params"] = [parameter for parameter in group["params"] if parameter is not self._weight]
        trainer.optimizer.state.pop(self._weight, None)  # Adagrad has made one by now.

    @torch.no_grad()
    def __call__(self, _: Trainer) -> None:
        """One step, after the optimizer's."""
        assert self._weight.grad is not None, "a batch has words"
        self._weight -= self._step * self._weight.grad
        self._weight.grad = None


def embedding_of(network: nn.Module) -> nn.Embedding:
    """The word embedding of a network; a ValueError if it reads no words."""
    embedding = getattr(network, "embedding", None)
    if not isinstance(embedding, nn.Embedding):
        raise ValueError(f"network must have a word embedding, got {type(network).__name__}")  # noqa: TRY004
    return embedding
