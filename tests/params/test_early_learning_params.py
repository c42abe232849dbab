"""The section `temperature_check.early_learning`: grids that ascend, names that exist, and nothing at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.params import Params, validate
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages import early_learning
from softmax_temperature.tools.profiles import render_profile

PROFILES = Path(__file__).parents[2] / "profiles"
SECTION: dict[str, Any] = {
    "dataset": "digits",
    "images": 8,
    "networks": {"wrn-tiny-unnormalised": 2},
    "probes": 4,
    "chunk": 8,
    "tolerance": 1e-4,
    "evaluations": 100,
    "curves": {"inverse_temperatures": [0.1, 1.0, 10.0], "first": 0.1, "last": 10.0, "points": 3, "stride": 2},
    "norms": {"inverse_temperature": 100.0, "logit_norms": [0.1, 1.0, 10.0], "horizon": 30.0},
}


@pytest.fixture(scope="module")
def mini() -> Params:
    _, params = render_profile("mini", PROFILES)
    return params


def edited(mini: Params, section: Any) -> Params:
    content = mini.model_dump()
    content["temperature_check"]["early_learning"] = section
    return validate(content, where="params.yaml")


def curves(**values: Any) -> dict[str, Any]:
    return {"curves": SECTION["curves"] | values}


def norms(**values: Any) -> dict[str, Any]:
    return {"norms": SECTION["norms"] | values}


def test_times_are_evenly_spaced_on_a_log_axis(mini: Params) -> None:
    section = edited(mini, SECTION).temperature_check.early_learning
    assert section is not None
    assert section.curves.times == pytest.approx([0.1, 1.0, 10.0])


def test_a_section_that_is_left_out_has_no_cells(mini: Params) -> None:
    params = edited(mini, None)
    assert params.temperature_check.early_learning is None
    assert early_learning.cells(params) == []
    assert early_learning.courses(None) == []


def test_every_network_has_its_number_of_seeds_and_two_questions(mini: Params) -> None:
    names = [cell.name for cell in early_learning.cells(edited(mini, SECTION))]
    assert names == [f"wrn-tiny-unnormalised/{part}/{seed}" for part in ("curves", "norms") for seed in (0, 1)]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"dataset": "digit"}, r"early_learning\.dataset: unknown name 'digit'.*'digits'"),
        (
            {"networks": {"wrn-tiny-unnormalized": 1}},
            r"early_learning\.networks: unknown name 'wrn-tiny-unnormalized'.*'wrn-tiny-unnormalised'",
        ),
        ({"probs": 4}, r"early_learning\.probs: unknown parameter.*'probes'"),
        (curves(inverse_temperatures=[1.0, 0.1]), r"curves\.inverse_temperatures: must ascend"),
        (curves(last=0.1), r"curves: last: 0\.1, must be above first, 0\.1"),
        (curves(stried=1), r"curves\.stried: unknown parameter.*'stride'"),
        (norms(logit_norms=[1.0, 0.5, 2.0]), r"norms\.logit_norms: must ascend"),
    ],
)
def test_what_is_wrong_is_named(mini: Params, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        edited(mini, SECTION | changes)
