"""Splits are disjoint, stratified and complete; limits are balanced and refuse what cannot be trained on."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from softmax_temperature.data.prepare import Rows, Rules, divide
from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.data.splits import SPLITS, SplitName
from softmax_temperature.runner.errors import InputError


def rules(**changed: Any) -> Rules:
    none = {"train_limit": None, "test_limit": None, "class_limit": None, "image_size_limit": None}
    return Rules(**{**none, "validation_fraction": 0.2, "seed": 0, **changed})


def part(labels: list[int] | np.ndarray) -> RawPart:
    return RawPart(np.zeros((len(labels), 2, 2, 1), dtype=np.uint8), np.asarray(labels, dtype=np.int64))


def dataset(train: list[int] | np.ndarray, test: list[int] | np.ndarray | None = None) -> RawDataset:
    names = tuple("abcdefgh"[: max(train) + 1])
    return RawDataset("birds", names, part(train), None if test is None else part(test), {"how": "made"})


class Division(NamedTuple):
    """What `divide` returns."""

    class_names: tuple[str, ...]
    splits: dict[SplitName, Rows]


def division_of(raw: RawDataset, asked: Rules) -> Division:
    return Division(*divide(raw, asked))


def sizes(division: Division, split: SplitName) -> list[int]:
    return np.bincount(division.splits[split].labels, minlength=len(division.class_names)).tolist()


def test_train_and_validation_partition_the_train_part() -> None:
    division = division_of(dataset(np.arange(50) % 5, np.arange(15) % 5), rules())
    train, validation, test = (division.splits[split].index for split in SPLITS)
    assert sorted([*train, *validation]) == list(range(50))
    assert test.tolist() == list(range(15))
    assert sizes(division, "train") == [8] * 5
    assert sizes(division, "validation") == [2] * 5


def test_a_class_limit_takes_a_random_choice_and_renumbers_it() -> None:
    raw = dataset(np.arange(80) % 8, np.arange(16) % 8)
    division = division_of(raw, rules(class_limit=3))
    assert division.class_names != ("a", "b", "c")
    assert len(division.class_names) == 3
    for split, rows in division.splits.items():
        source = raw.test if split == "test" else raw.train
        assert source is not None
        names = [division.class_names[label] for label in rows.labels]
        assert names == [raw.class_names[label] for label in source.labels[rows.index]]
    assert set(division.class_names) < set(division_of(raw, rules(class_limit=5)).class_names)


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"train_limit": 3}, r"birds.train_limit: leaves 1 of 4 classes .* Use at least 4, or set class_limit"),
        ({"train_limit": 4}, r"datasets.birds.train_limit: no class has a second training sample"),
        ({"class_limit": 1}, r"datasets.birds.class_limit: leaves a single class. Use at least 2"),
    ],
)
def test_a_limit_that_leaves_too_little_is_refused(limits: dict[str, int], message: str) -> None:
    with pytest.raises(InputError, match=message):
        division_of(dataset(np.arange(40) % 4, np.arange(8) % 4), rules(**limits))


def test_a_validation_part_of_the_source_is_kept_whole_and_takes_nothing_from_the_train_part() -> None:
    own = part(np.arange(24) % 8)
    raw = replace(dataset(np.arange(80) % 8, np.arange(16) % 8), validation=own)
    division = division_of(raw, rules(train_limit=40))
    assert sizes(division, "train") == [5] * 8
    assert division.splits["validation"].index.tolist() == list(range(24))
    assert sizes(division_of(raw, rules(class_limit=3)), "validation") == [3] * 3
    [left_out] = {*raw.class_names} - {*division_of(raw, rules(class_limit=7)).class_names}
    with pytest.raises(InputError, match="class_limit: leaves no validation samples"):
        division_of(replace(raw, validation=part([raw.class_names.index(left_out)])), rules(class_limit=7))


def test_without_a_train_part_only_test_images_remain() -> None:
    raw = replace(dataset([0, 1, 2, 3], np.arange(16) % 4), train=part([]))
    division = division_of(raw, rules(class_limit=3, test_limit=6))
    assert [len(division.splits[split].labels) for split in SPLITS] == [0, 0, 6]
