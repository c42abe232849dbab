"""Bracketed trees are read node by node; only training trees define the vocabulary."""

import pytest
import torch

from softmax_temperature.data.tokens import PADDING, UNKNOWN
from softmax_temperature.data.trees import (
    NEUTRAL,
    UNLABELLED,
    Tree,
    encode_trees,
    parse_tree,
)


def test_a_tree_is_read_root_first() -> None:
    tree = parse_tree("(3 (2 The) (4 (3 good) (2 one)))")
    assert tree == Tree(
        ("", "the", "", "good", "one"),
        (1, 0, 3, 0, 0),
        (2, 0, 4, 0, 0),
        (3, 2, 4, 3, 2),
    )
    assert parse_tree(" ( 4\tWow ) ") == Tree(("wow",), (0,), (0,), (4,))


WORDS = {
    "-LRB-": "(",
    "-rrb-": ")",
    r"1\/2": "1/2",
    "2 1/2": "2 1/2",
    "\\": "\\",
    "Ünü": "ünü",
    "3": "3",
}


@pytest.mark.parametrize(("written", "word"), WORDS.items())
def test_words_are_as_in_plain_text(written: str, word: str) -> None:
    assert parse_tree(f"(2 {written})").words == (word,)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "expected one tree .* got 0 tree"),
        ("(3 (2 a) (2 b)", "and 1 unclosed bracket"),
        ("(3 a))", r"'\)' is outside the brackets"),
        ("(3 a) (2 b)", "got 2 tree.* and 0 unclosed"),
        ("word", "'word' is outside the brackets"),
        *[
            (text, "node 1 must have a label")
            for text in ("(5 a)", "(3)", "()", "(3 (2 a))", "((2 a) (2 b))")
        ],
        *[
            (text, "node 1 must have a label")
            for text in ("(3 (2 a) (2 b) (2 c))", "(3 word (2 a))", "(3 (2 a) word)")
        ],
    ],
)
def test_an_error_says_what_is_wrong_and_where(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_tree(text)


def test_a_node_is_its_word_the_nodes_below_it_and_its_class() -> None:
    texts = ("(4 (2 the) (3 (3 good) (2 the)))", "(0 bad)", "(1 (2 a) (0 bad))")
    nodes = encode_trees([*map(parse_tree, texts)], ("bad", "the"))
    empty = [PADDING, 0, 0, UNLABELLED]
    assert nodes.dtype == torch.int64
    assert nodes[0].tolist() == [
        *(
            [PADDING, 1, 2, 1],
            [3, 0, 0, NEUTRAL],
            [PADDING, 3, 4, 1],
            [UNKNOWN, 0, 0, 1],
            [3, 0, 0, NEUTRAL],
        )
    ]
    assert nodes[1].tolist() == [[2, 0, 0, 0], *[empty] * 4]
    assert nodes[2].tolist() == [
        [PADDING, 1, 2, 0],
        [UNKNOWN, 0, 0, NEUTRAL],
        [2, 0, 0, 0],
        empty,
        empty,
    ]
