"""Trees as numbers: the words of training trees, a node a row, padding below."""

from __future__ import annotations

from collections import Counter

import pytest
import torch

from softmax_temperature.data.brackets import NEUTRAL, parse_tree
from softmax_temperature.data.tokens import PADDING, UNKNOWN
from softmax_temperature.data.trees import UNLABELLED, encode_trees, tree_words

TREES = [parse_tree(text) for text in ("(4 (2 the) (3 (3 good) (2 the)))", "(0 bad)", "(1 (2 a) (0 bad))")]


def test_words_are_numbered_by_frequency_and_then_by_the_alphabet() -> None:
    counts = Counter(word for tree in TREES for word in tree.words if word)
    assert counts == {"the": 2, "bad": 2, "good": 1, "a": 1}
    assert tree_words(TREES, vocabulary_size=100) == ("bad", "the", "a", "good")
    assert tree_words(iter(TREES), vocabulary_size=5) == ("bad", "the", "a")


def test_a_vocabulary_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="vocabulary_size must be an integer of at least 3, got 2"):
        tree_words(TREES, vocabulary_size=2)


def test_a_node_is_its_word_the_nodes_below_it_and_its_class() -> None:
    nodes = encode_trees(TREES, ("bad", "the"))
    empty = [PADDING, 0, 0, UNLABELLED]
    assert nodes.dtype == torch.int64
    assert nodes[0].tolist() == [
        [PADDING, 1, 2, 1],
        [3, 0, 0, NEUTRAL],
        [PADDING, 3, 4, 1],
        [UNKNOWN, 0, 0, 1],
        [3, 0, 0, NEUTRAL],
    ]
    assert nodes[1].tolist() == [[2, 0, 0, 0], *[empty] * 4]
    assert nodes[2].tolist() == [[PADDING, 1, 2, 0], [UNKNOWN, 0, 0, NEUTRAL], [2, 0, 0, 0], empty, empty]
