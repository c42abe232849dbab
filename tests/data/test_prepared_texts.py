"""What is prepared of texts is what is read back; damage on the way is noticed and named."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from softmax_temperature.data.jsonl_texts import JsonlTexts
from softmax_temperature.data.npz_archives import NpzArchive
from softmax_temperature.data.prepared_texts import PreparedTexts, holds_texts, open_texts, to_line
from softmax_temperature.data.splits import SPLITS, LeakError
from softmax_temperature.runner.artifacts import ArtifactError
from softmax_temperature.runner.errors import InputError

STRANGE = 'a "quoted" text,\u2028 two\nlines,\x85 and \x00 ünicode 🙂'


def rows(split: str, count: int, classes: int = 2) -> list[dict[str, Any]]:
    return [{"split": split, "label": number % classes, "text": f"{split} {number}"} for number in range(count)]


@pytest.fixture
def talk(write_jsonl: Any, prepare_text_set: Any, tmp_path: Path) -> PreparedTexts:
    write_jsonl(*rows("train", 20), *rows("test", 6), {"split": "test", "label": 1, "text": STRANGE})
    prepared: PreparedTexts = prepare_text_set(JsonlTexts(tmp_path, "talk").read())
    return prepared


def texts(prepared: PreparedTexts, split: Any) -> list[str]:
    return list(prepared.part(split).texts)


def test_texts_come_back_in_the_order_of_their_labels(talk: PreparedTexts) -> None:
    for split in SPLITS:
        part, source = talk.part(split), "test" if split == "test" else "train"
        expected = [f"{source} {number}" for number in part.index.tolist()]
        assert texts(talk, split) == ([*expected[:-1], STRANGE] if split == "test" else expected)
        assert part.labels[:6].tolist() == [number % 2 for number in part.index.tolist()][:6]
        assert part.labels.dtype == part.index.dtype == torch.int64
    assert [len(talk.part(split).labels) for split in SPLITS] == [14, 6, 7]
    assert (talk.name, talk.classes, talk.class_names, talk.splits) == ("talk", 2, ("0", "1"), SPLITS)


def test_a_part_may_be_read_more_than_once(talk: PreparedTexts) -> None:
    part = talk.part("train")
    assert list(part.texts) == list(part.texts)


def test_only_training_texts_may_make_a_vocabulary(talk: PreparedTexts) -> None:
    assert list(talk.part("train").for_vocabulary()) == texts(talk, "train")
    for split in ("validation", "test"):
        with pytest.raises(LeakError, match=f"talk: the {split} split was asked for to make a vocabulary"):
            talk.part(split).for_vocabulary()  # type: ignore[arg-type]


def test_texts_are_one_json_string_a_line() -> None:
    assert to_line('ü "\n') == 'ü "\n'.encode().replace(b'"', b'\\"').replace(b"\n", b"\\n").join([b'"', b'"\n'])


@pytest.mark.parametrize("name", ["train.jsonl", "rows.safetensors", "card.json"])
def test_a_flipped_byte_of_what_is_stored_is_noticed(talk: PreparedTexts, name: str) -> None:
    path = talk.artifact.folder / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(bytes(content))
    with pytest.raises(ArtifactError, match=name):
        texts(open_texts(talk.artifact), "train")


def test_images_are_no_texts(write_npz: Any, prepare_images: Any, talk: PreparedTexts) -> None:
    path = write_npz(class_names=np.array(["crow", "wren", "tit"]))
    artifact = prepare_images(NpzArchive(path.parent, "birds").read()).artifact
    assert not holds_texts(artifact)
    assert holds_texts(talk.artifact)
    with pytest.raises(InputError, match="data set birds: holds images, not texts"):
        open_texts(artifact)


def test_a_split_that_there_is_not_is_refused(talk: PreparedTexts) -> None:
    with pytest.raises(ValueError, match="split: 'val', must be one of train, validation, test"):
        talk.part("val")  # type: ignore[arg-type]
