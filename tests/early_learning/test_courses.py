"""Events, scales and drift along the flows of small networks."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import nn

from softmax_temperature.early_learning.courses import (
    drift_rate,
    event_times,
    is_smooth,
    linearised_course,
    real_course,
)
from softmax_temperature.early_learning.flows import FIT, LEARNED, TENTH, UNIT, Settings, follow
from softmax_temperature.early_learning.problem import Problem, SoftmaxCrossEntropy, Start

MakeProblem = Callable[..., Problem]
LAZY = 1e4


def settings(start: Start, units: float = 300.0) -> Settings:
    scale = max(start.scales.unit_time, start.scales.logit_time)
    return Settings(start.scales.unit_time, units * scale, 1e-7, 20_000)


def start_with(problem: Problem, logit_norm: float, inverse_temperature: float = LAZY) -> Start:
    return problem.start(problem.correlation(logit_norm, inverse_temperature), inverse_temperature)


LOGITS = torch.tensor([[0.0, math.log(3)], [1.0, 1.0], [40.0, -40.0]], dtype=torch.float64)


def test_cross_entropy_by_hand() -> None:
    loss = SoftmaxCrossEntropy(torch.tensor([0, 1, 1]), 2)
    expected = torch.tensor([[0.75, -0.75], [-0.5, 0.5], [-1.0, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(loss.residual(LOGITS), expected)
    torch.testing.assert_close(loss.residual(LOGITS[2:], slice(2, 3)), expected[2:])
    assert loss.mean(LOGITS) == pytest.approx((math.log(4) + math.log(2) + 80) / 3)
    with pytest.raises(ValueError, match=r"labels must be in \[0, 2\), got 2"):
        SoftmaxCrossEntropy(torch.tensor([0, 2]), 2)


def test_scales_are_those_of_the_whole_kernel(make_problem: MakeProblem) -> None:
    problem = make_problem()
    for probes in (None, 4):
        start = start_with(make_problem(probes=probes), 5.0, 10.0)
        speed = (start.network.kernel(start.network.start) @ problem.loss.residual(start.logits).flatten()).norm()
        assert start.scales.unit_time == pytest.approx(1 / speed.item())
        assert start.scales.logit_norm == pytest.approx(5.0, rel=1e-4)
        assert start.scales.logit_time == pytest.approx(5.0 / speed.item(), rel=1e-4)


def test_logits_of_zero_have_no_change_by_their_own_norm(make_problem: MakeProblem) -> None:
    problem = make_problem()
    start = problem.start(1.0, LAZY)
    assert set(event_times(start.gradient_flow(), problem.loss, settings(start))) - {"ending", "evaluations"} == {
        UNIT,
        FIT,
        LEARNED,
    }


def test_first_speeds_predict_times_which_are_constant_for_small_logits(make_problem: MakeProblem) -> None:
    problem = make_problem()
    times = {}
    for norm in (0.01, 0.1, 100.0, 1000.0):
        start = start_with(problem, norm)
        times[norm] = event_times(start.gradient_flow(), problem.loss, settings(start, 10))
        # A tenth of a small norm changes the first speed by little; of a large one, it corrects the first samples.
        assert times[norm][TENTH] == pytest.approx(0.1 * start.scales.logit_time, rel=0.05 if norm < 1 else 0.5)
    assert times[0.1][UNIT] / times[0.01][UNIT] == pytest.approx(1, rel=0.02)
    assert times[0.1][TENTH] / times[0.01][TENTH] == pytest.approx(10, rel=0.02)
    assert times[1000.0][TENTH] / times[100.0][TENTH] == pytest.approx(10, rel=0.1)
    assert times[1000.0][FIT] / times[100.0][FIT] == pytest.approx(10, rel=0.1)


@pytest.mark.parametrize("probes", [None, 6])
def test_drift_is_that_of_the_kernel_and_inverse_to_the_temperature(make_problem: MakeProblem, probes: int) -> None:
    problem = make_problem(probes=probes)
    start = problem.start(1.0, 1.0)
    times = [start.scales.unit_time * place for place in (0.25, 0.5, 1.0)]
    drifts = []
    for inverse_temperature in (100.0, 1000.0):
        own = problem.start(1.0, inverse_temperature)
        course = real_course(problem, own, settings(start), times, kernel_times=times[1:], linearised={})
        rows = {(row["moment"], row["time"]): row for row in course["rows"]}
        assert rows["time", times[0]]["drift"] is None
        flow = own.gradient_flow()
        seen = follow(flow, problem.loss, settings(start), observe=lambda _, state, at=flow: at.parameters(state))
        parameters = seen.crossings[UNIT][1]
        kernels = [own.network.kernel(at) for at in (parameters, own.network.start)]
        (unit,) = [row for row in course["rows"] if row["moment"] == UNIT]
        expected = ((kernels[0] - kernels[1]).norm() / kernels[1].norm()).item()
        error = 4 * unit["drift_error"]
        assert unit["drift"] == pytest.approx(expected, rel=1e-6, abs=error)
        assert unit["change"] == pytest.approx(1, rel=1e-6)
        drifts.append(unit["drift"])
        rate = drift_rate(own.network, problem.sketch, own.residual, start.scales.unit_time)
        early = rows["time", times[1]]["drift"]
        assert early == pytest.approx(rate * times[1] / inverse_temperature, rel=0.3)
    assert drifts[0] / drifts[1] == pytest.approx(10, rel=0.05)


def test_the_linearised_course_has_the_same_rows(make_problem: MakeProblem) -> None:
    problem = make_problem()
    start = problem.start(1.0, 1.0)
    times = [start.scales.unit_time * place for place in (0.5, 2.0)]
    course, seen = linearised_course(problem, start, settings(start), times)
    lazy = problem.start(1.0, LAZY)
    real = real_course(problem, lazy, settings(start), times, kernel_times=[], linearised=seen)
    assert [row["moment"] for row in course["rows"]] == [row["moment"] for row in real["rows"]]
    for some, other in zip(course["rows"], real["rows"], strict=True):
        assert some.keys() == other.keys()
        assert [some[name] for name in ("time", "loss", "change")] == pytest.approx(
            [other[name] for name in ("time", "loss", "change")], rel=1e-3
        )
    at_times = [row for row in real["rows"] if row["moment"] == "time"]
    assert all(0 < row["distance"] < 1e-3 for row in at_times)
    assert {time for time, row in zip(times, at_times, strict=True) if row["time"] == time} == set(times)


def test_a_course_of_a_network_that_changes_much_is_recorded(make_problem: MakeProblem) -> None:
    problem = make_problem()
    start = problem.start(1.0, 0.01)
    short = Settings(start.scales.unit_time, 1e3 * start.scales.unit_time, 1e-4, 60)
    course = real_course(problem, start, short, [1e3 * start.scales.unit_time], kernel_times=[], linearised={})
    assert course["ending"] == "evaluations"
    assert course["evaluations"] >= 60
    assert all(np.isfinite(row["drift"]) for row in course["rows"] if row["moment"] != "time")


@pytest.mark.parametrize(
    ("name", "smooth"), [("mlp", True), ("mlp-relu", False), ("convnet", True), ("vgg", False), ("wide-resnet", False)]
)
def test_networks_with_kinks_are_not_smooth(make_network: Callable[..., nn.Module], name: str, *, smooth: bool) -> None:
    assert is_smooth(make_network(name)) == smooth
