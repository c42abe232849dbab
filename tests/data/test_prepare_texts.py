"""Texts are divided, limited and described as images are, one text at a time."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.data.jsonl_texts import JsonlTexts
from softmax_temperature.data.phrases import read_phrases
from softmax_temperature.data.prepared_texts import PreparedTexts
from softmax_temperature.data.splits import SPLITS
from softmax_temperature.runner.errors import InputError

STRANGE = 'a "quoted" text,\u2028 two\nlines,\x85 and \x00 ünicode 🙂'


def rows(split: str, count: int, classes: int = 2) -> list[dict[str, Any]]:
    return [{"split": split, "label": number % classes, "text": f"{split} {number}"} for number in range(count)]


@pytest.fixture
def talk(write_jsonl: Any, prepare_text_set: Any, tmp_path: Path) -> PreparedTexts:
    write_jsonl(*rows("train", 20), *rows("test", 6), {"split": "test", "label": 1, "text": STRANGE})
    prepared: PreparedTexts = prepare_text_set(JsonlTexts(tmp_path, "talk").read())
    return prepared


@pytest.fixture
def with_dev(write_jsonl: Any, prepare_text_set: Any, tmp_path: Path) -> PreparedTexts:
    write_jsonl(*rows("train", 20), *rows("dev", 8), *rows("test", 6))
    prepared: PreparedTexts = prepare_text_set(JsonlTexts(tmp_path, "talk").read(), train_limit=10)
    return prepared


def texts(prepared: PreparedTexts, split: Any) -> list[str]:
    return list(prepared.part(split).texts)


def test_train_and_validation_share_no_text(talk: PreparedTexts) -> None:
    assert not set(texts(talk, "train")) & set(texts(talk, "validation"))


def test_the_sources_own_validation_part_is_the_validation_split(with_dev: PreparedTexts) -> None:
    assert texts(with_dev, "validation") == [f"dev {number}" for number in range(8)]
    assert len(texts(with_dev, "train")) == 10
    assert with_dev.card["validation_fraction"] is None
    assert with_dev.card["split_rule"].endswith("; the source's own validation part")


def test_every_limit_reaches_the_texts(write_jsonl: Any, prepare_text_set: Any, tmp_path: Path) -> None:
    write_jsonl(*rows("train", 60, classes=6), *rows("test", 18, classes=6))
    raw = JsonlTexts(tmp_path, "talk").read()
    prepared = prepare_text_set(raw, name="few", train_limit=12, test_limit=4, class_limit=3)
    assert prepared.name == "few"
    assert [len(prepared.part(split).labels) for split in SPLITS] == [9, 3, 4]
    chosen = [int(name) for name in prepared.class_names]
    for text, label in zip(texts(prepared, "train"), prepared.part("train").labels.tolist(), strict=True):
        assert int(text.split()[1]) % 6 == chosen[label]


def test_equal_input_gives_equal_bytes(prepare_text_set: Any) -> None:
    first = prepare_text_set(read_phrases(seed=0)).artifact.digest
    assert prepare_text_set(read_phrases(seed=0)).artifact.digest == first
    assert prepare_text_set(read_phrases(seed=0), seed=1).artifact.digest != first


def test_the_card_tells_the_whole_story(talk: PreparedTexts) -> None:
    card = talk.card
    assert card["source"]["how"] == "archive in data.root"
    assert (card["form"], card["licence"], card["title"]) == ("texts", "not stated", "talk")
    assert card["split_rule"].startswith("the source's own train and test parts; of the rest")
    stored = talk.artifact.folder / "test.jsonl"
    assert card["splits"]["test"] == {
        "size": 7,
        "texts_per_class": [3, 4],
        "characters": [len("test 0"), len(STRANGE)],
        "texts_sha256": hashlib.sha256(stored.read_bytes()).hexdigest(),
    }
    assert {"train_limit", "test_limit", "class_limit", "validation_fraction", "seed", "classes"} <= {*card}


def test_an_archive_that_changes_while_it_is_prepared_leaves_nothing(
    write_jsonl: Any, prepare_text_set: Any, tmp_path: Path
) -> None:
    path = write_jsonl(*rows("train", 20), *rows("test", 6))
    raw = JsonlTexts(tmp_path, "talk").read()
    path.write_bytes(path.read_bytes()[1:])
    with pytest.raises(InputError, match=r"talk\.jsonl: is not JSON"):
        prepare_text_set(raw)
    assert not list((tmp_path / "prepared").iterdir())
