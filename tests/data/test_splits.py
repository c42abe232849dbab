"""Test data cannot reach a fit."""

from __future__ import annotations

import pytest
import torch

from softmax_temperature.data.splits import SPLITS, LeakError, Part, SplitName


def part(split: SplitName, rows: int = 3, labels: int = 3) -> Part:
    return Part("digits", split, torch.zeros(rows, 2), torch.zeros(labels, dtype=torch.long), torch.arange(rows))


def test_train_and_validation_may_be_fitted_on() -> None:
    for split in ("train", "validation"):
        data, labels = part(split).for_fitting()
        assert len(data) == len(labels) == 3


def test_test_data_may_not() -> None:
    with pytest.raises(LeakError, match="digits: the test split"):
        part("test").for_fitting()


def test_every_split_may_be_evaluated() -> None:
    for split in SPLITS:
        assert len(part(split).for_evaluation()[0]) == 3


def test_rows_and_labels_must_agree() -> None:
    with pytest.raises(ValueError, match="digits/train: 3 rows, 2 labels"):
        part("train", labels=2)
