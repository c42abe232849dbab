"""The runner of the benchmarks judges promises and never mixes results of different machines."""

from __future__ import annotations

import pytest

from benchmarks.__main__ import BENCHMARKS, PROMISES, Promise, merged

HERE, OTHER = {"processor": "a"}, {"processor": "b"}
LIBRARIES = {"torch": "2"}


@pytest.mark.parametrize(
    ("promise", "measured", "met"),
    [
        (Promise("ratio", 2.5, at_least=True), 2.5, True),
        (Promise("ratio", 2.5, at_least=True), 2.4, False),
        (Promise("seconds", 1.5, at_least=False), 1.5, True),
        (Promise("seconds", 1.5, at_least=False), 1.6, False),
    ],
)
def test_a_promise_is_a_bound(promise: Promise, measured: float, met: bool) -> None:
    verdict = promise.judge({promise.number: measured})
    assert verdict["met"] is met
    assert verdict["measured"] == measured


def test_results_of_one_machine_gather() -> None:
    first = merged({}, "cpu", HERE, LIBRARIES, {"grid": {"ratio": 3}})
    both = merged(first, "cpu", HERE, LIBRARIES, {"statistics": {"ratio": 11}})
    assert both["cpu"]["results"] == {"grid": {"ratio": 3}, "statistics": {"ratio": 11}}


def test_another_machine_or_version_starts_anew_and_leaves_the_other_section() -> None:
    old = merged({"gpu": {"results": {}}}, "cpu", HERE, LIBRARIES, {"grid": {"ratio": 3}})
    for machine, libraries in ((OTHER, LIBRARIES), (HERE, {"torch": "3"})):
        new = merged(old, "cpu", machine, libraries, {"statistics": {"ratio": 11}})
        assert new["cpu"]["results"] == {"statistics": {"ratio": 11}}
        assert new["gpu"] == {"results": {}}


def test_every_benchmark_has_a_promise() -> None:
    assert set(PROMISES) == set(BENCHMARKS)
