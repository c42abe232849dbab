"""Word vectors in the text form of GloVe: exactly those asked for, and one error for each fault."""

from pathlib import Path

import pytest
import torch

from softmax_temperature.data.word_vectors import WordVectors, read_word_vectors, word_vectors_digest
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.errors import InputError

LINES = (b"the 0.5 -1 2e-1", b"cat 1 2 3", b". 4 5 6", b"naive 7 8 9")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "glove.txt"


def read(path: Path, *lines: bytes, words: tuple[str, ...] = ("cat", "dog", "the"), width: int = 3) -> WordVectors:
    path.write_bytes(b"\n".join(lines or LINES) + b"\n")
    return read_word_vectors(path, words, width=width)


def test_words_have_their_vectors_and_all_others_zeros(path: Path) -> None:
    found = read(path)
    expected = [[0, 0, 0], [0, 0, 0], [1, 2, 3], [0, 0, 0], [0.5, -1, 0.2]]
    torch.testing.assert_close(found.vectors, torch.tensor(expected))
    assert (found.covered, found.words) == (2, 3)
    assert found.share == pytest.approx(2 / 3)


def test_a_last_line_without_a_line_break_and_carriage_returns_are_read(path: Path) -> None:
    path.write_bytes(b"cat 1 2 3\r\nthe 4 5 6")
    assert read_word_vectors(path, ("cat", "the"), width=3).covered == 2


def test_words_of_the_file_may_hold_spaces_and_be_of_no_encoding(path: Path) -> None:
    found = read(
        path, b". . . 1 2 3", b"at name@domain.com 1 2 3", b"\xff\xfe 1 2 3", b"\xc2\xa0\x85 1 2 3", b"cat 4 5 6 "
    )
    assert found.vectors[2].tolist() == [4, 5, 6]


FAULTS = {
    "too few": (b"cat 1 2", "does not have 3 numbers after the word"),
    "too many": (b"dog 1 2 3 4", "does not have 3 numbers after the word"),
    "no number": (b"the 1 two 3", "has a number that is not finite"),
    "too large a number": (b"the 1e999 2 3", "has a number that is not finite"),
}


@pytest.mark.parametrize(("line", "says"), FAULTS.values(), ids=FAULTS)
def test_a_fault_names_file_and_line(path: Path, line: bytes, says: str) -> None:
    with pytest.raises(InputError, match=rf"glove\.txt, line 2: .*{says}.*leave `embeddings` out"):
        read(path, b"a 1 2 3", line, b"b 1 2 3")


def test_a_file_that_is_not_there_says_where_to_get_it(path: Path) -> None:
    assert word_vectors_digest(path) is None
    with pytest.raises(InputError, match=r"glove\.txt: no such file of word vectors\. Get glove\.6B\.zip"):
        read_word_vectors(path, ("a",), width=3)


def test_the_digest_follows_the_file(path: Path) -> None:
    path.write_bytes(LINES[0])
    assert word_vectors_digest(path) == digest_of_file(path)
    path.write_bytes(LINES[0] + b"0")
    assert word_vectors_digest(path) == digest_of_file(path)
