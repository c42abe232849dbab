"""Events, scales and kernel drift along gradient flows match the full kernel's."""

import math

import pytest
import torch

from softmax_temperature.early_learning import courses, flows
from softmax_temperature.early_learning.courses import TIME, Problem, Start, event_times
from softmax_temperature.early_learning.flows import (
    FIT,
    LEARNED,
    TENTH,
    UNIT,
    WHOLE,
    Settings,
    integrate,
)

from .conftest import make_network, make_problem

LAZY = 1e4
LOGITS = torch.tensor(
    [[0.0, math.log(3)], [1.0, 1.0], [40.0, -40.0]], dtype=torch.float64
)


def settings(start: Start, units: float = 300.0) -> Settings:
    scale = max(start.scales.unit_time, start.scales.logit_time)
    return Settings(start.scales.unit_time, units * scale, 1e-7, 20_000)


def start_with(
    problem: Problem, logit_norm: float, inverse_temperature: float = LAZY
) -> Start:
    return Start(
        problem,
        problem.correlation(logit_norm, inverse_temperature),
        inverse_temperature,
    )


def test_cross_entropy_by_hand() -> None:
    loss = flows.SoftmaxCrossEntropy(torch.tensor([0, 1, 1]), 2)
    expected = torch.tensor(
        [[0.75, -0.75], [-0.5, 0.5], [-1.0, 1.0]], dtype=torch.float64
    )
    torch.testing.assert_close(loss.residual(LOGITS), expected)
    torch.testing.assert_close(loss.residual(LOGITS[2:], slice(2, 3)), expected[2:])
    assert loss.mean(LOGITS) == pytest.approx((math.log(4) + math.log(2) + 80) / 3)


@pytest.mark.parametrize("probes", [None, 4])
def test_scales_equal_those_of_the_whole_kernel(probes: int) -> None:
    start = start_with(make_problem(probes=probes), 5.0, 10.0)
    speed = (
        (start.network.kernel(start.network.start) @ start.residual.flatten())
        .norm()
        .item()
    )
    assert start.scales == pytest.approx((5.0, 1 / speed, 5.0 / speed), rel=1e-4)


def test_initial_speeds_predict_event_times_which_are_constant_for_small_logits() -> (
    None
):
    problem = make_problem()
    times = {}
    for norm in (0.01, 0.1, 100.0, 1000.0):
        start = start_with(problem, norm)
        times[norm] = event_times(
            start.gradient_flow, problem.loss, settings(start, 10)
        )
        # If the initial norm is small, the logits' speed hardly changes while they move
        # by a tenth of that norm. If it is large, the first samples are corrected in
        # that time, which changes the speed.
        assert times[norm][TENTH] == pytest.approx(
            0.1 * start.scales.logit_time, rel=0.05 if norm < 1 else 0.5
        )
    assert times[0.1][UNIT] / times[0.01][UNIT] == pytest.approx(1, rel=0.02)
    assert times[0.1][TENTH] / times[0.01][TENTH] == pytest.approx(10, rel=0.02)
    for event in (TENTH, FIT):
        assert times[1000.0][event] / times[100.0][event] == pytest.approx(10, rel=0.1)


def test_each_event_happens_when_the_logits_or_the_loss_reach_its_threshold() -> None:
    problem = make_problem()
    start = start_with(problem, 0.5, 3.0)
    flow = start.gradient_flow
    course = integrate(
        flow, problem.loss, settings(start), observe=lambda _, state: flow.logits(state)
    )
    assert course.ending == "complete"
    norm = start.logits.norm().item()
    first = problem.loss.mean(start.logits)
    changes = [
        (course.crossings[name][1] - start.logits).norm().item()
        for name in (TENTH, WHOLE, UNIT)
    ]
    losses = [problem.loss.mean(course.crossings[name][1]) for name in (FIT, LEARNED)]
    assert changes + losses == pytest.approx(
        [0.1 * norm, norm, 1.0, first / 2, first / 10], rel=1e-6
    )
    times = [course.crossings[name][0] for name in (TENTH, WHOLE, UNIT, FIT, LEARNED)]
    assert times == sorted(times)


@pytest.mark.parametrize("probes", [None, 6])
def test_drift_equals_that_of_the_kernel_and_is_inverse_to_the_temperature(
    probes: int,
) -> None:
    problem = make_problem(probes=probes)
    drifts = []
    for inverse_temperature in (100.0, 1000.0):
        start = Start(problem, 1.0, inverse_temperature)
        times = [0.25 * start.scales.unit_time, 0.5 * start.scales.unit_time]
        course, _ = courses.course(
            start, settings(start), times, kernel_times=times[1:], linearised={}
        )
        first, early = [row for row in course["rows"] if row["moment"] == TIME]
        [unit] = [row for row in course["rows"] if row["moment"] == UNIT]
        flow = start.gradient_flow
        integrated = integrate(
            flow,
            problem.loss,
            settings(start),
            observe=lambda _, state, flow=flow: flow.parameters(state),
        )
        before = start.network.kernel(start.network.start)
        after = start.network.kernel(integrated.crossings[UNIT][1])
        expected = ((after - before).norm() / before.norm()).item()
        assert unit["drift"] == pytest.approx(
            expected, rel=1e-6, abs=4 * unit["drift_error"]
        )
        assert unit["change"] == pytest.approx(1, rel=1e-6)
        assert early["drift"] == pytest.approx(
            start.drift_rate() * times[1] / inverse_temperature, rel=0.3
        )
        assert first["drift"] is None
        drifts.append(unit["drift"])
    assert drifts[0] / drifts[1] == pytest.approx(10, rel=0.05)


def test_networks_with_kinks_are_not_smooth() -> None:
    names = ("mlp", "mlp-relu", "convnet", "vgg", "wide-resnet")
    assert [name for name in names if courses.is_smooth(make_network(name))] == [
        "mlp",
        "convnet",
    ]


def test_the_linearised_course_has_the_same_rows() -> None:
    problem = make_problem()
    start = Start(problem, 1.0, 1.0)
    times = [start.scales.unit_time * place for place in (0.5, 2.0)]
    course, seen = courses.course(start, settings(start), times)
    real, _ = courses.course(
        Start(problem, 1.0, LAZY), settings(start), times, linearised=seen
    )
    for linearised, row in zip(course["rows"], real["rows"], strict=True):
        assert list(linearised) == list(row)
        assert linearised["moment"] == row["moment"]
        for name in ("time", "loss", "change"):
            assert linearised[name] == pytest.approx(row[name], rel=1e-3)
    at_times = [row for row in real["rows"] if row["moment"] == TIME]
    assert [row["time"] for row in at_times] == times
    assert all(0 < row["distance"] < 1e-3 for row in at_times)
    # Logits that start at 0 have norm 0, so there are no events relative to the norm.
    assert {row["moment"] for row in real["rows"]} == {TIME, UNIT, FIT, LEARNED}
