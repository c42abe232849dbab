"""Prepared texts as networks are trained on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softmax_temperature.data.splits import SPLITS

if TYPE_CHECKING:
    from softmax_temperature.data.splits import Part, SplitName
    from softmax_temperature.data.tokens import Keep, Tokeniser
    from softmax_temperature.runner.artifacts import Artifact
    from softmax_temperature.training.tokens import TokenSet


def token_sets(
    prepared_texts: Artifact, *, vocabulary_size: int, length: int, keep: Keep
) -> tuple[dict[SplitName, TokenSet], Tokeniser]:
    """All splits of a prepared data set, as tokens; the vocabulary is that of the training texts.

    Args:
        prepared_texts: the data set.
        vocabulary_size: as for `Tokeniser.fit`; so many embeddings are enough for a network.
        length: tokens of a row.
        keep: which end of a long text is kept.

    Returns:
        The splits, and what made tokens of them.

    Raises:
        InputError: the data set holds images.
    """
    from softmax_temperature.data.prepared_texts import open_texts  # torch, which `--help` must not wait for
    from softmax_temperature.data.tokens import Tokeniser

    prepared = open_texts(prepared_texts)
    tokeniser = Tokeniser.fit(prepared.part("train"), vocabulary_size=vocabulary_size, length=length, keep=keep)
    return {split: _token_set(tokeniser.encode_part(prepared.part(split))) for split in SPLITS}, tokeniser


def _token_set(part: Part) -> TokenSet:
    from softmax_temperature.training.tokens import TokenSet

    return TokenSet(*(part.for_evaluation() if part.split == "test" else part.for_fitting()))
