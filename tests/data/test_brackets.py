"""Trees in brackets are read node by node, and every fault says where it is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from softmax_temperature.data import brackets
from softmax_temperature.data.brackets import Tree, parse_tree


def test_a_tree_is_read_root_first() -> None:
    tree = parse_tree("(3 (2 The) (4 (3 good) (2 one)))")
    assert tree == Tree(("", "the", "", "good", "one"), (1, 0, 3, 0, 0), (2, 0, 4, 0, 0), (3, 2, 4, 3, 2))


def test_a_word_alone_is_a_tree() -> None:
    assert parse_tree(" ( 4\tWow ) ") == Tree(("wow",), (0,), (0,), (4,))


@pytest.mark.parametrize(
    ("written", "word"),
    [
        ("-LRB-", "("),
        ("-rrb-", ")"),
        (r"1\/2", "1/2"),
        ("2\u00a01\\/2", "2 1/2"),
        (r"\*", "*"),
        ("\\", "\\"),
        ("Ünü", "ünü"),
        ("3", "3"),
    ],
)
def test_words_are_as_in_plain_text(written: str, word: str) -> None:
    assert parse_tree(f"(2 {written})").words == (word,)


words = st.text("abc'.", min_size=1, max_size=4)
shapes = st.recursive(words, lambda below: st.tuples(below, below), max_leaves=12)


def bracketed(shape: object, label: int = 2) -> str:
    inside = shape if isinstance(shape, str) else " ".join(bracketed(one, (label + 1) % 5) for one in shape)  # type: ignore[attr-defined]
    return f"({label} {inside})"


def leaves(shape: object) -> list[str]:
    return [shape] if isinstance(shape, str) else [word for one in shape for word in leaves(one)]  # type: ignore[attr-defined]


def again(tree: Tree, node: int = 0) -> str:
    inside = tree.words[node] or f"{again(tree, tree.left[node])} {again(tree, tree.right[node])}"
    return f"({tree.labels[node]} {inside})"


@given(shapes)
def test_what_is_read_can_be_written_again(shape: object) -> None:
    text = bracketed(shape)
    tree = parse_tree(text)
    assert again(tree) == text
    assert [word for word in tree.words if word] == leaves(shape)


FAULTS = {
    "": "there is no tree, at character 1",
    "  ": "there is no tree, at character 3",
    "(3 (2 a) (2 b)": "1 brackets are not closed, at character 15",
    "(3 a))": r"'\)' stands outside the brackets, at character 6",
    "(3 a) (2 b)": "a second tree begins, at character 7",
    "word": "'word' stands outside the brackets, at character 1",
    "(5 a)": "the label is '5', not 0 to 4, at character 2",
    "(-1 a)": "the label is '-1', not 0 to 4, at character 2",
    "(good one)": "the label is 'good', not 0 to 4",
    f"({'x' * 99} a)": "the label is 'xxxxxxxxxxxxxxxxxxxx...'",
    "(3)": "a node has neither a word nor two nodes below it, at character 3",
    "()": "a node has neither a word",
    "(3 (2 a))": "a node has neither a word nor two nodes below it, at character 9",
    "(3 (2 a) (2 b) (2 c))": "a node has a third one below it, at character 16",
    "(3 word (2 a))": "the word 'word' has a node beside it, at character 9",
    "(3 (2 a) word)": "the word 'word' has a node beside it, at character 10",
    "((2 a) (2 b))": "a node has no label, at character 2",
}


@pytest.mark.parametrize(("text", "says"), FAULTS.items())
def test_a_fault_says_where_it_is(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_tree(text)


def test_depth_without_end_is_refused_without_a_deep_stack() -> None:
    with pytest.raises(ValueError, match="100000 brackets are not closed"):
        parse_tree("(2 " * 100_000)


def test_a_sentence_that_memory_could_not_hold_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(brackets, "MOST_WORDS", 3)
    assert len(parse_tree("(2 (2 a) (2 (2 b) (2 c)))").words) == 5
    with pytest.raises(ValueError, match="the sentence has more than 3 words, at character"):
        parse_tree("(2 (2 a) (2 (2 b) (2 (2 c) (2 d))))")
