"""Word embeddings that start from given vectors (focal paper, appendix E).

The embeddings are then frozen, or trained by a gradient descent separate from that of
the other parameters.
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
    """Put `model`'s word embedding into its initial state, and describe that state.

    The description, which is part of the run's record, says where the initial vectors
    come from. If `vectors` is None, the embedding keeps its random weights, which are
    trained. For images, which have no `words`, None is returned.
    """
    if not words:
        return None
    if vectors is None:
        return {"file": None, "step": None, "words": len(words), "covered": None}
    width = embedding_of(model).embedding_dim
    word_vectors = read_word_vectors(Path(root) / vectors.file, words, width=width)
    set_embedding(model, word_vectors.vectors)
    if not vectors.step:
        freeze_embedding(model)
    numbers = samples.inputs
    if isinstance(samples, TreeSet):
        numbers = numbers[..., WORD]
    return {
        **vectors.model_dump(),
        "sha256": sha256,
        "words": len(words),
        "covered": word_vectors.share,
        "covered_tokens": word_vectors.share_of_tokens(numbers),
    }


def described(about: dict[str, Any] | None) -> str | None:
    """Return a phrase that says where the word vectors come from; None for images.

    `about` is the return value of `start_embedding`.
    """
    if about is None:
        return None
    if about["covered"] is None:
        return "learned"
    file = Path(about["file"]).name
    words = f"{about['covered']:.1%} of {about['words']:,} words"
    tokens = f"{about['covered_tokens']:.1%} of the text"
    training = "tuned" if about["step"] else "frozen"
    return f"{file}, {words}, {tokens}, {training}"


def set_embedding(network: nn.Module, vectors: Tensor) -> None:
    """Overwrite the first rows of a network's word embedding with `vectors`.

    `vectors` has the shape (rows, width). The other rows of the embedding stay
    unchanged. Raises ValueError if `vectors` has too many rows or a different width.
    """
    weight = embedding_of(network).weight
    if len(vectors) > len(weight) or vectors.shape[1] != weight.shape[1]:
        raise ValueError(
            f"vectors must fit the embedding {tuple(weight.shape)}, "
            f"got {tuple(vectors.shape)}"
        )
    with torch.no_grad():
        weight[: len(vectors)] = vectors


def freeze_embedding(network: nn.Module) -> None:
    """Make a network's word embedding a buffer, which training does not change."""
    embedding = embedding_of(network)
    weight = embedding.weight.detach()
    del embedding.weight
    embedding.register_buffer("weight", weight)


class EmbeddingSteps:
    """Trains the word embedding by gradient descent, separately from other parameters.

    After each batch, `step` times the gradient is subtracted from the embedding,
    without momentum or weight decay. The object must be in `trainer.after_batch`.
    """

    # Deviation: we tune the vectors as the released code does, by gradient descent with
    # a learning rate of 0.1, because appendix E says that the vectors were tuned but
    # not how.

    def __init__(self, trainer: Trainer, step: float) -> None:
        self._weight = embedding_of(trainer.network).weight
        self._step = step
        for group in trainer.optimizer.param_groups:
            others = [
                parameter
                for parameter in group["params"]
                if parameter is not self._weight
            ]
            group["params"] = others
        # Remove the state that Adagrad's constructor created for the embedding.
        trainer.optimizer.state.pop(self._weight, None)

    @torch.no_grad()
    def __call__(self, _: Trainer) -> None:
        """Take one step on the embedding, after the optimizer's step."""
        assert self._weight.grad is not None, "a batch has words"
        self._weight -= self._step * self._weight.grad
        self._weight.grad = None


def embedding_of(network: nn.Module) -> nn.Embedding:
    """Return the word embedding of `network`; raise ValueError if it has none."""
    embedding = getattr(network, "embedding", None)
    if not isinstance(embedding, nn.Embedding):
        raise ValueError(  # noqa: TRY004
            f"network must have a word embedding, got {type(network).__name__}"
        )
    return embedding
