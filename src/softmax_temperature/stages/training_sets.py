"""Prepared data of any kind as networks are trained on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from softmax_temperature.splits import SPLITS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softmax_temperature.artifacts import Artifact
    from softmax_temperature.splits import SplitName
    from softmax_temperature.tokens import Keep
    from softmax_temperature.training import Samples


def training_sets(
    prepared: Artifact, root: str, *, vocabulary: int, length: int, keep: Keep
) -> tuple[Mapping[SplitName, Samples], int]:
    """All splits of a prepared data set, and the number of its classes.

    Args:
        prepared: images or texts.
        root: the folder of the raw data.
        vocabulary: of texts, as for `Tokeniser.fit`.
        length: tokens of a text.
        keep: which end of a long text is kept.

    Raises:
        InputError: the data set's images differ in size.
    """
    from softmax_temperature.datasets.prepared import open_prepared  # torch, which `--help` must not wait for
    from softmax_temperature.datasets.prepared_texts import holds_texts, open_texts
    from softmax_temperature.stages.image_sets import image_set
    from softmax_temperature.stages.token_sets import token_sets

    if holds_texts(prepared):
        tokens, _ = token_sets(prepared, vocabulary_size=vocabulary, length=length, keep=keep)
        return tokens, open_texts(prepared).classes
    images = {split: image_set(prepared, split, root) for split in SPLITS}
    return images, open_prepared(prepared, root=Path(root)).classes
