"""The section `temperature_check.early_learning`: its times and its cells."""

from pathlib import Path

import pytest

from softmax_temperature.params import read_params, validate
from softmax_temperature.params.temperature_check import Curves
from softmax_temperature.stages import early_learning

MINI = read_params(Path(__file__).parents[2] / "params.yaml")


def test_times_are_evenly_spaced_on_a_log_axis() -> None:
    curves = Curves(inverse_temperatures=[0.1, 1.0], first=0.1, last=10.0, points=3, stride=2)
    assert curves.times == pytest.approx([0.1, 1.0, 10.0])


def test_every_network_has_its_number_of_seeds_and_two_questions_and_no_section_has_none() -> None:
    content = MINI.model_dump()
    content["temperature_check"]["early_learning"]["networks"] = {"wrn-tiny-unnormalised": 2}
    names = [cell.name for cell in early_learning.cells(validate(content, where="some"))]
    assert names == [f"wrn-tiny-unnormalised/{part}/{seed}" for part in ("curves", "norms") for seed in (0, 1)]
    content["temperature_check"]["early_learning"] = None
    assert early_learning.cells(validate(content, where="none")) == []
