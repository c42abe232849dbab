"""Time is calls and operations; cells are spread over machines as a greedy hand would."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.cost_model import NETWORKS, step_counts
from softmax_temperature.cost.cells import CellCost
from softmax_temperature.cost.rates import RATES, seconds, spread


def best(durations: list[float], machines: int) -> float:
    """The earliest end, of all ways to share."""
    ways = product(range(machines), repeat=len(durations))
    return min(
        max(sum(d for d, m in zip(durations, way, strict=True) if m == on) for on in range(machines)) for way in ways
    )


def test_time_by_hand() -> None:
    rate = RATES["cpu"]["network", "float32"]
    cost = CellCost(3 * rate.operations, 1000, "float32", None, 0, kept_bytes=2 * rate.kept)
    assert seconds(cost, "cpu") == pytest.approx(3 + 1000 * rate.call + 2)
    assert seconds(CellCost(None, 0, "float32", None, 0), "cpu") is None


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
def test_rates_of_a_core_are_those_that_the_benchmark_judged(project_root: Path, precision: str) -> None:
    results = json.loads((project_root / "benchmarks/results.json").read_text())["cpu"]["results"]
    measured, rate = results["cost_model"][precision], RATES["cpu"]["network", precision]
    foretold = {name: rate.seconds(*step_counts(name)) for name in NETWORKS}
    ratios = {name: foretold[name] / seconds for name, seconds in measured["step_seconds"].items()}
    assert ratios == pytest.approx(measured["plan_to_measured"])
    assert all(1 / 2.5 <= ratio <= 2.5 for ratio in ratios.values())


def test_every_kind_of_work_has_a_rate() -> None:
    for rates in RATES.values():
        assert set(rates) == set(product(("network", "product"), ("float32", "bfloat16")))


@given(st.lists(st.floats(0.1, 10), min_size=1, max_size=6), st.integers(1, 3))
def test_cells_are_shared_nearly_as_well_as_can_be(durations: list[float], machines: int) -> None:
    end = spread(durations, machines)
    assert max(sum(durations) / machines, *durations) <= end * (1 + 1e-9)
    assert end <= best(durations, machines) * (4 / 3 - 1 / (3 * machines)) * (1 + 1e-9)  # Graham 1969.


def test_more_machines_than_cells_wait_for_the_longest() -> None:
    assert spread([1.0, 5.0, 2.0], 64) == 5.0
    assert spread([], 8) == 0.0
