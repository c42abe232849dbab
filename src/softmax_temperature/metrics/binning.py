"""Which bin each prediction falls into: by equal width, or by equal mass."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

CHUNK = 2**21  # Elements of the largest float64 temporary: 16 MiB, small enough for the allocator to keep and reuse.


def equal_width_bins(values: Tensor, bins: int) -> Tensor:
    """Index of the bin of each value, int64, the shape of `values`, which lie in [0, 1].

    Bins are (a, b] and the first also holds 0. The edges are k / bins correctly rounded, and are compared, not
    multiplied: ceil(bins * value) puts a value next to an edge into the wrong bin.
    """
    edges = torch.arange(1, bins, dtype=values.dtype, device=values.device) / bins
    return torch.bucketize(values.contiguous(), edges)


def equal_mass_edges(samples: int, bins: int) -> list[int]:
    """Ranks between which each bin lies, from 0 to `samples`: sizes differ by at most one, the larger ones first."""
    size, larger = divmod(samples, bins)
    return [number * size + min(number, larger) for number in range(bins + 1)]


@dataclass(frozen=True)
class Ranking:
    """Distinct values in ascending order; those that are equal share a range of ranks."""

    group: Tensor  # Which distinct value each sample has, shape (n,).
    ends: Tensor  # The rank after the last sample of each distinct value, shape (groups,), int64.

    @classmethod
    def of(cls, values: Tensor) -> Ranking:
        """The ranking of values of shape (n,)."""
        _, group, counts = torch.unique(values, return_inverse=True, return_counts=True)
        return cls(group, counts.cumsum(0))


def equal_mass_membership(ranking: Ranking, bins: int) -> Tensor:
    """Share of each sample in each equal-mass bin, shape (n, bins); each row sums to one, each column to its size.

    Equal values that straddle an edge are all split across it in the same proportion. So a tie keeps the sizes exact
    and the result does not depend on the order of the samples.
    """
    samples = len(ranking.group)
    edges = torch.tensor(equal_mass_edges(samples, bins), dtype=torch.float64, device=ranking.group.device)
    ends = ranking.ends.to(torch.float64)
    starts = torch.cat([ends.new_zeros(1), ends[:-1]])
    overlap = torch.minimum(ends[:, None], edges[1:]) - torch.maximum(starts[:, None], edges[:-1])
    return (overlap.clamp(min=0) / (ends - starts)[:, None])[ranking.group]


def binned_sums(index: Tensor, values: Tensor, size: int) -> Tensor:
    """Sum of the values that share an index, shape (size,)."""
    return values.new_zeros(size).scatter_add_(0, index, values)
