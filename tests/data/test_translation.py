"""Data sets of translations: where they come from, what may be done with a part, and subsets."""

from __future__ import annotations

from pathlib import Path

import pytest

from softmax_temperature.data.farm import SIZES
from softmax_temperature.data.splits import SPLITS, LeakError
from softmax_temperature.data.translation import ParallelPart, limited, read_translation, translation_digest
from softmax_temperature.runner.errors import InputError

ENGLISH_GERMAN, GERMAN_ENGLISH = ("en", "de"), ("de", "en")


def part(split: str, count: int = 3) -> ParallelPart:
    sources, targets = (tuple(f"{side}{row}" for row in range(count)) for side in "st")
    return ParallelPart("letters", split, sources, targets)  # type: ignore[arg-type]


def test_test_sentences_reach_no_fit_and_no_vocabulary() -> None:
    assert list(part("train").for_vocabulary()) == ["s0", "s1", "s2", "t0", "t1", "t2"]
    assert part("validation").for_fitting() == part("validation").for_evaluation()
    for split in ("validation", "test"):
        with pytest.raises(LeakError, match=f"letters: the {split} split was asked for to make a vocabulary"):
            list(part(split).for_vocabulary())
    with pytest.raises(LeakError, match="letters: the test split was asked for to fit something"):
        part("test").for_fitting()


def test_sides_of_different_length_are_refused() -> None:
    with pytest.raises(ValueError, match="letters/train: 2 sources, 1 targets"):
        ParallelPart("letters", "train", ("a", "b"), ("c",))


def test_farm_can_be_translated_in_both_directions() -> None:
    forward = read_translation("farm", ENGLISH_GERMAN, root=Path("nowhere"), seed=0)
    back = read_translation("farm", GERMAN_ENGLISH, root=Path("nowhere"), seed=0)
    assert {split: len(some) for split, some in forward.items()} == SIZES
    for split in SPLITS:
        assert (back[split].sources, back[split].targets) == (forward[split].targets, forward[split].sources)
    assert translation_digest("farm", ENGLISH_GERMAN, root=Path("nowhere")) is None
    with pytest.raises(InputError, match="data set farm: is in en and de, not en and fr"):
        read_translation("farm", ("en", "fr"), root=Path("nowhere"), seed=0)


def test_a_folder_is_read_by_its_languages(tmp_path: Path) -> None:
    (tmp_path / "letters").mkdir()
    for split in SPLITS:
        (tmp_path / f"letters/{split}.en").write_text(f"{split} a\n{split} b\n")
        (tmp_path / f"letters/{split}.de").write_text(f"{split} A\n{split} B\n")
    parts = read_translation("letters", GERMAN_ENGLISH, root=tmp_path, seed=0)
    assert parts["validation"] == ParallelPart(
        "letters", "validation", ("validation A", "validation B"), ("validation a", "validation b")
    )
    assert translation_digest("letters", GERMAN_ENGLISH, root=tmp_path)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("wmt14_en_de", "Europarl v7, Common Crawl and News Commentary v9"),
        ("others", "Put train.en, train.de, validation.en, validation.de, test.en, test.de into"),
    ],
)
def test_a_data_set_that_is_not_there_says_what_to_put_where(tmp_path: Path, name: str, says: str) -> None:
    with pytest.raises(InputError, match=f"data set {name}: not found in") as refused:
        read_translation(name, ENGLISH_GERMAN, root=tmp_path, seed=0)
    assert says in str(refused.value)
    assert str(tmp_path / name) in str(refused.value)


def test_a_limit_draws_pairs_at_random_and_keeps_them_together() -> None:
    whole = part("train", 100)
    some = limited(whole, 10, seed=0)
    numbers = [int(source[1:]) for source in some.sources]
    assert numbers == sorted(numbers)
    assert numbers != list(range(10))
    assert some.targets == tuple(f"t{number}" for number in numbers)
    assert limited(whole, 10, seed=0) == some != limited(whole, 10, seed=1)
    assert limited(whole, None, seed=0) is limited(whole, 100, seed=0) is whole
