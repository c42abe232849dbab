"""From a prepared data set of texts to what a network is trained on: the vocabulary knows the training texts alone."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from softmax_temperature.data.division import Rules
from softmax_temperature.data.jsonl_texts import JsonlTexts
from softmax_temperature.data.npz_archives import NpzArchive
from softmax_temperature.data.prepare import prepare
from softmax_temperature.data.prepare_texts import prepare_texts
from softmax_temperature.data.prepared import KIND
from softmax_temperature.data.prepared_texts import open_texts
from softmax_temperature.data.splits import SPLITS
from softmax_temperature.data.tokens import PADDING, UNKNOWN
from softmax_temperature.runner.artifacts import Artifact, new_artifact, open_artifact
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages.image_sets import image_set
from softmax_temperature.stages.token_sets import token_sets

RULES = Rules(None, None, None, 0.25, None, 0)


@pytest.fixture
def talk(tmp_path: Path) -> Artifact:
    """40 training and 12 test texts; every text has a word of its own."""
    rows = [("train", number) for number in range(40)] + [("test", number) for number in range(12)]
    lines = [
        json.dumps({"split": split, "label": number % 2, "text": f"A text of its own: {split}{number}."})
        for split, number in rows
    ]
    (tmp_path / "talk.jsonl").write_text("\n".join(lines))
    with new_artifact(tmp_path / "talk", kind=KIND, about={}) as output:
        prepare_texts(JsonlTexts(tmp_path, "talk").read(), RULES, output=output)
    return open_artifact(tmp_path / "talk", kind=KIND)


def own_words(artifact: Artifact, split: Any) -> set[str]:
    return {re.findall(r"(?:train|test)\d+", text)[0] for text in open_texts(artifact).part(split).texts}


def test_the_vocabulary_never_sees_validation_or_test_texts(talk: Artifact) -> None:
    sets, tokeniser = token_sets(talk, vocabulary_size=1000, length=10, keep="start")
    assert own_words(talk, "train") < set(tokeniser.words)
    for split in ("validation", "test"):
        assert own_words(talk, split)
        assert not own_words(talk, split) & set(tokeniser.words)
        assert (sets[split].tokens == UNKNOWN).sum(1).tolist() == [1] * len(sets[split])  # type: ignore[index]
    assert not (sets["train"].tokens == UNKNOWN).any()
    assert tokeniser.vocabulary_size == len(sets["train"]) + 7 + 2


def test_sets_hold_the_texts_and_labels_of_their_splits(talk: Artifact) -> None:
    sets, tokeniser = token_sets(talk, vocabulary_size=20, length=4, keep="end")
    prepared = open_texts(talk)
    for split in SPLITS:
        assert torch.equal(sets[split].tokens, tokeniser.encode(prepared.part(split).texts))
        assert torch.equal(sets[split].labels, prepared.part(split).labels)
        assert not (sets[split].tokens == PADDING).any()
    assert tokeniser.vocabulary_size == 20


def test_equal_data_give_an_equal_vocabulary_to_the_byte(talk: Artifact) -> None:
    first, second = (token_sets(talk, vocabulary_size=30, length=5, keep="end")[1].to_json() for _ in range(2))
    assert first == second


def test_texts_and_images_are_not_taken_for_each_other(talk: Artifact, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="data set talk: holds texts, not images"):
        image_set(talk, "train", str(tmp_path))
    images, labels = np.zeros((8, 4, 4), dtype=np.uint8), np.arange(8) % 2
    np.savez(tmp_path / "birds.npz", x_train=images, y_train=labels, x_test=images, y_test=labels)
    with new_artifact(tmp_path / "birds", kind=KIND, about={}) as output:
        prepare(NpzArchive(tmp_path, "birds").read(), RULES, root=tmp_path, output=output)
    with pytest.raises(InputError, match="data set birds: holds images, not texts"):
        token_sets(open_artifact(tmp_path / "birds", kind=KIND), vocabulary_size=30, length=5, keep="end")
