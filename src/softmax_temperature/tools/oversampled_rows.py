"""Rows that a sampler with replacement drew more than once.

Such a sampler, or a function that copies rows of rare classes, belongs to training. In
an evaluation, both halves of a split hold copies of the same samples, and rare classes
count more than in the data.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from softmax_temperature.tools.arrays import Rows, row_keys

# Copies are judged if there are at least `FEWEST_DIFFERENT` different rows, and if more
# than the share `REPEATED` of the rows repeats other rows. A bootstrap repeats 37 % of
# the rows. A share of `REPEATED_RARE` suffices if a class of at least `FEWEST_OF_CLASS`
# different rows has `OFTEN` copies of each on average, because the class may be rare.
FEWEST_DIFFERENT = 100
REPEATED = 0.25
REPEATED_RARE = 0.1
FEWEST_OF_CLASS = 5
OFTEN = 2
# Samples that only have the same scores, as in the leaf of a tree, may have different
# labels. If labels were independent, at least `FEWEST_SPLIT` groups of copies must be
# expected to have different labels, and at most this share of them may have.
FEWEST_SPLIT = 5
MOST_SPLIT = 0.1
# The numbers of copies of a sampler vary like a Poisson variable without its zeros. In
# data that are equal by nature, such as frequent messages, they vary far more.
MOST_DISPERSION = 1.4
# Most tables have no equal rows, and their first columns are enough to show it.
FIRST_COLUMNS = 8
# Bisection steps that find the mean of a Poisson variable.
STEPS = 60


class Copies(NamedTuple):
    """Groups of equal rows.

    Attributes:
        counts: Number of rows of each group, shape (groups,), float64.
        labels: The label of one row of each group, shape (groups,).
        mixed: Whether the rows of a group have different labels, shape (groups,).
        wrong: Number of rows that are predicted wrongly, shape (groups,), float64.
    """

    counts: Tensor
    labels: Tensor
    mixed: Tensor
    wrong: Tensor


def oversampled(parts: list[Rows], name: str = "") -> str:
    """Return a sentence about rows that were evidently drawn several times, or "".

    Three facts together are the evidence: many rows are exact copies of others; copies
    have equal labels, also where the prediction is wrong; and within each class, the
    numbers of copies vary no more than those of a sampler.

    Args:
        parts: Scores (n, classes) and labels (n,), in one or several parts.
        name: What comes before "rows" in the sentence.
    """
    total = sum(len(labels) for _, labels in parts)
    first_columns = [(scores[:, :FIRST_COLUMNS], labels) for scores, labels in parts]
    for rows in (first_columns, parts):
        keys = torch.cat([row_keys(scores) for scores, _ in rows])
        repeats = total - len(keys.unique())
        if repeats <= REPEATED_RARE * total or total - repeats < FEWEST_DIFFERENT:
            return ""
    copies = _groups(keys, parts)
    if repeats <= REPEATED * total and not _has_copied_class(copies):
        return ""
    if _may_be_ties(copies) or _dispersion(copies) > MOST_DISPERSION:
        return ""
    return (
        f"{repeats} of the {total} {name}rows are exact copies of other rows, as a "
        "sampler with replacement draws them, so the temperature and the intervals do "
        "not hold for the data. Evaluate each sample once: no sampler with "
        "replacement, oversampling or bootstrap."
    )


def _groups(keys: Tensor, parts: list[Rows]) -> Copies:
    """Return the groups of rows with equal `keys`."""
    _, group, counts = keys.unique(return_inverse=True, return_counts=True)
    labels = torch.cat([classes for _, classes in parts])
    predicted = torch.cat([scores.argmax(dim=1) for scores, _ in parts])
    low = labels.new_zeros(len(counts)).scatter_reduce(
        0, group, labels, "amin", include_self=False
    )
    high = labels.new_zeros(len(counts)).scatter_reduce(
        0, group, labels, "amax", include_self=False
    )
    wrong = torch.bincount(group, (predicted != labels).double(), len(counts))
    return Copies(counts.double(), low, low != high, wrong)


def _may_be_ties(copies: Copies) -> bool:
    """Whether copies may be different samples that have equal scores."""
    several = copies.counts > 1
    counts = copies.counts[several]
    error = (copies.wrong[several].sum() / counts.sum()).item()
    expected = (1 - (1 - error) ** counts - error**counts).sum().item()
    mixed = int(copies.mixed.sum())
    return expected < FEWEST_SPLIT or mixed > MOST_SPLIT * expected


def _has_copied_class(copies: Copies) -> bool:
    """Whether each row of some class has several copies on average."""
    rows = torch.bincount(copies.labels)
    means = torch.bincount(copies.labels, copies.counts) / rows
    return bool(((rows >= FEWEST_OF_CLASS) & (means >= OFTEN)).any())


def _dispersion(copies: Copies) -> float:
    """Return the variance of the numbers of copies over that of a sampler's numbers.

    Both are within classes, because a sampler may draw each class at its own rate.
    """
    _, group, rows = copies.labels.unique(return_inverse=True, return_counts=True)
    sizes = rows.double()
    means = torch.bincount(group, copies.counts, len(sizes)) / sizes
    squares = (copies.counts - means[group]).square().sum()
    # The mean of a Poisson variable without zeros is rate / (1 - exp(-rate)), which
    # lies between the rate and the rate plus 1.
    low = (means - 1).clamp(min=0)
    high = means
    for _ in range(STEPS):
        rate = (low + high) / 2
        above = rate > means * -torch.expm1(-rate)
        high = torch.where(above, rate, high)
        low = torch.where(above, low, rate)
    rate = (low + high) / 2
    expected = (sizes * means * (1 + rate - means)).sum()
    dispersion: float = (squares / expected.clamp(min=1)).item()
    return dispersion
