"""Prepared data become training sets; vocabularies come from training texts only."""

import re
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.data.archives import JsonlArchive
from softmax_temperature.data.prepared import PreparedData
from softmax_temperature.data.splits import SPLITS
from softmax_temperature.data.tokens import UNKNOWN
from softmax_temperature.params.shared import Text
from softmax_temperature.runner.errors import InputError
from softmax_temperature.training.prepared_sets import image_set, training_sets

TEXT = Text(vocabulary=1000, length=10, keep="start")


@pytest.fixture
def talk(write_jsonl: Any, prepare_data: Any, tmp_path: Path) -> PreparedData:
    """40 training and 12 test texts; every text contains a unique word."""
    rows = [
        (split, number)
        for split, count in (("train", 40), ("test", 12))
        for number in range(count)
    ]
    texts = [
        {
            "split": split,
            "label": number % 2,
            "text": f"A text of its own: {split}{number}.",
        }
        for split, number in rows
    ]
    write_jsonl(*texts)
    prepared: PreparedData = prepare_data(JsonlArchive(tmp_path / "talk.jsonl").read())
    return prepared


def test_the_vocabulary_never_sees_validation_or_test_texts(talk: PreparedData) -> None:
    sets, _, words = training_sets(talk.artifact, "", TEXT)
    own = {
        split: {
            re.findall(r"(?:train|test)\d+", text)[0] for text in talk.texts(split).data
        }
        for split in SPLITS
    }
    assert own["train"] < set(words)
    for split in ("validation", "test"):
        assert not own[split] & set(words)  # type: ignore[index]
        assert (sets[split].inputs == UNKNOWN).sum(1).tolist() == [1] * len(sets[split])  # type: ignore[index]
    assert not (sets["train"].inputs == UNKNOWN).any()
    assert len(words) == len(sets["train"]) + 7


def test_texts_and_images_are_not_taken_for_each_other(talk: PreparedData) -> None:
    with pytest.raises(InputError, match="data set talk: holds texts, not images"):
        image_set(talk.artifact, "train", "")
    with pytest.raises(
        InputError, match=r"data set talk: holds texts, .* Set the task's `text`"
    ):
        training_sets(talk.artifact, "")
