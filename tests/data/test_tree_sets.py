"""From a prepared data set of trees to what a network is trained on: the vocabulary knows the training trees alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.data.division import Rules
from softmax_temperature.data.jsonl_trees import JsonlTrees
from softmax_temperature.data.prepare_texts import prepare_texts
from softmax_temperature.data.prepared import KIND
from softmax_temperature.data.prepared_texts import open_texts
from softmax_temperature.data.tokens import UNKNOWN
from softmax_temperature.data.trees import WORD
from softmax_temperature.runner.artifacts import Artifact, new_artifact, open_artifact
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages.training_sets import training_sets
from softmax_temperature.training.tokens import TokenSet
from softmax_temperature.training.trees import TreeSet

RULES = Rules(None, None, None, 0.25, None, 0)
TEXT = {"vocabulary": 1000, "length": 3, "keep": "start"}


@pytest.fixture
def talk(tmp_path: Path) -> Artifact:
    """40 training, 8 dev and 12 test sentences, 8, 2 and 2 of them neutral; every one has a word of its own."""
    rows = [(split, number) for split, count in (("train", 40), ("dev", 8), ("test", 12)) for number in range(count)]
    lines = [
        json.dumps({"split": split, "tree": f"({number % 5} (2 its) (2 (2 Own) (3 {split}{number})))"})
        for split, number in rows
    ]
    (tmp_path / "talk.jsonl").write_text("\n".join(lines))
    with new_artifact(tmp_path / "prepared", kind=KIND, about={}) as output:
        prepare_texts(JsonlTrees(tmp_path, "talk").read(), RULES, output=output)
    return open_artifact(tmp_path / "prepared", kind=KIND)


def test_sets_hold_the_trees_and_classes_of_their_splits(talk: Artifact, tmp_path: Path) -> None:
    sets, classes, words = training_sets(talk, str(tmp_path), TEXT)
    assert classes == 2
    assert {split: len(some) for split, some in sets.items()} == {"train": 32, "validation": 6, "test": 10}
    train = sets["train"]
    assert isinstance(train, TreeSet)
    # 0, 1, 3 and 4 of five are left: negative, negative, positive, positive.
    assert train.labels.tolist() == [0, 0, 1, 1] * 8
    numbers = {word: number for number, word in enumerate(words, start=2)}
    assert train.trees[0, :, WORD].tolist() == [0, numbers["its"], 0, numbers["own"], numbers["train0"]]


def test_the_vocabulary_never_sees_validation_or_test_trees(talk: Artifact, tmp_path: Path) -> None:
    sets, _, words = training_sets(talk, str(tmp_path), TEXT)
    assert len(words) == 2 + 32
    assert all(word in ("its", "own") or word.startswith("train") for word in words)
    for split in ("validation", "test"):
        assert (sets[split].inputs[..., WORD] == UNKNOWN).sum(1).tolist() == [1] * len(sets[split])  # type: ignore[index]


def test_the_card_says_that_these_are_trees(talk: Artifact) -> None:
    texts = open_texts(talk)
    assert texts.trees
    assert texts.card["source"]["neutral_sentences_left_out"] == 8 + 2 + 2
    assert texts.class_names == ("negative", "positive")


def test_texts_have_to_say_how_they_are_read(talk: Artifact, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"data set talk: holds texts\. Give the task `text`"):
        training_sets(talk, str(tmp_path), None)


def test_sets_are_kept_for_the_next_cell_and_not_for_other_data(talk: Artifact, tmp_path: Path) -> None:
    first = training_sets(talk, str(tmp_path), TEXT)
    assert training_sets(open_artifact(talk.folder), str(tmp_path), TEXT).sets is first.sets
    other: dict[str, Any] = TEXT | {"vocabulary": 5}
    assert training_sets(talk, str(tmp_path), other).words == ("its", "own", "train0")
    assert not isinstance(first.sets["train"], TokenSet)
