"""Subsets are balanced, holdouts are stratified, and both depend on the generator alone."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from softmax_temperature.data.sampling import balanced_subset, generator_for, stratified_holdout

label_columns = st.lists(st.integers(0, 6), min_size=1, max_size=60).map(np.array)


@given(label_columns, st.integers(1, 70), st.integers(0, 5))
def test_a_subset_takes_as_evenly_as_the_classes_allow(labels: np.ndarray, limit: int, seed: int) -> None:
    rows = balanced_subset(labels, limit, generator_for(seed))
    taken, available = np.bincount(labels[rows], minlength=7), np.bincount(labels, minlength=7)
    assert len(rows) == len(set(rows)) == min(limit, len(labels))
    assert (np.diff(rows) > 0).all()
    # A class that gave fewer than another gave all it had, or one less than the other.
    assert all(taken[a] == available[a] or taken[a] >= taken.max() - 1 for a in range(7))


def test_a_smaller_subset_is_part_of_a_larger_one() -> None:
    labels = np.arange(50) % 7
    chosen = [set(balanced_subset(labels, limit, generator_for(3))) for limit in (5, 20, 40)]
    assert chosen[0] < chosen[1] < chosen[2]


@given(label_columns, st.floats(0.01, 0.99), st.integers(0, 5))
def test_a_holdout_takes_the_nearest_number_but_at_least_one_and_never_all(
    labels: np.ndarray, fraction: float, seed: int
) -> None:
    held_out = stratified_holdout(labels, fraction, generator_for(seed))
    for label in np.unique(labels):
        size, taken = (labels == label).sum(), held_out[labels == label].sum()
        assert taken == (min(max(np.floor(size * fraction + 0.5), 1), size - 1))


def test_seed_and_purpose_decide_and_nothing_else() -> None:
    labels = np.arange(200) % 5
    draws = [stratified_holdout(labels, 0.5, generator_for(*key)) for key in ((1, "a"), (1, "a"), (1, "b"), (2, "a"))]
    assert (draws[0] == draws[1]).all()
    assert not (draws[0] == draws[2]).all()
    assert not (draws[0] == draws[3]).all()
