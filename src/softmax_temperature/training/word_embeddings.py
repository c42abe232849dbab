"""Word embeddings that start from given vectors, and are frozen or move by steps of
their own (focal, section E).
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from softmax_temperature.data.trees import WORD
from softmax_temperature.data.word_vectors import read_word_vectors
from softmax_temperature.params.focal import Embeddings
from softmax_temperature.training.samples import Samples
from softmax_temperature.training.texts import TreeSet
from softmax_temperature.training.trainer import Trainer


def start_embedding(
    model: nn.Module,
    words: tuple[str, ...],
    samples: Samples,
    vectors: Embeddings | None,
    *,
    root: str,
    sha256: str | None,
) -> dict[str, Any] | None:
    """Give a network its word vectors; returns what the record says of words and file,
    None for images.
    """
    if not words:
        return None
    if vectors is None:
        return {"file": None, "step": None, "words": len(words), "covered": None}
    width = embedding_of(model).embedding_dim
    found = read_word_vectors(Path(root) / vectors.file, words, width=width)
    set_embedding(model, found.vectors)
    if not vectors.step:
        freeze_embedding(model)
    numbers = (
        samples.inputs[..., WORD] if isinstance(samples, TreeSet) else samples.inputs
    )
    covered = {"covered": found.share, "covered_tokens": found.share_of_tokens(numbers)}
    return {**vectors.model_dump(), "sha256": sha256, "words": len(words), **covered}


def described(about: dict[str, Any] | None) -> str | None:
    """Where word vectors come from, in words, from what `start_embedding` returned;
    None for images.
    """
    if about is None or about["covered"] is None:
        return "learned" if about else None
    share = f"{about['covered']:.1%} of {about['words']:,} words, {about['covered_tokens']:.1%} of the text"
    return (
        f"{Path(about['file']).name}, {share}, {'tuned' if about['step'] else 'frozen'}"
    )


def set_embedding(network: nn.Module, vectors: Tensor) -> None:
    """Start a network's word embedding from vectors (numbers, width); those of higher
    numbers stay as they are.
    """
    weight = embedding_of(network).weight
    if len(vectors) > len(weight) or vectors.shape[1] != weight.shape[1]:
        raise ValueError(
            f"vectors must fit the embedding {tuple(weight.shape)}, got {tuple(vectors.shape)}"
        )
    with torch.no_grad():
        weight[: len(vectors)] = vectors


def freeze_embedding(network: nn.Module) -> None:
    """Make a network's word embedding a buffer, which no training changes."""
    embedding = embedding_of(network)
    weight = embedding.weight.detach()
    del embedding.weight
    embedding.register_buffer("weight", weight)


class EmbeddingSteps:
    """Moves the word embedding by plain steps of its own, without weight decay; append
    it to `Trainer.after_batch`.
    """

    # Deviation: section E says that the vectors were tuned, not how. Plain steps of 0.1
    # are the released code's.

    def __init__(self, trainer: Trainer, step: float) -> None:
        self._weight, self._step = embedding_of(trainer.network).weight, step
        for group in trainer.optimizer.param_groups:
            group["params"] = [
                parameter
                for parameter in group["params"]
                if parameter is not self._weight
            ]
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
        raise ValueError(  # noqa: TRY004
            f"network must have a word embedding, got {type(network).__name__}"
        )
    return embedding
