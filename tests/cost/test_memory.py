"""The memory that a training step is foretold to need is what PyTorch's own tracker counts, tensor by tensor."""

from __future__ import annotations

import pytest

from benchmarks.cost_model import NETWORKS, memory_of_a_step
from benchmarks.precision import Precision

PRECISIONS: tuple[Precision, ...] = ("float32", "bfloat16")
BOTH = [(name, precision) for name in NETWORKS for precision in PRECISIONS]
SLOW = ("ResNet-50", "bfloat16")
"""A minute on an old processor; `make bench` has it."""


@pytest.mark.parametrize(("name", "precision"), [pair for pair in BOTH if pair != SLOW])
def test_memory_is_foretold_within_a_sixth(name: str, precision: Precision) -> None:
    foretold, counted = memory_of_a_step(name, precision)
    assert foretold == pytest.approx(counted, rel=1 / 6)
