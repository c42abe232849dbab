"""Which bin each prediction falls into: by equal width, or by equal mass."""

from __future__ import annotations

import torch
from torch import Tensor

CHUNK = 2**21  # Elements of the largest float64 temporary: 16 MiB, small enough for the allocator to keep and reuse.


def equal_width_bins(values: Tensor, bins: int) -> Tensor:
    """Index of the bin of each value in [0, 1], int64; bins are (a, b] and the first also holds 0."""
    # Edges are compared: ceil(bins * value) puts a value next to an edge into the wrong bin.
    edges = torch.arange(1, bins, dtype=values.dtype, device=values.device) / bins
    return torch.bucketize(values.contiguous(), edges)


def equal_mass_membership(values: Tensor, bins: int) -> Tensor:
    """Share of each sample in each equal-mass bin, shape (n, bins); rows sum to one, columns to the bin's size.

    Equal values that straddle an edge are all split across it in the same proportion, whatever their order. Sizes
    differ by at most one, the larger ones first.
    """
    size, larger = divmod(len(values), bins)
    ranks = [number * size + min(number, larger) for number in range(bins + 1)]
    edges = torch.tensor(ranks, dtype=torch.float64, device=values.device)
    # Equal values share a range of ranks.
    _, group, counts = torch.unique(values, return_inverse=True, return_counts=True)
    ends = counts.cumsum(0).to(torch.float64)
    starts = torch.cat([ends.new_zeros(1), ends[:-1]])
    overlap = torch.minimum(ends[:, None], edges[1:]) - torch.maximum(starts[:, None], edges[:-1])
    shares: Tensor = overlap.clamp(min=0) / (ends - starts)[:, None]
    return shares[group]


def binned_sums(index: Tensor, values: Tensor, size: int) -> Tensor:
    """Sum of the values that share an index, shape (size,)."""
    return values.new_zeros(size).scatter_add_(0, index, values)
