"""Factors of runs come from a profile's values, not from the names in it."""

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from softmax_temperature.papers.shared.display import architecture_label
from softmax_temperature.papers.temperature_check.collect import (
    _evaluation,
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


def test_the_post_hoc_temperature_divides_the_tempered_logits() -> None:
    generator = torch.Generator().manual_seed(0)
    tensors = {}
    for split in ("validation", "test"):
        logits = torch.randn(300, 3, generator=generator)
        drawn = torch.softmax(logits / 2, dim=1).multinomial(1, generator=generator)
        tensors[f"{split}.logits"] = logits
        tensors[f"{split}.labels"] = drawn.squeeze(1)
    artifact: Any = SimpleNamespace(tensors=lambda _: tensors)
    *_, plain = _evaluation(artifact, 1.0)
    *_, tempered = _evaluation(artifact, 8.0)
    assert tempered["temperature"] == pytest.approx(8 * plain["temperature"])
    assert tempered["nll"] == pytest.approx(plain["nll"])
    assert plain["temperature"] > 1.5, "the labels were drawn at temperature 2"
