"""Prepared parse trees as networks are trained on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softmax_temperature.data.splits import SPLITS

if TYPE_CHECKING:
    from softmax_temperature.data.prepared_texts import PreparedTexts
    from softmax_temperature.data.splits import SplitName
    from softmax_temperature.training.trees import TreeSet


def tree_sets(prepared: PreparedTexts, *, vocabulary_size: int) -> tuple[dict[SplitName, TreeSet], tuple[str, ...]]:
    """All splits of a prepared data set of trees; the vocabulary is that of the training trees.

    Args:
        prepared: the data set.
        vocabulary_size: as for `trees.tree_words`; so many embeddings are enough for a network.

    Returns:
        The splits, each with the labels of its roots, and the words.
    """
    from softmax_temperature.data.brackets import parse_tree
    from softmax_temperature.data.trees import tree_words  # torch, which `--help` must not wait for

    words = tree_words(map(parse_tree, prepared.part("train").for_vocabulary()), vocabulary_size=vocabulary_size)
    return {split: _tree_set(prepared, split, words) for split in SPLITS}, words


def _tree_set(prepared: PreparedTexts, split: SplitName, words: tuple[str, ...]) -> TreeSet:
    from softmax_temperature.data.brackets import parse_tree
    from softmax_temperature.data.splits import Part
    from softmax_temperature.data.trees import encode_trees
    from softmax_temperature.training.trees import TreeSet

    texts = prepared.part(split)
    trees = encode_trees([parse_tree(text) for text in texts.texts], words)
    part = Part(texts.dataset, split, trees, texts.labels, texts.index)
    return TreeSet(*(part.for_evaluation() if split == "test" else part.for_fitting()))
