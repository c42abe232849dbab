"""Choosing rows class by class: balanced subsets and stratified holdouts, from a generator and the labels alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def generator_for(seed: int, *purpose: str) -> np.random.Generator:
    """A generator of its own for a named purpose, so that one choice does not disturb another."""
    return np.random.default_rng([seed, *"/".join(purpose).encode()])


def balanced_subset(labels: NDArray[np.int64], limit: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Rows of a random subset in which classes differ by at most one image, as far as they have so many.

    With one generator state, a smaller subset is part of a larger one.

    Args:
        labels: (n,) class numbers.
        limit: the size of the subset; n when it is larger.
        generator: draws the rows, and the classes that get one image more.

    Returns:
        (min(limit, n),) row numbers, ascending.
    """
    if limit < 1:
        raise ValueError(f"limit: {limit}, must be at least 1")
    rank = _rank_within_class(labels, generator)
    turn = generator.permutation(int(labels.max()) + 1)[labels]
    return np.sort(np.lexsort((turn, rank))[:limit])


def stratified_holdout(labels: NDArray[np.int64], fraction: float, generator: np.random.Generator) -> NDArray[np.bool_]:
    """A random part of every class: the nearest number of images to `fraction`, at least one, never all.

    Args:
        labels: (n,) class numbers.
        fraction: between 0 and 1.
        generator: draws the rows.

    Returns:
        (n,) true where a row is held out. A class with a single image keeps it.
    """
    if not 0 < fraction < 1:
        raise ValueError(f"fraction: {fraction}, must be between 0 and 1")
    sizes = np.bincount(labels)
    held_out = np.clip(np.floor(sizes * fraction + 0.5).astype(np.int64), 1, np.maximum(sizes - 1, 0))
    rows: NDArray[np.bool_] = _rank_within_class(labels, generator) < held_out[labels]
    return rows


def _rank_within_class(labels: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
    """(n,) each row's place in a random order of its class, from 0."""
    shuffled = generator.permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    sizes = np.bincount(labels)
    rank = np.empty(len(labels), dtype=np.int64)
    rank[by_class] = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rank
