"""Factors of runs come from a profile's values, not from the names in it."""

import pytest

from softmax_temperature.papers.shared.display import architecture_label
from softmax_temperature.papers.temperature_check.collect import (
    declared_runs,
    start_factors,
)
from tests.pipeline.whole_runs import changed
from tests.profiles import profile


def test_a_sweep_that_is_called_gru_is_what_it_trains() -> None:
    mini = profile("mini")
    sweep = mini.temperature_check.sweeps["gru"].model_dump()
    mislabelled = {**sweep, "network": "wrn-tiny", "dataset": "digits", "recipe": {}}
    params = changed(
        mini,
        {
            "temperature_check/sweeps": {"gru": mislabelled},
            "temperature_check/early_learning": None,
        },
    )
    runs = list(declared_runs(params))
    assert {run.factors["architecture"] for run in runs} == {"wide_resnet"}
    label = architecture_label(runs[0].factors)
    assert label == "Wide-ResNet with batch norm"


@pytest.mark.parametrize(
    ("start", "factors"),
    [
        ("plain", ("none", "own", None, None)),
        ("cooled", ("last_layer", "own", None, None)),
        ("norm-0", ("none", "norm", 0.0, None)),
        ("pair-0.9", ("none", "pair", None, 0.9)),
    ],
)
def test_a_start_has_its_factors(start: str, factors: tuple[object, ...]) -> None:
    assert tuple(start_factors(start).values()) == factors
