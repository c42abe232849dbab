"""Phrases: balanced, the same everywhere, and beyond a bag of words."""

import hashlib

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression

from softmax_temperature.data import phrases
from softmax_temperature.data.phrases import read_phrases
from softmax_temperature.data.raw import RawDataset


def everything(raw: RawDataset) -> tuple[str, ...]:
    assert raw.test is not None
    return tuple(str(text) for part in (raw.train, raw.test) for text in part.samples)


@pytest.fixture(scope="module")
def raw() -> RawDataset:
    return read_phrases(seed=0)


def test_phrases_are_the_same_everywhere(raw: RawDataset) -> None:
    assert hashlib.sha256("\n".join(everything(raw)).encode()).hexdigest().startswith("1e2e072f2eab9e71")
    assert everything(read_phrases(seed=1)) != everything(raw)


def verdict(sentence: str) -> int:
    """What a reader of the rules makes of a sentence."""
    first, link, second = (*sentence.replace(" ,", "").split(), "", ""), "", ()
    for word in (*phrases._LAST_COUNTS, *phrases._FIRST_COUNTS):
        if word in first:
            place = first.index(word)
            first, link, second = first[:place], word, first[place + 1 :]
    counts = second if link in phrases._LAST_COUNTS else first
    [sense] = [label for label, words in phrases._ADJECTIVES.items() if set(counts) & set(words)]
    return sense ^ bool(set(counts) & set(phrases._NEGATIONS))


def test_labels_follow_from_the_rules_of_the_grammar(raw: RawDataset) -> None:
    labels = np.concatenate([raw.train.labels, raw.test.labels]).tolist() if raw.test else []
    assert [verdict(sentence) for sentence in everything(raw)] == labels


def test_a_bag_of_words_is_not_enough_but_more_than_nothing(raw: RawDataset) -> None:
    assert raw.test is not None
    for longest, most in ((1, 0.65), (2, 0.75)):  # Pairs of neighbours tell in part which clause counts.
        counter = CountVectorizer(ngram_range=(1, longest)).fit(raw.train.samples)
        seen, unseen = counter.transform(raw.train.samples), counter.transform(raw.test.samples)
        model = LogisticRegression(max_iter=1000).fit(seen, raw.train.labels)
        assert 0.52 < model.score(unseen, raw.test.labels) < most
