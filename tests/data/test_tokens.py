"""Tokens: the words of training texts, most frequent first; everything else is unknown."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from softmax_temperature.data.prepared_texts import TextPart
from softmax_temperature.data.splits import LeakError, SplitName
from softmax_temperature.data.tokens import PADDING, UNKNOWN, Tokeniser

TEXTS = ("The cat, the cat!", "A cat sat.", "the mat")


def part(texts: Sequence[str], split: SplitName = "train") -> TextPart:
    rows = torch.arange(len(texts))
    return TextPart("talk", split, texts, rows % 2, rows)


def fit(texts: Sequence[str] = TEXTS, *, vocabulary_size: int = 100, length: int = 6, keep: Any = "start") -> Tokeniser:
    return Tokeniser.fit(part(texts), vocabulary_size=vocabulary_size, length=length, keep=keep)


# ---- the vocabulary


def test_words_are_numbered_by_frequency_and_then_by_the_alphabet() -> None:
    # the 3, cat 3, and once each: ! , . a mat sat.
    assert fit().words == ("cat", "the", "!", ",", ".", "a", "mat", "sat")
    assert fit().vocabulary_size == 10


def test_a_limit_keeps_the_most_frequent_words_and_counts_padding_and_unknown() -> None:
    limited = fit(vocabulary_size=5)
    assert limited.words == ("cat", "the", "!")
    assert limited.vocabulary_size == 5
    assert limited.encode(["the cat sat !"]).tolist() == [[3, 2, UNKNOWN, 4, PADDING, PADDING]]


@given(st.lists(st.text("abAB,. \n'é", max_size=12), min_size=1, max_size=8), st.integers(3, 9))
def test_the_vocabulary_is_that_of_a_loop(texts: list[str], vocabulary_size: int) -> None:
    words = [word for text in texts for word in re.findall(r"\w+|[^\w\s]", text.lower())]
    counts = sorted(Counter(words).items(), key=lambda pair: (-pair[1], pair[0]))
    expected = tuple(word for word, _ in counts[: vocabulary_size - 2])
    assert fit(texts, vocabulary_size=vocabulary_size).words == expected


def test_the_order_of_the_texts_has_no_say_in_the_vocabulary() -> None:
    texts = [f"{word} {word[::-1]} end" for word in ("ab", "cd", "ef", "gh", "ij", "kl")] * 50
    assert fit(texts).to_json() == fit(texts[::-1]).to_json()


def test_the_vocabulary_is_the_same_bytes_in_other_processes() -> None:
    program = (
        "import torch; from softmax_temperature.data.tokens import Tokeniser; "
        "from softmax_temperature.data.prepared_texts import TextPart; "
        "rows = torch.arange(3000); texts = [f'w{n % 700} w{n % 30}, w{n % 11}!' for n in rows.tolist()]; "
        "part = TextPart('talk', 'train', texts, rows, rows); "
        "print(Tokeniser.fit(part, vocabulary_size=400, length=5, keep='end').to_json())"
    )
    outputs = set()
    for seed, threads in (("0", "1"), ("1", "4")):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": threads}
        command = [sys.executable, "-c", program]
        outputs.add(subprocess.run(command, check=True, capture_output=True, env=environment).stdout)
    [content] = outputs
    assert len(json.loads(content)["model"]["vocab"]) == 400


@pytest.mark.parametrize("split", ["validation", "test"])
def test_a_vocabulary_of_other_than_training_texts_is_refused(split: SplitName) -> None:
    with pytest.raises(LeakError, match=f"the {split} split was asked for to make a vocabulary"):
        Tokeniser.fit(part(TEXTS, split), vocabulary_size=10, length=5, keep="start")


# ---- rows


def test_rows_are_padded_on_the_right_and_of_one_length() -> None:
    tokens = fit().encode(["The mat", "cat"])
    assert tokens.tolist() == [[3, 8, 0, 0, 0, 0], [2, 0, 0, 0, 0, 0]]
    assert tokens.dtype == torch.int64


@pytest.mark.parametrize(("keep", "kept"), [("start", "a cat sat"), ("end", "the cat !")])
def test_a_text_longer_than_the_limit_loses_its_other_end(keep: str, kept: str) -> None:
    tokeniser = fit(length=3, keep=keep)
    long = "A cat sat. The mat, the cat!"
    assert torch.equal(tokeniser.encode([long]), tokeniser.encode([kept]))
    assert (tokeniser.encode([long]) > UNKNOWN).all()


def test_a_text_as_long_as_the_limit_is_kept() -> None:
    for keep in ("start", "end"):
        assert fit(length=3, keep=keep).encode(["the cat sat"]).tolist() == [[3, 2, 9]]


@pytest.mark.parametrize("text", ["", " ", "\n\t\u2003"])
def test_a_text_without_tokens_is_one_unknown_token(text: str) -> None:
    assert fit().encode(["cat", text]).tolist()[1] == [UNKNOWN, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("text", ["🙂", "漢字", "\x00", "\u200b", "dog", "$", "кот"])
def test_what_the_vocabulary_has_not_is_one_unknown_token(text: str) -> None:
    assert fit().encode([f"cat {text} sat"]).tolist() == [[2, UNKNOWN, 9, 0, 0, 0]]


@pytest.mark.parametrize("text", ["<padding>", "<unknown>", "[PAD]", "[UNK]"])
def test_no_text_can_name_a_reserved_token(text: str) -> None:
    tokens = fit([*TEXTS, "< > [ ]"], length=5).encode([f"cat {text} sat"])
    first, *middle, last = tokens[0].tolist()
    assert (first, last) == (2, 9 + 4)
    assert middle[1] == UNKNOWN
    assert min(middle[0], middle[2]) > UNKNOWN
    with_words = fit([text, text, "padding unknown pad unk"], length=5)
    assert PADDING not in with_words.encode([text])[0, :3].tolist()


def test_more_texts_than_a_batch_are_one_table() -> None:
    texts = [("cat " * (1 + number % 5)) for number in range(2345)]
    tokens = fit().encode(iter(texts))
    assert tokens.shape == (2345, 6)
    assert (tokens == 2).sum(1).tolist() == [1 + number % 5 for number in range(2345)]


def test_no_texts_are_an_empty_table() -> None:
    assert fit().encode([]).shape == (0, 6)


def test_a_split_keeps_its_place_in_the_ledger() -> None:
    tokens = fit().encode_part(part(["cat", "mat", "dog"], "test"))
    assert (tokens.dataset, tokens.split) == ("talk", "test")
    assert tokens.data[:, 0].tolist() == [2, 8, UNKNOWN]
    assert tokens.labels.tolist() == [0, 1, 0]
    assert tokens.index.tolist() == [0, 1, 2]
    with pytest.raises(LeakError):
        tokens.for_fitting()


def test_the_library_itself_reads_what_is_written() -> None:
    tokeniser = fit(length=4, keep="end")
    theirs = Tokenizer.from_str(tokeniser.to_json())
    for text in ("The cat sat on a mat, today!", "mat"):
        assert theirs.encode(text).ids == tokeniser.encode([text])[0].tolist()
    assert theirs.token_to_id("cat") == 2


# ---- refusals


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"vocabulary_size": 2}, "vocabulary_size must be an integer of at least 3, got 2"),
        ({"length": 0}, "length must be an integer of at least 1, got 0"),
        ({"keep": "middle"}, "keep must be 'start' or 'end', got 'middle'"),
    ],
)
def test_a_wrong_argument_is_refused(arguments: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        fit(**arguments)


@pytest.mark.parametrize("words", [("a", "b", "a"), ("a", "<unknown>")])
def test_a_word_with_two_numbers_is_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="words must differ from each other, got 1 that were there before"):
        Tokeniser(words, length=3, keep="start")
