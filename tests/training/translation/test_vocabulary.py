"""Word pieces do not depend on the sentences' order, and decode to the text."""

import pytest

from softmax_temperature.data.splits import LeakError, Part
from softmax_temperature.training.translation.sentences import (
    END,
    PADDING,
    START,
    UNKNOWN,
)
from softmax_temperature.training.translation.vocabulary import Vocabulary


def rows(vocabulary: Vocabulary, *sentences: str) -> list[list[int]]:
    encoded = vocabulary.encode(sentences)
    return [row.tolist() for row in encoded.values.tensor_split(encoded.ends[:-1])]


def test_sentences_come_back_as_they_were(part: Part, vocabulary: Vocabulary) -> None:
    for sentences in (part.data, part.labels):
        encoded = rows(vocabulary, *sentences)
        assert all(row[-1] == END and END not in row[:-1] for row in encoded)
        assert vocabulary.decode(encoded) == list(sentences)


def test_both_languages_share_their_numbers(vocabulary: Vocabulary) -> None:
    english, german = rows(
        vocabulary, "a dog sleeps, 3 cats", "ein Hund schläft, 3 Katzen"
    )
    alike = [number for number in english if number in german]
    assert [
        text for text in vocabulary.decode([[number] for number in alike]) if text
    ] == [",", "3"]


def test_reserved_numbers_are_in_no_sentence(vocabulary: Vocabulary) -> None:
    assert (PADDING, START, END, UNKNOWN) == (0, 1, 2, 3)
    for text in ("< padding >", "< start >", "< end >", "< unknown >"):
        assert not {PADDING, START} & set(rows(vocabulary, text)[0])
        assert rows(vocabulary, text)[0].count(END) == 1


def test_characters_that_no_training_sentence_has_are_unknown(
    vocabulary: Vocabulary,
) -> None:
    [row] = rows(vocabulary, "a Ω dog")
    assert UNKNOWN in row
    assert vocabulary.decode([row]) == ["a  dog"]


def test_only_training_sentences_make_a_vocabulary(part: Part) -> None:
    for split in ("validation", "test"):
        with pytest.raises(LeakError, match=f"the {split} split"):
            Vocabulary.fit(Part.of_all("pets", split, part.data, part.labels), size=60)  # type: ignore[arg-type]
