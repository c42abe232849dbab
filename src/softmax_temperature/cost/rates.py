"""From operations to time: how fast a machine is, and how cells share several of its kind."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from softmax_temperature.cost.cells import CellCost

Device = Literal["cpu", "cuda"]


@dataclass(frozen=True)
class Rate:
    """How fast a machine does one kind of work.

    Attributes:
        call: seconds that an operator costs whatever its size: its start, and what it does to few numbers.
        operations: floating-point operations a second.
        kept: bytes a second of what is kept between forward and backward pass, counted in float32; they are written
            and read several times on their way.
    """

    call: float
    operations: float
    kept: float

    def seconds(self, calls: float, operations: float, kept_bytes: float) -> float:
        """How long work takes that consists of so many of each."""
        return calls * self.call + operations / self.operations + kept_bytes / self.kept


Work = Literal["network", "product"]
"""A network on images; or matrix products of the size of the temperature grid's."""

RATES: dict[Device, dict[tuple[Work, str], Rate]] = {
    # One core, fitted by the benchmark `cost_model`, which judges them since, and measured by `temperature_grid`.
    "cpu": {
        ("network", "float32"): Rate(5.2e-5, 1.5e11, 2.3e9),
        ("network", "bfloat16"): Rate(5.6e-5, 3.5e11, 2.5e9),
        ("product", "float32"): Rate(5.2e-5, 1.6e11, 2.3e9),
        ("product", "bfloat16"): Rate(5.6e-5, 3.1e11, 2.5e9),
    },
    # One GPU, not measured. To start a kernel takes about 6 microseconds. Of an H100's peak (989e12 operations a second
    # in bfloat16, 67e12 in float32, 3.35e12 bytes) networks on small images are given a fifth, a third and a tenth,
    # products half.
    "cuda": {
        ("network", "float32"): Rate(6e-6, 2.2e13, 3.3e11),
        ("network", "bfloat16"): Rate(6e-6, 2.0e14, 6.7e11),
        ("product", "float32"): Rate(6e-6, 3.3e13, 3.3e11),
        ("product", "bfloat16"): Rate(6e-6, 4.9e14, 6.7e11),
    },
}
"""By device, kind of work and precision."""


def seconds(cost: CellCost, device: Device) -> float | None:
    """How long a cell will take; None where that is not modelled."""
    if cost.operations is None:
        return None
    rate = RATES[device][cost.work, cost.precision]
    return rate.seconds(cost.calls, cost.operations, cost.kept_bytes)


def spread(durations: Iterable[float], machines: int) -> float:
    """When the last of some cells ends that several equal machines share, the longest ones first.

    Args:
        durations: of the cells.
        machines: how many; each does one cell at a time.
    """
    ends = [0.0] * machines
    for duration in sorted(durations, reverse=True):
        heapq.heapreplace(ends, ends[0] + duration)
    return max(ends)
