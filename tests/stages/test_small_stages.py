"""Cases that tests/pipeline does not reach: rates, dead networks and a linear model."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from softmax_temperature.data.logits import Logits
from softmax_temperature.networks.layers import last_layer_inputs
from softmax_temperature.networks.registry import build_network
from softmax_temperature.params import read_params
from softmax_temperature.params.focal import LinearTraining
from softmax_temperature.params.network import Network
from softmax_temperature.runner.cells import Job
from softmax_temperature.stages import (
    focal_appendices,
    focal_evaluation,
    temperature_check,
)
from softmax_temperature.stages.focal_appendices import TENSORS
from softmax_temperature.stages.temperature_check import (
    confirm,
    optimizer_rate,
    plan_of,
)
from tests.conftest import ROOT


def tried(right: int | None) -> Any:
    """The artifact of a run that predicts `right` of four samples correctly.

    If `right` is None, the run diverged.
    """
    logits = torch.eye(2)[[0] * (right or 0) + [1] * (4 - (right or 0))]
    tensors = {
        "validation.logits": logits,
        "validation.labels": torch.zeros(4, dtype=torch.int64),
    }
    record = {"diverged": right is None, "classes": 2}
    return SimpleNamespace(json=lambda _: record, tensors=lambda _: tensors)


@pytest.mark.parametrize(
    ("found", "best"),
    [
        ({"0.1/0": 3, "0.1/1": 1, "1/0": 4, "1/1": 2, "10/0": 4, "10/1": None}, 1.0),
        (
            {"1/0": 2, "0.1/0": 2, "10/0": None},
            0.1,
        ),  # Chance level counts as divergence; of equally good rates, the lowest wins.
    ],
)
def test_the_rate_of_the_highest_mean_accuracy_is_chosen_and_rescaled(
    found: dict[str, int | None],
    best: float,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given: list[dict[str, Any]] = []
    monkeypatch.setattr(
        temperature_check, "train", lambda _, **plan: given.append(plan)
    )
    plan = plan_of(read_params(ROOT / "params.yaml"), "wrn", 0.1, "plain", 7)
    inputs = {"data": None} | {name: tried(right) for name, right in found.items()}
    job: Any = SimpleNamespace(inputs=inputs, output=tmp_path)
    rates = {"10": 10.0, "0.1": 0.1, "1": 1.0}
    confirm(job, rates=rates, **plan)
    assert json.loads((tmp_path / "choice.json").read_text()) == {"learning_rate": best}
    assert given == [{"learning_rate": best, **plan}]
    assert optimizer_rate(best, plan["inverse_temperature"]) == pytest.approx(
        best / 0.1**2
    )


def test_a_network_whose_units_are_all_dead_is_not_described() -> None:
    """Large learning rates have this effect: features are 0, but logits stay finite."""
    spec = Network(
        architecture="wide_resnet",
        arguments={"depth": 8, "width": 1, "batch_norm": False},
    )
    network = build_network(spec, classes=2, seed=0)
    images = torch.randn(8, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    sample: Any = SimpleNamespace(inputs=images, labels=torch.arange(8) % 2)
    trainer: Any = SimpleNamespace(
        outputs=lambda inputs: [last_layer_inputs(network.eval(), inputs)]
    )
    with torch.no_grad():
        assert temperature_check._statistics(trainer, sample)["dim"] == 64  # type: ignore[index]
        for parameter in network.parameters():
            parameter.zero_()
        assert temperature_check._statistics(trainer, sample) is None


def test_focal_loss_errs_less_confidently_than_cross_entropy_on_the_same_line(
    tmp_path: Path,
) -> None:
    task, found = LinearTraining(train=400, test=200, epochs=150, lr=0.3), []
    for name, gamma in {"CE": 0.0, "FL-1": 1.0, "FL-3": 3.0}.items():
        (folder := tmp_path / name).mkdir()
        job = Job(0, {}, folder, folder, "cpu", 0)
        focal_appendices._fit_line(job, task=task, gamma=gamma, data_seed=0)
        found.append(load_file(folder / TENSORS))
    for tensors in found:
        assert tensors["weight_norm"].shape == tensors["logit_norm"].shape == (150,)
        assert tensors["weight_norm"][-1].item() == pytest.approx(
            tensors["weights"].norm().item()
        )
        scores = tensors["test_points"] @ tensors["weights"]
        assert tensors["logit_norm"][-1].item() == pytest.approx(
            scores.abs().mean().item()
        )
        wrong = (scores > 0).long() != tensors["test_labels"]
        torch.testing.assert_close(
            tensors["misclassified_confidence"], torch.sigmoid(scores[wrong].abs())
        )
    plain, one, three = found
    for column in ("weight_norm", "logit_norm"):
        assert plain[column][-1] > 1.5 * one[column][-1] > 2 * three[column][-1]
    means = [tensors["misclassified_confidence"].mean().item() for tensors in found]
    assert means == sorted(means, reverse=True)
    directions = [tensors["weights"] / tensors["weights"].norm() for tensors in found]
    assert min((directions[0] @ other).item() for other in directions[1:]) > 0.99


def test_a_prediction_is_confident_above_99_percent() -> None:
    # The predictions are classes 0, 1, 0 and 1; the last one is wrong.
    probs = torch.tensor([0.991, 0.995, 0.989, 0.9901], dtype=torch.float64)
    margins = torch.logit(probs) * torch.tensor([-1, 1, -1, 1])
    values = torch.stack([torch.zeros(4), margins], dim=1)
    test = Logits("test", values, torch.tensor([0, 1, 0, 0]))
    row = focal_evaluation._test_row({"test": test}, {"bootstrap": 19, "seed": 0})
    assert row["confident_share"] == 0.75
    assert row["confident_accuracy"] == pytest.approx(2 / 3)
