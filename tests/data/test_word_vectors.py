"""Word vectors are read from text and npz files; faulty files raise a clear error."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from softmax_temperature.data.word_vectors import WordVectors, read_word_vectors
from softmax_temperature.runner.errors import InputError

LINES = (
    b"the 0.5 -1 2e-1",
    b"cat 1 2 3",
    b". . . 4 5 6 ",
    b"\xff\xfe 7 8 9\r",
)  # One word contains spaces, and one is not valid UTF-8.
WORDS = ("cat", "dog", "the")
PAIRS = {
    "words": ["the", "cat"],
    "vectors": np.array([[0.5, -1, 0.2], [1, 2, 3]], np.float32),
}


def read(folder: Path, *lines: bytes) -> WordVectors:
    (folder / "glove.txt").write_bytes(b"\n".join(lines))
    return read_word_vectors(folder / "glove.txt", WORDS, width=3)


def read_npz(folder: Path, **arrays: Any) -> WordVectors:
    np.savez(folder / "glove.npz", **arrays)
    return read_word_vectors(folder / "glove.npz", WORDS, width=3)


@pytest.mark.parametrize("form", ["text", "npz"])
def test_words_have_their_vectors_and_all_others_zeros(
    tmp_path: Path, form: str
) -> None:
    found = read(tmp_path, *LINES) if form == "text" else read_npz(tmp_path, **PAIRS)
    expected = [[0, 0, 0], [0, 0, 0], [1, 2, 3], [0, 0, 0], [0.5, -1, 0.2]]
    torch.testing.assert_close(found.vectors, torch.tensor(expected))
    assert found.share == pytest.approx(2 / 3)
    tokens = torch.tensor(
        [[2, 3, 1, 2], [4, 0, 0, 0]]
    )  # The texts are "cat dog unknown cat", and "the" with padding.
    assert found.share_of_tokens(tokens) == pytest.approx(3 / 5)


def test_a_byte_order_mark_and_empty_lines_are_dropped(tmp_path: Path) -> None:
    vectors = read(tmp_path, b"\xef\xbb\xbfcat 1 2 3", b"the 4 5 6", b"", b"")
    assert vectors.known.tolist() == [False, False, True, False, True]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"cat 1 2", ", line 2: does not have the 3 numbers after the word"),
        (b"cat 1 2 3 4", ": has none of the 3 words with the 3 numbers"),
        (b"the 1 two 3", ": the word 'the' has a number that is not finite"),
        (b"the 1e999 2 3", ": the word 'the' has a number that is not finite"),
    ],
)
def test_a_fault_is_named(tmp_path: Path, line: bytes, says: str) -> None:
    with pytest.raises(InputError, match=rf"glove\.txt{says}.*leave `embeddings` out"):
        read(tmp_path, b"a 1 2 3", line, b"b 1 2 3")


def test_an_archive_of_another_form_and_a_missing_file_are_refused(
    tmp_path: Path,
) -> None:
    with pytest.raises(
        InputError,
        match=r"vectors of shape \(2, 2\), expected \(2, 3\)",
    ):
        read_npz(tmp_path, **PAIRS | {"vectors": np.zeros((2, 2), np.float32)})
    with pytest.raises(InputError, match="is not an npz with words and vectors"):
        read_npz(tmp_path, words=WORDS)
    with pytest.raises(
        InputError,
        match=r"absent\.txt: no such file of word vectors\. Get glove\.6B\.zip",
    ):
        read_word_vectors(tmp_path / "absent.txt", WORDS, width=3)
