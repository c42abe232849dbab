"""Raw texts pair up with their labels."""

from __future__ import annotations

import numpy as np
import pytest

from softmax_temperature.data.raw_texts import RawTextPart, RawTextSet, TextsInMemory, TextsTogether


def test_texts_in_memory_are_read_in_the_order_asked_for() -> None:
    texts = TextsInMemory(("a", "b", "c"))
    assert len(texts) == 3
    assert list(texts.read(np.array([2, 0]))) == ["c", "a"]


def test_texts_and_labels_must_pair_up() -> None:
    with pytest.raises(ValueError, match="labels: 2, must be as many as the 3 texts"):
        RawTextPart(TextsInMemory(("a", "b", "c")), np.array([0, 1]))


def test_texts_together_are_read_in_the_order_asked_for() -> None:
    texts = TextsTogether((TextsInMemory(("a", "b")), TextsInMemory(()), TextsInMemory(("c", "d", "e"))))
    assert len(texts) == 5
    assert list(texts.read(np.array([0, 1, 2, 4]))) == ["a", "b", "c", "e"]
    assert list(texts.read(np.array([3, 1, 4, 0]))) == ["d", "b", "e", "a"]
    assert list(texts.read([])) == []


def test_pooled_texts_keep_their_labels_and_have_no_parts() -> None:
    def part(texts: str, *labels: int) -> RawTextPart:
        return RawTextPart(TextsInMemory(tuple(texts)), np.array(labels))

    raw = RawTextSet(
        "talk", ("no", "yes"), part("ab", 0, 1), part("c", 1), part("def", 0, 0, 1), {"file": "talk.jsonl"}
    )
    pooled = raw.pooled()
    assert list(pooled.train.texts.read(range(6))) == list("abcdef")
    assert pooled.train.labels.tolist() == [0, 1, 1, 0, 0, 1]
    assert (pooled.validation, pooled.test) == (None, None)
    assert pooled.source == {"file": "talk.jsonl", "pooled": True}
    assert (pooled.name, pooled.class_names) == (raw.name, raw.class_names)
