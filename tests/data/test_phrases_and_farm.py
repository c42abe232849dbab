"""The data sets phrases and farm are the same everywhere, and follow their grammars."""

import hashlib

import numpy as np
import pytest

from softmax_temperature.data import phrases
from softmax_temperature.data.farm import SIZES, read_farm
from softmax_temperature.data.phrases import read_phrases


def texts_and_labels(seed: int = 0) -> tuple[tuple[str, ...], np.ndarray]:
    """Training texts followed by test texts, and their labels."""
    raw = read_phrases(seed=seed)
    assert raw.test is not None
    texts = [str(text) for text in (*raw.train.samples, *raw.test.samples)]
    return tuple(texts), np.concatenate([raw.train.labels, raw.test.labels])


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
    """The class of a sentence, by the rules stated in the data module's docstring."""
    words = sentence.replace(" ,", "").split()
    counting = words
    for conjunction in set(words) & set(phrases._LAST_CLAUSE_COUNTS):
        counting = words[words.index(conjunction) + 1 :]
    for conjunction in set(words) & set(phrases._FIRST_CLAUSE_COUNTS):
        counting = words[: words.index(conjunction)]
    praises = bool(set(counting) & set(phrases._VERDICTS[1]))
    pans = bool(set(counting) & set(phrases._VERDICTS[0]))
    assert praises != pans
    is_negated = bool(set(counting) & set(phrases._NEGATIONS))
    return int(praises != is_negated)


def test_labels_of_phrases_follow_from_the_rules_of_the_grammar() -> None:
    texts, labels = texts_and_labels()
    assert [verdict(sentence) for sentence in texts] == labels.tolist()


# The correct German translations of each English noun phrase, written by hand for each
# gender, case and article.
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
    translations = [german for text, german in pairs() if f"{english} " in text]
    assert translations
    for german in translations:
        assert any(phrase in german for phrase in TRANSLATIONS[english]), german
