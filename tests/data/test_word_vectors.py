"""Word vectors: exactly those asked for, from either form of file, and one error for each fault."""

from pathlib import Path

import numpy as np
import pytest
import torch

from softmax_temperature.data.word_vectors import WordVectors, read_word_vectors, word_vectors_digest
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.errors import InputError

LINES = (b"the 0.5 -1 2e-1", b"cat 1 2 3", b". . . 4 5 6 ", b"\xff\xfe 7 8 9\r")  # Spaces in a word; no encoding.
WORDS = ("cat", "dog", "the")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "glove.txt"


def read(path: Path, *lines: bytes) -> WordVectors:
    path.write_bytes(b"\n".join(lines))
    return read_word_vectors(path, WORDS, width=3)


@pytest.mark.parametrize("form", ["text", "npz"])
def test_words_have_their_vectors_and_all_others_zeros(path: Path, form: str) -> None:
    if form == "text":
        found = read(path, *LINES)
    else:
        path = path.with_suffix(".npz")
        np.savez(path, words=["the", "cat"], vectors=np.array([[0.5, -1, 0.2], [1, 2, 3]], np.float32))
        found = read_word_vectors(path, WORDS, width=3)
    expected = [[0, 0, 0], [0, 0, 0], [1, 2, 3], [0, 0, 0], [0.5, -1, 0.2]]
    torch.testing.assert_close(found.vectors, torch.tensor(expected))
    assert found.share == pytest.approx(2 / 3)
    tokens = torch.tensor([[2, 3, 1, 2], [4, 0, 0, 0]])  # cat dog unknown cat; the, and padding
    assert found.share_of_tokens(tokens) == pytest.approx(3 / 5)


FAULTS = {
    "too few": (b"cat 1 2", "line 2: does not have 3 numbers after the word"),
    "too many": (b"cat 1 2 3 4", "has none of the 3 words with 3 numbers"),
    "no number": (b"the 1 two 3", "line 2: has a number that is not finite"),
    "too large a number": (b"the 1e999 2 3", "line 2: has a number that is not finite"),
}


@pytest.mark.parametrize(("line", "says"), FAULTS.values(), ids=FAULTS)
def test_a_fault_names_file_and_line(path: Path, line: bytes, says: str) -> None:
    with pytest.raises(InputError, match=rf"glove\.txt.*{says}.*leave `embeddings` out"):
        read(path, b"a 1 2 3", line, b"b 1 2 3")


def test_an_archive_of_another_form_is_refused(path: Path) -> None:
    path = path.with_suffix(".npz")
    np.savez(path, words=WORDS, vectors=np.zeros((3, 2), np.float32))
    with pytest.raises(InputError, match=r"vectors of shape \(3, 2\) for 3 words and an embedding of 3 numbers"):
        read_word_vectors(path, WORDS, width=3)
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match="is no npz with words and vectors"):
        read_word_vectors(path, WORDS, width=3)


def test_a_file_that_is_not_there_says_where_to_get_it(path: Path) -> None:
    assert word_vectors_digest(path) is None
    with pytest.raises(InputError, match=r"glove\.txt: no such file of word vectors\. Get glove\.6B\.zip"):
        read_word_vectors(path, ("a",), width=3)


def test_the_digest_follows_the_file(path: Path) -> None:
    path.write_bytes(LINES[0])
    assert word_vectors_digest(path) == digest_of_file(path)
    path.write_bytes(LINES[0] + b"0")
    assert word_vectors_digest(path) == digest_of_file(path)
