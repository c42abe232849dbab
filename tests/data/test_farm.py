"""Farm: the same everywhere, and German as the grammar has it."""

import hashlib

import pytest

from softmax_temperature.data import farm
from softmax_temperature.data.farm import SIZES, read_farm

Parts = dict[str, tuple[tuple[str, ...], tuple[str, ...]]]


@pytest.fixture(scope="module")
def parts() -> Parts:
    return dict(read_farm(seed=0))


def test_no_sentence_is_in_two_parts(parts: Parts) -> None:
    assert {split: len(english) for split, (english, _) in parts.items()} == SIZES
    everything = [sentence for english, _ in parts.values() for sentence in english]
    assert len(set(everything)) == sum(SIZES.values())


def test_sentences_are_the_same_everywhere(parts: Parts) -> None:
    text = "\n".join(sentence for sides in parts.values() for side in sides for sentence in side)
    assert hashlib.sha256(text.encode()).hexdigest().startswith("0e4015bebba21e24")
    assert read_farm(seed=1) != parts


# Written by hand, one for each gender, case, article and tense: what the generator must say where it says the English.
TRANSLATIONS = {
    "the small dog": {"der kleine Hund", "der winzige Hund", "den kleinen Hund", "den winzigen Hund"},
    "an old cow": {"eine alte Kuh"},
    "a white horse": {"ein weißes Pferd"},
    "a young fox": {"ein junger Fuchs", "einen jungen Fuchs"},
    "the brown mice": set(),
}


def test_phrases_agree_in_gender_case_and_number(parts: Parts) -> None:
    pairs = [pair for sides in parts.values() for pair in zip(*sides, strict=True)]
    for english, wanted in TRANSLATIONS.items():
        said = [(one, german) for one, german in pairs if f"{english} " in one]
        assert bool(said) == bool(wanted), english
        for one, german in said:
            assert any(phrase in german for phrase in wanted), (one, german)


def test_the_verb_is_second_and_the_participle_last(parts: Parts) -> None:
    finite = {"hat", "haben"} | {form for verb in farm._VERBS for form in verb[3:5]}
    adverbs = [german for _, german in (*farm._PRESENT_ADVERBS, *farm._PAST_ADVERBS)]
    opened = 0
    for german in parts["train"][1]:
        if first := next((adverb for adverb in adverbs if german.startswith(f"{adverb} ")), None):
            opened += 1
            assert german.removeprefix(f"{first} ").split()[0] in finite
        if " hat " in german or " haben " in german:
            assert german.rstrip(".").split()[-1] in {verb[5] for verb in farm._VERBS}
    assert 0.45 < opened / SIZES["train"] < 0.55, "about half open with their adverb, which no translation can know"
