"""Data sets of translations: what is in the files, subsets, and one clear error for each fault."""

from pathlib import Path

import pytest

from softmax_temperature.data.sampling import limited
from softmax_temperature.data.splits import SPLITS, Part
from softmax_temperature.data.translation import read_translation
from softmax_temperature.runner.errors import InputError

ENGLISH_GERMAN, GERMAN_ENGLISH = ("en", "de"), ("de", "en")


def write(folder: Path, **files: bytes) -> Path:
    """A complete data set `letters`; arguments replace files, with a double underscore for the point."""
    (folder / "letters").mkdir(exist_ok=True, parents=True)
    for part in SPLITS:
        for language in ("en", "de"):
            content = files.get(f"{part}__{language}", f"one {part} {language}\ntwo {part} {language}\n".encode())
            (folder / "letters" / f"{part}.{language}").write_bytes(content)
    return folder


def read(root: Path, languages: tuple[str, str] = ENGLISH_GERMAN) -> dict[str, Part]:
    return {**read_translation("letters", languages, root=root, seed=0)}


def test_lines_are_pairs_in_both_directions(tmp_path: Path) -> None:
    forward, back = read(write(tmp_path)), read(tmp_path, GERMAN_ENGLISH)
    assert forward["test"].data == ("one test en", "two test en")
    assert forward["test"].labels == ("one test de", "two test de")
    for split in SPLITS:
        assert (back[split].data, back[split].labels) == (forward[split].labels, forward[split].data)


def test_only_a_line_feed_ends_a_sentence(tmp_path: Path) -> None:
    # str.splitlines would see five lines in the first sentence, and every later pair would be wrong.
    odd = "a\u2028b\x0bc\x85d\x1ce"
    parts = read(write(tmp_path, test__en=f"{odd}\r\n last ".encode()))
    assert parts["test"].data == (odd, "last")


@pytest.mark.parametrize(
    ("files", "says"),
    [
        ({"train__de": b"a\nb\nc\n"}, "letters/train.en: has 2 lines, train.de 3."),
        ({"train__en": b"a\nb\n \t\n"}, "letters/train.en, line 3: is empty."),
        ({"train__en": b"a\nb\xff\n"}, "letters/train.en: is not UTF-8 (byte 3)."),
        ({"train__en": b""}, "letters/train.en, line 1: is empty."),
    ],
)
def test_a_fault_is_named_with_its_file(tmp_path: Path, files: dict[str, bytes], says: str) -> None:
    with pytest.raises(InputError) as refused:
        read(write(tmp_path, **files))
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("wmt14_en_de", "Europarl v7, Common Crawl and News Commentary v9"),
        ("others", "Put train.en, train.de, validation.en, validation.de, test.en, test.de into"),
    ],
)
def test_a_missing_data_set_says_what_to_put_where(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(InputError, match=f"data set {name}: not found in") as refused:
        read_translation(name, ENGLISH_GERMAN, root=tmp_path, seed=0)
    assert says in str(refused.value)
    assert str(tmp_path / name) in str(refused.value)


def test_a_limit_draws_pairs_at_random_and_keeps_them_together() -> None:
    sources, targets = (tuple(f"{side}{row}" for row in range(100)) for side in "st")
    whole = Part.of_pairs("letters", "train", sources, targets)
    some = limited(whole, 10, seed=0)
    numbers = [int(source[1:]) for source in some.data]
    assert numbers == sorted(numbers)
    assert numbers != list(range(10))
    assert some.labels == tuple(f"t{number}" for number in numbers)
    assert limited(whole, 10, seed=0).data == some.data != limited(whole, 10, seed=1).data
    assert limited(whole, None, seed=0) is limited(whole, 100, seed=0) is whole
