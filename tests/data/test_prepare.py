"""Splits are disjoint, stratified and complete; limits are balanced and refuse what cannot be trained on."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from softmax_temperature.data.prepare import Rows, Rules, divide
from softmax_temperature.data.splits import SPLITS, RawDataset, RawPart
from softmax_temperature.runner.errors import InputError


def part(labels: list[int] | np.ndarray) -> RawPart:
    return RawPart(np.zeros((len(labels), 2, 2, 1), dtype=np.uint8), np.asarray(labels, dtype=np.int64))


def dataset(train: int, test: int, classes: int) -> RawDataset:
    parts = part(np.arange(train) % classes), part(np.arange(test) % classes)
    return RawDataset("birds", tuple("abcdefgh"[:classes]), *parts, {"how": "made"})


def division(raw: RawDataset, **limits: Any) -> tuple[tuple[str, ...], list[Rows]]:
    none = {"train_limit": None, "test_limit": None, "class_limit": None, "image_size_limit": None}
    names, splits = divide(raw, Rules(**{**none, "validation_fraction": 0.2, "seed": 0, **limits}))
    return names, [splits[split] for split in SPLITS]


def test_train_and_validation_partition_the_train_part() -> None:
    _, (train, validation, test) = division(dataset(50, 15, 5))
    assert sorted([*train.index, *validation.index]) == list(range(50))
    assert test.index.tolist() == list(range(15))
    assert [np.bincount(rows.labels).tolist() for rows in (train, validation)] == [[8] * 5, [2] * 5]


def test_a_class_limit_takes_a_random_choice_and_renumbers_it() -> None:
    raw = dataset(80, 16, 8)
    names, splits = division(raw, class_limit=3)
    assert len(names) == 3
    assert names != ("a", "b", "c")
    for rows in splits:
        assert [names[label] for label in rows.labels] == [
            raw.class_names[label] for label in rows.part.labels[rows.index]
        ]
    assert set(names) < set(division(raw, class_limit=5)[0])


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"train_limit": 3}, r"birds.train_limit: leaves 1 of 4 classes .* Use at least 4, or set class_limit"),
        ({"train_limit": 4}, r"datasets.birds.train_limit: leaves no validation samples"),
        ({"class_limit": 1}, r"datasets.birds.class_limit: leaves a single class. Use at least 2"),
    ],
)
def test_a_limit_that_leaves_too_little_is_refused(limits: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        division(dataset(40, 8, 4), **limits)


def test_a_validation_part_of_the_source_is_kept_whole_and_takes_nothing_from_the_train_part() -> None:
    raw = replace(dataset(80, 16, 8), validation=part(np.arange(24) % 8))
    _, (train, validation, _) = division(raw, train_limit=40)
    assert np.bincount(train.labels).tolist() == [5] * 8
    assert validation.index.tolist() == list(range(24))
    names, splits = division(raw, class_limit=7)
    assert np.bincount(splits[1].labels).tolist() == [3] * 7
    [left_out] = {*raw.class_names} - {*names}
    with pytest.raises(InputError, match="class_limit: leaves no validation samples"):
        division(replace(raw, validation=part([raw.class_names.index(left_out)])), class_limit=7)
