"""What all cards say, whatever the samples are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from softmax_temperature.data.cards import common_card, fewest_and_most
from softmax_temperature.data.digits import read_digits
from softmax_temperature.data.division import Rows, Rules, divide
from softmax_temperature.data.phrases import read_phrases

RULES = Rules(100, 50, None, 0.25, None, 3)


@pytest.mark.parametrize(
    ("raw", "title", "classes"), [(read_digits(), "Optical Recog", 10), (read_phrases(seed=0), "Phrases (made-up", 2)]
)
def test_a_card_names_source_limits_and_splits(raw: Any, title: str, classes: int) -> None:
    card = common_card(raw, RULES, divide(raw, RULES), name="few", source_sha256="abc")
    assert card["title"].startswith(title)
    assert (card["name"], card["classes"], card["source"]["sha256"]) == ("few", classes, "abc")
    assert (card["train_limit"], card["test_limit"], card["class_limit"], card["seed"]) == (100, 50, None, 3)
    assert card["validation_fraction"] == 0.25
    own = common_card(raw, RULES, divide(raw, RULES), name=None, source_sha256=None, own_validation=True)
    assert own["name"] == raw.name
    assert own["validation_fraction"] is None
    assert own["split_rule"] != card["split_rule"]


def test_a_class_that_is_absent_has_no_samples() -> None:
    labels = np.array([0, 2, 2, 0, 2])
    assert fewest_and_most(Rows(read_digits().train, np.arange(5), labels), classes=4) == [0, 3]
