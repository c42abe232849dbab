"""Translation data sets are read line by line; faulty files raise a clear error."""

from pathlib import Path

import pytest

from softmax_temperature.data.splits import SPLITS, Part
from softmax_temperature.data.translation import read_translation, translation_digest
from softmax_temperature.runner.errors import InputError


def read(root: Path, *languages: str, **files: bytes) -> dict[str, Part]:
    """Write the data set `letters` with some files replaced, and read it.

    For instance, the argument `train__en` replaces the file train.en.
    """
    (root / "letters").mkdir(exist_ok=True)
    for name in [f"{part}.{language}" for part in SPLITS for language in ("en", "de")]:
        content = files.get(
            name.replace(".", "__"), f"one {name}\ntwo {name}\n".encode()
        )
        (root / "letters" / name).write_bytes(content)
    return {**read_translation("letters", languages or ("en", "de"), root=root, seed=0)}  # type: ignore[arg-type]


def test_lines_are_pairs_in_both_directions(tmp_path: Path) -> None:
    forward = read(tmp_path)
    back = read(tmp_path, "de", "en")
    assert forward["test"].data == ("one test.en", "two test.en")
    assert forward["test"].labels == ("one test.de", "two test.de")
    for split in SPLITS:
        assert back[split].data == forward[split].labels
        assert back[split].labels == forward[split].data


def test_only_a_line_feed_ends_a_sentence(tmp_path: Path) -> None:
    # str.splitlines would split the first sentence into five lines and misalign all
    # later pairs.
    odd = "a\u2028b\x0bc\x85d\x1ce"
    pairs = read(tmp_path, test__en=f"{odd}\r\n last ".encode())
    assert pairs["test"].data == (odd, "last")


def test_a_byte_order_mark_and_empty_lines_at_the_end_are_dropped(
    tmp_path: Path,
) -> None:
    pairs = read(tmp_path, train__en=b"\xef\xbb\xbfone\ntwo\n\n\r\n")
    assert pairs["train"].data == ("one", "two")


@pytest.mark.parametrize(
    ("files", "says"),
    [
        (
            {"train__de": b"a\nb\nc\n"},
            r"letters/train.en: has 2 lines, but train.de has 3\.",
        ),
        ({"train__en": b"a\nb\n \t\n"}, "letters/train.en, line 3: is empty"),
        ({"train__en": b"a\nb\xff\n"}, r"letters/train.en: is not UTF-8 \(byte 3\)"),
        ({"train__en": b""}, "letters/train.en, line 1: is empty"),
    ],
)
def test_a_fault_is_named_with_its_file(
    tmp_path: Path, files: dict[str, bytes], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        read(tmp_path, **files)  # type: ignore[arg-type]


def test_errors_for_missing_files_say_what_to_put_where(tmp_path: Path) -> None:
    for name, says in (
        ("wmt14_en_de", "Europarl v7, Common Crawl"),
        ("others", r"Put train\.en, .*, test\.de into"),
    ):
        with pytest.raises(
            InputError,
            match=f"data set {name}: not found in .*{says}.*{tmp_path / name}",
        ):
            translation_digest(name, ("en", "de"), root=tmp_path)
    with pytest.raises(InputError, match=r"data set letters: has no train\.fr"):
        read(tmp_path, "en", "fr")
