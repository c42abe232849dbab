from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from softmax_temperature.early_learning.flows import Settings, State, integrate


def settings(**changes: Any) -> Settings:
    values = {"unit_time": 1.0, "horizon": 20.0, "tolerance": 1e-9, "evaluations": 10_000} | changes
    return Settings(**values)


def rate(state: State) -> State:
    """From 0 towards 1 and 2, by hand: 1 - exp(-s) and 2 - 2 exp(-s/2)."""
    return np.array([1.0, 0.5]) * (np.array([1.0, 2.0]) - state)


def levels(state: State) -> dict[str, float]:
    return {"half": state[0] - 0.5, "most": state[1] - 1.8, "never": state[0] - 2, "at once": state[0]}


def keep(time: float, state: State) -> tuple[float, list[float]]:
    return time, state.tolist()


def test_times_and_events_of_an_exponential() -> None:
    course = integrate(rate, 2, settings(), times=[0.001, 1.0, 3.0], levels=levels, observe=keep)
    assert [time for time, _ in course.moments] == [0.001, 1.0, 3.0]
    for time, seen in course.moments:
        assert seen[0] == time
        assert seen[1] == pytest.approx([1 - math.exp(-time), 2 - 2 * math.exp(-time / 2)], abs=1e-7)
    # What is never crossed is left out, and what is 0 at the start has no event.
    assert course.crossings.keys() == {"half", "most"}
    for name, time in (("half", math.log(2)), ("most", 2 * math.log(10))):
        assert course.crossings[name][0] == pytest.approx(time, rel=1e-7)
        assert course.crossings[name][1][0] == course.crossings[name][0]
    assert course.ending == "horizon"


def test_it_ends_when_all_was_seen() -> None:
    calls = []

    def counted(state: State) -> State:
        calls.append(state)
        return rate(state)

    course = integrate(counted, 2, settings(horizon=1e6), levels=lambda state: {"half": state[0] - 0.5}, observe=keep)
    assert course.ending == "complete"
    assert len(calls) < 400
    last = integrate(counted, 2, settings(), times=[15.0], levels=levels, last="half", observe=keep)
    assert (last.ending, last.moments, list(last.crossings)) == ("complete", [], ["half"])
    nothing = integrate(rate, 2, settings(), observe=keep)
    assert (nothing.ending, nothing.moments, nothing.crossings) == ("complete", [], {})


def test_it_ends_at_its_limits() -> None:
    course = integrate(rate, 2, settings(evaluations=30), times=[0.001, 15.0], observe=keep)
    assert course.ending == "evaluations"
    assert 30 <= course.evaluations < 50
    assert len(course.moments) == 1
    course = integrate(rate, 2, settings(horizon=2.0), times=[1.0, 2.0, 2.1], observe=keep)
    assert course.ending == "horizon"
    assert [time for time, _ in course.moments] == [1.0, 2.0]


def test_what_runs_away_ends_the_course_and_not_the_program() -> None:
    def explode(state: State) -> State:
        """1 / (1 - s), which has no value at 1."""
        return (1 + state) ** 2

    course = integrate(explode, 1, settings(), times=[0.5, 2.0], observe=keep)
    assert course.ending in {"failed", "evaluations"}
    assert course.moments[0][1][1] == pytest.approx([1.0], rel=1e-6)
    assert len(course.moments) == 1
    lost = integrate(lambda state: state + np.where(state > 0.5, np.nan, 1.0), 1, settings(), times=[9.0], observe=keep)
    assert lost.ending == "failed"


@pytest.mark.parametrize("unit", [1e-8, 1e8])
@pytest.mark.parametrize("size", [1e-9, 1e9])
def test_units_of_time_and_state_change_nothing(unit: float, size: float) -> None:
    plain = integrate(rate, 2, settings(tolerance=1e-5), times=[1.0], levels=levels, observe=keep)
    scaled = integrate(
        lambda state: size / unit * rate(state / size),
        2,
        settings(unit_time=unit, horizon=20 * unit, tolerance=1e-5),
        times=[unit],
        levels=lambda state: levels(state / size),
        observe=keep,
    )
    assert scaled.evaluations == plain.evaluations
    for name in plain.crossings:
        assert scaled.crossings[name][0] / unit == pytest.approx(plain.crossings[name][0], rel=1e-9)
    assert np.array(scaled.moments[0][1][1]) / size == pytest.approx(plain.moments[0][1][1], rel=1e-9)
