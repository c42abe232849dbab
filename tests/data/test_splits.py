"""Splits are balanced and disjoint; test data never enter a fit or a vocabulary."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from softmax_temperature.data.division import Rows, Rules, divide
from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.data.seeds import generator_for
from softmax_temperature.data.splits import (
    SPLITS,
    LeakError,
    Part,
    SplitName,
    balanced_subset,
    limited,
    random_holdout,
    stratified_holdout,
)
from softmax_temperature.runner.errors import InputError

label_columns = st.lists(st.integers(0, 6), min_size=1, max_size=60).map(np.array)
ROWS = torch.arange(3)


@given(label_columns, st.integers(1, 70), st.integers(0, 5))
def test_a_subset_takes_as_evenly_as_the_classes_allow(
    labels: np.ndarray, limit: int, seed: int
) -> None:
    rows = balanced_subset(labels, limit, generator_for(seed))
    taken = np.bincount(labels[rows], minlength=7)
    available = np.bincount(labels, minlength=7)
    assert len(rows) == len(set(rows)) == min(limit, len(labels))
    assert (np.diff(rows) > 0).all()
    # If a class has fewer rows in the subset than another class, either all of its rows
    # are there, or the difference is one row.
    gave_all = taken == available
    assert (gave_all | (taken >= taken.max() - 1)).all()
    smaller = balanced_subset(labels, limit // 2, generator_for(seed))
    assert set(smaller) <= set(rows)


@given(label_columns, st.floats(0.01, 0.99), st.integers(0, 5))
def test_a_holdout_takes_the_nearest_number_but_at_least_one_and_never_all(
    labels: np.ndarray, fraction: float, seed: int
) -> None:
    held_out = stratified_holdout(labels, fraction, generator_for(seed))
    for label in np.unique(labels):
        size = (labels == label).sum()
        taken = held_out[labels == label].sum()
        assert taken == min(max(np.floor(size * fraction + 0.5), 1), size - 1)


@given(label_columns, st.floats(0.01, 0.99), st.integers(0, 5))
def test_a_random_holdout_shares_every_class_as_nearly_as_rows_allow(
    labels: np.ndarray, fraction: float, seed: int
) -> None:
    held_out = random_holdout(labels, fraction, generator_for(seed))
    assert abs(held_out.sum() - fraction * len(labels)) < 1
    for label in np.unique(labels):
        share = fraction * (labels == label).sum()
        assert abs(held_out[labels == label].sum() - share) < 1


@pytest.mark.parametrize("fraction", [0.25, 0.5])
def test_every_row_is_held_out_as_often_whatever_its_class(fraction: float) -> None:
    # The classes have 1, 1, 2, 3 and 8 rows. The share of 4000 draws in which a row is
    # held out has a standard error of at most 0.008.
    labels = np.repeat(np.arange(5), [1, 1, 2, 3, 8])
    generator = generator_for(0)
    draws = np.array([random_holdout(labels, fraction, generator) for _ in range(4000)])
    np.testing.assert_allclose(draws.mean(axis=0), fraction, atol=0.035)
    # Rows 0 and 1 are the only rows of their classes. They are held out together at
    # most as often as independent rows would be: if one is held out, the other is less
    # likely to be held out.
    assert (draws[:, 0] & draws[:, 1]).mean() < fraction**2 + 0.035


def test_a_limit_draws_pairs_at_random_and_keeps_them_together() -> None:
    sources = tuple(f"s{row}" for row in range(100))
    targets = tuple(f"t{row}" for row in range(100))
    whole = Part.of_all("letters", "train", sources, targets)
    subset = limited(whole, 10, seed=0)
    numbers = [int(source[1:]) for source in subset.data]
    assert numbers == sorted(numbers)
    assert numbers != list(range(10))
    assert subset.labels == tuple(f"t{number}" for number in numbers)
    assert limited(whole, 10, seed=0).data == subset.data
    assert limited(whole, 10, seed=1).data != subset.data


@pytest.mark.parametrize("limit", [None, 3])
def test_no_limit_and_a_large_one_keep_the_part(limit: int | None) -> None:
    whole = Part.of_all("letters", "train", ("a", "b", "c"), ROWS)
    assert limited(whole, limit, seed=0) is whole


def parts(split: SplitName) -> tuple[Part, Part, Part]:
    """One part of each kind: images, texts, and sentences with translations."""
    images = Part("birds", split, torch.zeros(3, 2), ROWS, ROWS)
    texts = Part("birds", split, ("a", "b", "c"), ROWS, ROWS)
    pairs = Part.of_all("birds", split, ("a", "b"), ("c", "d"))
    return images, texts, pairs


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_test_data_fit_nothing_and_held_out_texts_make_no_vocabulary(
    split: SplitName,
) -> None:
    images, texts, pairs = parts(split)
    for part in (images, texts, pairs):
        assert part.for_evaluation() == (part.data, part.labels)
        if split == "test":
            with pytest.raises(
                LeakError, match="birds: a fit must not use the test split"
            ):
                part.for_fitting()
        else:
            assert part.for_fitting() == (part.data, part.labels)
    for part, words in ((texts, ("a", "b", "c")), (pairs, ("a", "b", "c", "d"))):
        if split == "train":
            assert part.for_vocabulary() == words
        else:
            with pytest.raises(
                LeakError,
                match=f"birds: a vocabulary must not use the {split} split",
            ):
                part.for_vocabulary()


def test_rows_are_taken_together() -> None:
    second = np.array([1])
    images, texts, pairs = [part.take(second, "validation") for part in parts("train")]
    assert texts.split == "validation"
    assert texts.data == ("b",)
    assert texts.labels.tolist() == texts.index.tolist() == [1]
    assert (pairs.data, pairs.labels) == (("b",), ("d",))
    assert images.data.shape == (1, 2)


def test_columns_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="birds/train: 2 rows, 3 labels, 3 indices"):
        Part("birds", "train", torch.zeros(2, 2), ROWS, ROWS)


def raw_part(labels: list[int] | np.ndarray) -> RawPart:
    return RawPart(
        np.zeros((len(labels), 2, 2, 1), dtype=np.uint8),
        np.asarray(labels, dtype=np.int64),
    )


def dataset(train: int, test: int, classes: int) -> RawDataset:
    parts = raw_part(np.arange(train) % classes), raw_part(np.arange(test) % classes)
    return RawDataset("birds", tuple("abcdefgh"[:classes]), *parts, {"how": "made"})


def division(raw: RawDataset, **limits: Any) -> tuple[tuple[str, ...], list[Rows]]:
    none = {
        "train_limit": None,
        "test_limit": None,
        "class_limit": None,
        "image_size_limit": None,
    }
    names, splits = divide(
        raw, Rules(**{**none, "validation_fraction": 0.2, "seed": 0, **limits})
    )
    return names, [splits[split] for split in SPLITS]


def test_train_and_validation_partition_the_train_part() -> None:
    _, (train, validation, test) = division(dataset(50, 15, 5))
    assert sorted([*train.index, *validation.index]) == list(range(50))
    assert test.index.tolist() == list(range(15))
    assert [np.bincount(rows.labels).tolist() for rows in (train, validation)] == [
        [8] * 5,
        [2] * 5,
    ]


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
        (
            {"train_limit": 3},
            r"train_limit: leaves 1 of 4 classes .* Use at least 4, or set class_limit",
        ),
        (
            {"train_limit": 4},
            r"datasets.birds.train_limit: leaves no validation samples",
        ),
        (
            {"class_limit": 1},
            r"datasets.birds.class_limit: leaves fewer than two classes\. Use",
        ),
    ],
)
def test_a_limit_that_leaves_too_little_is_refused(
    limits: dict[str, int], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        division(dataset(40, 8, 4), **limits)


def test_a_validation_part_of_the_source_is_kept_with_the_whole_train_part() -> None:
    raw = replace(dataset(80, 16, 8), validation=raw_part(np.arange(24) % 8))
    _, (train, validation, _) = division(raw, train_limit=40)
    assert np.bincount(train.labels).tolist() == [5] * 8
    assert validation.index.tolist() == list(range(24))
    names, splits = division(raw, class_limit=7)
    assert np.bincount(splits[1].labels).tolist() == [3] * 7
    [left_out] = {*raw.class_names} - {*names}
    with pytest.raises(InputError, match="class_limit: leaves no validation samples"):
        division(
            replace(raw, validation=raw_part([raw.class_names.index(left_out)])),
            class_limit=7,
        )
