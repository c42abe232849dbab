"""Parallel texts: what is in the files, and one clear error for each fault, with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from softmax_temperature.data.parallel_texts import ParallelTexts
from softmax_temperature.runner.errors import InputError

PARTS = ("train", "validation", "test")


def write(folder: Path, **files: bytes) -> ParallelTexts:
    """A complete data set; arguments replace files, with a double underscore for the point."""
    for part in PARTS:
        for language in ("en", "de"):
            content = files.get(f"{part}__{language}", f"one {part} {language}\ntwo {part} {language}\n".encode())
            (folder / "letters").mkdir(exist_ok=True)
            (folder / "letters" / f"{part}.{language}").write_bytes(content)
    return ParallelTexts(folder, "letters", ("en", "de"))


def test_lines_are_pairs(tmp_path: Path) -> None:
    texts = write(tmp_path)
    assert texts.read("test") == (("one test en", "two test en"), ("one test de", "two test de"))
    swapped = ParallelTexts(tmp_path, "letters", ("de", "en"))
    assert swapped.read("test") == texts.read("test")[::-1]


def test_the_last_line_need_not_end_and_windows_line_ends_are_no_part_of_it(tmp_path: Path) -> None:
    texts = write(tmp_path, test__en=b"a\r\n b ", test__de="ä\nb\n".encode())
    assert texts.read("test") == (("a", "b"), ("ä", "b"))


def test_other_separators_do_not_divide_a_sentence(tmp_path: Path) -> None:
    # str.splitlines would see five lines here, and every later pair would be wrong.
    odd = "a\u2028b\x0bc\x85d\x1ce"
    texts = write(tmp_path, test__en=f"{odd}\nlast\n".encode())
    assert texts.read("test")[0] == (odd, "last")


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (
            {"train__de": b"a\nb\nc\n"},
            "letters/train.de, line 3: has no counterpart: train.de has 3 lines, train.en 2.",
        ),
        ({"train__de": b"a\n"}, "letters/train.en, line 2: has no counterpart: train.en has 2 lines, train.de 1."),
        ({"train__en": b"a\n\nb\n"}, "letters/train.en, line 2: is empty."),
        ({"train__en": b"a\nb\n \t\n"}, "letters/train.en, line 3: is empty."),
        ({"train__en": b"a\nb\xff\n"}, "letters/train.en, line 2: is not UTF-8 (byte 0xff at place 1 of the line)."),
        ({"train__en": b""}, "letters/train.en: holds no line."),
    ],
)
def test_a_fault_is_named_with_its_place(tmp_path: Path, files: dict[str, bytes], says: str) -> None:
    with pytest.raises(InputError) as refused:
        write(tmp_path, **files).read("train")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    texts = write(tmp_path)
    (tmp_path / "letters/validation.de").unlink()
    for look in (texts.digest, lambda: texts.read("validation")):
        with pytest.raises(InputError, match=r"letters/validation\.de: no such file"):
            look()


def test_the_digest_is_that_of_names_and_contents(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    before = write(tmp_path).digest()
    assert write(tmp_path / "elsewhere").digest() == before
    assert write(tmp_path, test__de=b"one\ntwo\n").digest() != before
    assert ParallelTexts(tmp_path, "letters", ("de", "en")).digest() != before
