"""Test data reach no fit, and only training texts make a vocabulary."""

import pytest
import torch

from softmax_temperature.data.splits import LeakError, ParallelPart, Part, SplitName, TextPart

ROWS = torch.arange(3)
FITTED: list[SplitName] = ["train", "validation"]


@pytest.mark.parametrize("split", FITTED)
def test_train_and_validation_may_be_fitted_on(split: SplitName) -> None:
    part = Part("birds", split, torch.zeros(3, 2), ROWS, ROWS)
    assert part.for_fitting()[1] is part.for_evaluation()[1] is ROWS
    pairs = ParallelPart("letters", split, ("a", "b"), ("c", "d"))
    assert pairs.for_fitting() == pairs.for_evaluation() == (("a", "b"), ("c", "d"))


def test_test_data_are_for_evaluation_only() -> None:
    part = Part("birds", "test", torch.zeros(3, 2), ROWS, ROWS)
    assert part.for_evaluation() == (part.data, part.labels)
    for some in (part, ParallelPart("birds", "test", ("a",), ("c",))):
        with pytest.raises(LeakError, match="birds: the test split was asked for to fit something"):
            some.for_fitting()


def test_only_training_texts_may_make_a_vocabulary() -> None:
    assert TextPart("talk", "train", ("a", "b", "c"), ROWS, ROWS).for_vocabulary() == ("a", "b", "c")
    assert ParallelPart("talk", "train", ("a", "b"), ("c", "d")).for_vocabulary() == ("a", "b", "c", "d")
    held_out: list[SplitName] = ["validation", "test"]
    for split in held_out:
        for part in (TextPart("talk", split, ("a", "b", "c"), ROWS, ROWS), ParallelPart("talk", split, ("a",), ("c",))):
            with pytest.raises(LeakError, match=f"talk: the {split} split was asked for to make a vocabulary"):
                part.for_vocabulary()  # type: ignore[attr-defined]


def test_rows_must_pair_up() -> None:
    with pytest.raises(ValueError, match="birds/train: 2 rows, 3 labels, 3 indices"):
        Part("birds", "train", torch.zeros(2, 2), ROWS, ROWS)
