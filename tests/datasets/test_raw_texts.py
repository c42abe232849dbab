"""Raw texts pair up with their labels."""

from __future__ import annotations

import numpy as np
import pytest

from softmax_temperature.datasets.raw_texts import RawTextPart, TextsInMemory


def test_texts_in_memory_are_read_in_the_order_asked_for() -> None:
    texts = TextsInMemory(("a", "b", "c"))
    assert len(texts) == 3
    assert list(texts.read(np.array([2, 0]))) == ["c", "a"]


def test_texts_and_labels_must_pair_up() -> None:
    with pytest.raises(ValueError, match="labels: 2, must be as many as the 3 texts"):
        RawTextPart(TextsInMemory(("a", "b", "c")), np.array([0, 1]))
