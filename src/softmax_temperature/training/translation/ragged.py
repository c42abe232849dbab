"""Rows of different lengths in one flat tensor."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import torch
from torch import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Ragged:
    """n rows of numbers, one behind the other.

    Attributes:
        values: (total,) int32.
        ends: (n,) int64, where each row ends.
    """

    values: Tensor
    ends: Tensor

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Ragged:
        """These rows, on the CPU."""
        lengths = torch.tensor([len(row) for row in rows], dtype=torch.int64)
        return cls(torch.tensor(list(chain.from_iterable(rows)), dtype=torch.int32), lengths.cumsum(0))

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def lengths(self) -> Tensor:
        """(n,) int64."""
        return self.ends.diff(prepend=self.ends.new_zeros(1))

    def to(self, device: str) -> Ragged:
        """The same on another device."""
        return Ragged(self.values.to(device), self.ends.to(device))

    def kept(self, rows: Tensor) -> Ragged:
        """The rows for which (n,) is true."""
        lengths = self.lengths
        return Ragged(self.values[rows.repeat_interleave(lengths)], lengths[rows].cumsum(0))

    def padded(self, rows: Tensor, *, padding: int, length: int | None = None) -> Tensor:
        """Some rows as a table: (b, length) int64, with `padding` on the right.

        Args:
            rows: (b,) which, b at least 1.
            padding: what follows a row's last number.
            length: of the table, not below that of any of these rows; None for the longest one.
        """
        lengths = self.lengths[rows, None]
        columns = torch.arange(int(lengths.max()) if length is None else length, device=rows.device)
        places = (self.ends[rows, None] - lengths + columns).clamp(max=len(self.values) - 1)
        return torch.where(columns < lengths, self.values[places].long(), padding)
