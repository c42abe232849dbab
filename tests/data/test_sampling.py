"""Subsets are balanced, holdouts are stratified; test data reach no fit, and only training texts make a vocabulary."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from softmax_temperature.data.seeds import generator_for
from softmax_temperature.data.splits import LeakError, Part, SplitName, balanced_subset, limited, stratified_holdout

label_columns = st.lists(st.integers(0, 6), min_size=1, max_size=60).map(np.array)
ROWS = torch.arange(3)


@given(label_columns, st.integers(1, 70), st.integers(0, 5))
def test_a_subset_takes_as_evenly_as_the_classes_allow(labels: np.ndarray, limit: int, seed: int) -> None:
    rows = balanced_subset(labels, limit, generator_for(seed))
    taken, available = np.bincount(labels[rows], minlength=7), np.bincount(labels, minlength=7)
    assert len(rows) == len(set(rows)) == min(limit, len(labels))
    assert (np.diff(rows) > 0).all()
    # A class that gave fewer than another gave all it had, or one less than the other.
    assert all(taken[a] == available[a] or taken[a] >= taken.max() - 1 for a in range(7))
    assert set(balanced_subset(labels, limit // 2, generator_for(seed))) <= set(rows)


@given(label_columns, st.floats(0.01, 0.99), st.integers(0, 5))
def test_a_holdout_takes_the_nearest_number_but_at_least_one_and_never_all(
    labels: np.ndarray, fraction: float, seed: int
) -> None:
    held_out = stratified_holdout(labels, fraction, generator_for(seed))
    for label in np.unique(labels):
        size, taken = (labels == label).sum(), held_out[labels == label].sum()
        assert taken == (min(max(np.floor(size * fraction + 0.5), 1), size - 1))


def test_a_limit_draws_pairs_at_random_and_keeps_them_together() -> None:
    sources, targets = (tuple(f"{side}{row}" for row in range(100)) for side in "st")
    whole = Part.of_all("letters", "train", sources, targets)
    some = limited(whole, 10, seed=0)
    numbers = [int(source[1:]) for source in some.data]
    assert numbers == sorted(numbers) != list(range(10))
    assert some.labels == tuple(f"t{number}" for number in numbers)
    assert limited(whole, 10, seed=0).data == some.data != limited(whole, 10, seed=1).data
    assert limited(whole, None, seed=0) is limited(whole, 100, seed=0) is whole


def parts(split: SplitName) -> tuple[Part, Part, Part]:
    """Images, texts, and sentences with their translations."""
    images, texts = (Part("birds", split, data, ROWS, ROWS) for data in (torch.zeros(3, 2), ("a", "b", "c")))
    return images, texts, Part.of_all("birds", split, ("a", "b"), ("c", "d"))


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_test_data_fit_nothing_and_held_out_texts_make_no_vocabulary(split: SplitName) -> None:
    images, texts, pairs = parts(split)
    for part in (images, texts, pairs):
        assert part.for_evaluation() == (part.data, part.labels)
        if split == "test":
            with pytest.raises(LeakError, match="birds: the test split was asked for to fit something"):
                part.for_fitting()
        else:
            assert part.for_fitting() == (part.data, part.labels)
    for part, words in ((texts, ("a", "b", "c")), (pairs, ("a", "b", "c", "d"))):
        if split == "train":
            assert part.for_vocabulary() == words
        else:
            with pytest.raises(LeakError, match=f"birds: the {split} split was asked for to make a vocabulary"):
                part.for_vocabulary()


def test_rows_are_taken_together_and_must_pair_up() -> None:
    images, texts, pairs = (part.take(ROWS[1:2].numpy(), "validation") for part in parts("train"))
    assert (texts.data, texts.labels.tolist(), texts.index.tolist(), texts.split) == (("b",), [1], [1], "validation")
    assert (pairs.data, pairs.labels) == (("b",), ("d",))
    assert images.data.shape == (1, 2)
    with pytest.raises(ValueError, match="birds/train: 2 rows, 3 labels, 3 indices"):
        Part("birds", "train", torch.zeros(2, 2), ROWS, ROWS)
