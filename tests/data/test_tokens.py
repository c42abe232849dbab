"""Tokens are the most frequent words of the training texts; other words are unknown."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from softmax_temperature.data.splits import Part
from softmax_temperature.data.tokens import PADDING, UNKNOWN, Tokeniser

TEXTS = ("The cat, the cat!", "A cat sat.", "the mat")


def fit(
    texts: Sequence[str] = TEXTS,
    *,
    vocabulary_size: int = 100,
    length: int = 6,
    keep: Any = "start",
) -> Tokeniser:
    part = Part.of_all("talk", "train", tuple(texts), torch.zeros(len(texts)))
    return Tokeniser.fit(
        part, vocabulary_size=vocabulary_size, length=length, keep=keep
    )


@given(
    st.lists(st.text("abAB,. \n'é", max_size=12), min_size=1, max_size=8),
    st.integers(3, 9),
)
def test_the_vocabulary_is_that_of_a_loop(
    texts: list[str], vocabulary_size: int
) -> None:
    words = [
        word for text in texts for word in re.findall(r"\w+|[^\w\s]", text.lower())
    ]
    counts = sorted(Counter(words).items(), key=lambda pair: (-pair[1], pair[0]))
    expected = tuple(word for word, _ in counts[: vocabulary_size - 2])
    assert fit(texts, vocabulary_size=vocabulary_size).words == expected


@pytest.mark.parametrize(
    ("keep", "kept"), [("start", "a cat sat"), ("end", "the cat !")]
)
def test_a_text_longer_than_the_limit_loses_its_other_end(keep: str, kept: str) -> None:
    tokeniser = fit(length=3, keep=keep)
    long = "A cat sat. The mat, the cat!"
    assert torch.equal(tokeniser.encode([long]), tokeniser.encode([kept]))
    assert (tokeniser.encode([long]) > UNKNOWN).all()


def test_a_text_without_tokens_is_one_unknown_token() -> None:
    assert (
        fit().encode(["cat", "", "\n\t\u2003"]).tolist()[1:]
        == [[UNKNOWN, 0, 0, 0, 0, 0]] * 2
    )


@pytest.mark.parametrize("text", ["🙂", "漢字", "\x00", "\u200b", "dog", "$", "кот"])
def test_words_outside_the_vocabulary_are_one_unknown_token(text: str) -> None:
    assert fit().encode([f"cat {text} sat"]).tolist() == [[2, UNKNOWN, 9, 0, 0, 0]]


@pytest.mark.parametrize("text", ["<padding>", "<unknown>"])
def test_no_text_can_name_a_reserved_token(text: str) -> None:
    [tokens] = fit([*TEXTS, "< >"], length=5).encode([f"cat {text} sat"]).tolist()
    assert tokens[2] == UNKNOWN
    assert min(tokens[1], tokens[3]) > UNKNOWN
    assert (
        PADDING
        not in fit([text, text, "padding unknown"], length=5)
        .encode([text])[0, :3]
        .tolist()
    )
