"""Word embeddings that start from given vectors: frozen, or moved by steps of their own (focal paper, appendix E)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.training.trainer import Trainer


def set_embedding(network: nn.Module, vectors: Tensor) -> None:
    """Start a network's word embedding from given vectors.

    Args:
        network: with an `embedding`.
        vectors: (numbers, width); those of higher numbers, which no text holds, stay as they are.

    Raises:
        ValueError: the network reads no words, or has fewer of them, or vectors of another width.
    """
    weight = embedding_of(network).weight
    if len(vectors) > len(weight) or vectors.shape[1] != weight.shape[1]:
        raise ValueError(f"vectors must fit the embedding {tuple(weight.shape)}, got {tuple(vectors.shape)}")
    with torch.no_grad():
        weight[: len(vectors)] = vectors


def freeze_embedding(network: nn.Module) -> None:
    """Keep a network's word embedding from being trained: no parameter any more, but part of its state."""
    embedding = embedding_of(network)
    weight = embedding.weight.detach()
    del embedding.weight
    embedding.register_buffer("weight", weight)


class EmbeddingSteps:
    """Moves the word embedding by plain gradient steps of its own size; put it into the trainer's `after_batch`.

    It takes the embedding from the trainer's optimizer, and with it from weight decay. All that changes is the network,
    so nothing has to be saved for a training to resume.

    Args:
        trainer: new; its network has an `embedding`.
        step: what multiplies the gradient.
    """

    # Deviation: section E says that the vectors were tuned, not how. Plain steps of 0.1 are the released code's.

    def __init__(self, trainer: Trainer, step: float) -> None:
        self._weight, self._step = embedding_of(trainer.network).weight, step
        for group in trainer.optimizer.param_groups:
            group["params"] = [parameter for parameter in group["params"] if parameter is not self._weight]
        trainer.optimizer.state.pop(self._weight, None)

    @torch.no_grad()
    def __call__(self, trainer: Trainer) -> None:
        """One step, after the optimizer's."""
        del trainer
        assert self._weight.grad is not None, "a batch has words"
        self._weight -= self._step * self._weight.grad
        self._weight.grad = None


def embedding_of(network: nn.Module) -> nn.Embedding:
    """The word embedding of a network.

    Raises:
        ValueError: it reads no words.
    """
    embedding = getattr(network, "embedding", None)
    if not isinstance(embedding, nn.Embedding):
        raise ValueError(f"network must have a word embedding, got {type(network).__name__}")  # noqa: TRY004
    return embedding
