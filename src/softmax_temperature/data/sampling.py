"""Choosing rows class by class: balanced subsets and stratified holdouts, from a generator and the labels alone."""

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.data.seeds import generator_for
from softmax_temperature.data.splits import Part


def limited(part: Part, limit: int | None, *, seed: int) -> Part:
    """At most `limit` rows of a part, drawn at random without regard to classes; None keeps all."""
    if limit is None or limit >= len(part.labels):
        return part
    order = generator_for(seed, part.dataset, f"{part.split} limit").permutation(len(part.labels))
    return part.take(np.sort(order[:limit]))


def balanced_subset(labels: NDArray[np.int64], limit: int, generator: np.random.Generator) -> NDArray[np.int64]:
    """Row numbers, ascending, of a random subset in which class sizes differ by at most one where that is possible.

    With one generator state, a smaller subset is part of a larger one. The size is min(limit, n).
    """
    rank = _rank_within_class(labels, generator)
    turn = generator.permutation(int(labels.max()) + 1)[labels]
    return np.sort(np.lexsort((turn, rank))[:limit])


def stratified_holdout(labels: NDArray[np.int64], fraction: float, generator: np.random.Generator) -> NDArray[np.bool_]:
    """Which rows are held out, (n,): of every class the number nearest to `fraction`, at least one, never all."""
    sizes = np.bincount(labels)
    held_out = np.clip(np.floor(sizes * fraction + 0.5), 1, np.maximum(sizes - 1, 0))
    rows: NDArray[np.bool_] = _rank_within_class(labels, generator) < held_out[labels]
    return rows


def _rank_within_class(labels: NDArray[np.int64], generator: np.random.Generator) -> NDArray[np.int64]:
    """(n,) the position of each row in a random order of its class, from 0."""
    shuffled = generator.permutation(len(labels))
    by_class = shuffled[np.argsort(labels[shuffled], kind="stable")]
    sizes = np.bincount(labels)
    rank = np.empty(len(labels), dtype=np.int64)
    rank[by_class] = np.arange(len(labels)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return rank
