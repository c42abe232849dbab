"""Brent's method returns scipy's numbers."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy.optimize import brentq

from softmax_temperature.metrics.roots import brent_root

Function = Callable[[float, float, float], float]


@pytest.mark.parametrize(
    "function",
    [
        lambda x, slope, root: slope * (x - root),
        lambda x, slope, root: math.tanh(slope * (x - root)),
        lambda x, slope, root: slope * (x - root) ** 3,
        lambda x, slope, root: math.exp(slope * x) - math.exp(slope * root),
        lambda x, slope, root: -slope if x < root else slope,
        lambda x, slope, root: math.copysign(slope * abs(x - root) ** 0.2, root - x),
    ],
)
def test_a_root_equals_scipys_to_the_last_bit(function: Function) -> None:
    generator = np.random.default_rng(0)
    for step in range(200):
        slope = float(10 ** generator.uniform(-3, 1)) * (1e-250 if step % 4 else 1)
        root = float(generator.normal())
        low, high = root + np.array([-1, 1]) * 10 ** generator.uniform(-5, 1, 2)
        tolerance = (2e-12, 1e-8, 1e-3)[step % 3]
        ends = (float(low), float(high))
        found = brent_root(function, *ends, slope, root, tolerance=tolerance)
        assert found == brentq(
            function, *ends, args=(slope, root), xtol=tolerance, disp=False
        )


def test_a_root_at_an_end_is_found_and_equal_signs_are_refused() -> None:
    assert brent_root(lambda x: x - 1, 1.0, 5.0) == 1.0
    assert brent_root(lambda x: x - 5, 1.0, 5.0) == 5.0
    with pytest.raises(ValueError, match="different signs at 1 and 2, got 1 and 2"):
        brent_root(lambda x: x, 1.0, 2.0)
