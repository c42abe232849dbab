"""Phrases and farm: the same everywhere, true to their rules, and neither trivial nor
impossible.
"""

import hashlib

import numpy as np
import pytest

from softmax_temperature.data import phrases
from softmax_temperature.data.phrases import SIZES, read_farm, read_phrases


def texts_and_labels(seed: int = 0) -> tuple[tuple[str, ...], np.ndarray]:
    """The texts to train on, then those to test on."""
    raw = read_phrases(seed=seed)
    assert raw.test is not None
    return tuple(map(str, (*raw.train.samples, *raw.test.samples))), np.concatenate(
        [raw.train.labels, raw.test.labels]
    )


def pairs(seed: int = 0) -> list[tuple[str, str]]:
    return [
        pair
        for sides in read_farm(seed=seed).values()
        for pair in zip(*sides, strict=True)
    ]


def sha256(texts: list[str]) -> str:
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def test_sentences_are_the_same_everywhere_and_no_two_are_alike() -> None:
    texts, _ = texts_and_labels()
    assert sha256([*texts]).startswith("1e2e072f2eab9e71")
    assert len({*texts}) == phrases.TRAIN + phrases.TEST
    parts = read_farm(seed=0)
    assert {split: len(english) for split, (english, _) in parts.items()} == SIZES
    sides = [sentence for pair in parts.values() for side in pair for sentence in side]
    assert sha256(sides).startswith("0e4015bebba21e24")
    assert len({english for english, _ in pairs()}) == sum(SIZES.values())
    assert texts_and_labels(1)[0] != texts
    assert pairs(1) != pairs()


def verdict(sentence: str) -> int:
    """What a reader of the rules makes of a sentence."""
    first, link, second = (*sentence.replace(" ,", "").split(), "", ""), "", ()
    for word in (*phrases._LAST_COUNTS, *phrases._FIRST_COUNTS):
        if word in first:
            place = first.index(word)
            first, link, second = first[:place], word, first[place + 1 :]
    counts = second if link in phrases._LAST_COUNTS else first
    [sense] = [
        label
        for label, words in enumerate(phrases._VERDICTS)
        if set(counts) & set(words)
    ]
    return sense ^ bool(set(counts) & set(phrases._NEGATIONS))


def test_labels_of_phrases_follow_from_the_rules_of_the_grammar() -> None:
    texts, labels = texts_and_labels()
    assert [verdict(sentence) for sentence in texts] == labels.tolist()


# Written by hand, one for each gender, case, article and tense: what the generator must
# say where it says the English.
TRANSLATIONS = {
    "the small dog": {
        "der kleine Hund",
        "der winzige Hund",
        "den kleinen Hund",
        "den winzigen Hund",
    },
    "an old cow": {"eine alte Kuh"},
    "a white horse": {"ein weißes Pferd"},
    "a young fox": {"ein junger Fuchs", "einen jungen Fuchs"},
}


@pytest.mark.parametrize("english", TRANSLATIONS)
def test_phrases_agree_in_gender_case_and_number(english: str) -> None:
    said = [german for sentence, german in pairs() if f"{english} " in sentence]
    assert said
    for german in said:
        assert any(phrase in german for phrase in TRANSLATIONS[english]), german
