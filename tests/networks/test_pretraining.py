"""Pretraining: learns, resumes bit for bit, and depends on nothing but its seed and parameters."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from softmax_temperature.networks.backbones.loading import load_backbone
from softmax_temperature.networks.backbones.networks import build_classifier
from softmax_temperature.networks.backbones.preprocessing import Preprocess
from softmax_temperature.networks.backbones.pretraining import Pretraining
from softmax_temperature.params import Pretrain
from softmax_temperature.params.backbone import Backbone
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.checkpoints import load_checkpoint, save_checkpoint
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.stages import pretrain

PREPROCESS = Preprocess(8, 8, "bilinear", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
RECIPE = {"epochs": 3, "batch_size": 16, "lr": 0.1, "momentum": 0.9, "weight_decay": 0.0005}


def backbone(**changes: Any) -> Backbone:
    tiny = {"channels": [4, 8, 8, 16], "stem_width": 4}
    network = {"library": "timm", "architecture": "resnet10t", "arguments": tiny, "embedding": 16}
    grey = {"input_size": 32, "mean": [0.2, 0.2, 0.2], "std": [0.2, 0.2, 0.2]}
    return Backbone.model_validate({"weights": "pretrain", **network, **grey, **changes})


# ---- the training


def stripes(count: int = 64) -> tuple[Tensor, Tensor]:
    """Bright upper or left halves, with noise."""
    labels = torch.arange(count) % 2
    images = torch.randint(0, 120, (count, 1, 8, 8), generator=torch.Generator().manual_seed(0))
    images[labels == 0, :, :4] += 60
    images[labels == 1, :, :, :4] += 60
    return images.to(torch.uint8), labels


def new_training(**changes: Any) -> Pretraining:
    torch.manual_seed(0)
    network = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    return Pretraining(network, PREPROCESS, *stripes(), **({**RECIPE, "seed": 1, "device": "cpu"} | changes))


def test_a_training_learns() -> None:
    training = new_training()
    for _ in range(3):
        training.epoch()
    assert training.loss < 0.2
    assert training.accuracy(*stripes()) > 0.95


def test_the_first_step_is_that_of_torch_and_the_last_learning_rate_is_nearly_zero() -> None:
    training = new_training(batch_size=64, epochs=4, momentum=0.0, weight_decay=0.0)
    before = [parameter.detach().clone() for parameter in training.network.parameters()]
    images, labels = stripes()
    training.network.train()
    loss = nn.functional.cross_entropy(training.network(PREPROCESS(images)), labels)
    gradients = torch.autograd.grad(loss, list(training.network.parameters()))
    training.epoch()
    for parameter, old, gradient in zip(training.network.parameters(), before, gradients, strict=True):
        torch.testing.assert_close(parameter, old - 0.1 * gradient, rtol=1e-4, atol=1e-6)
    for _ in range(3):
        training.epoch()
    # Half a cosine over four steps: the last is at three quarters of its length.
    [group] = training.optimizer.param_groups
    assert group["lr"] == pytest.approx(0.1 * (1 + math.cos(0.75 * math.pi)) / 2)


def test_a_resumed_training_gives_the_same_bits(tmp_path: Path) -> None:
    whole, resumed = new_training(), new_training()
    whole.epoch()
    save_checkpoint(tmp_path / "checkpoint", whole.state_dict())
    resumed.load_state_dict(load_checkpoint(tmp_path / "checkpoint") or {})
    for training in (whole, resumed):
        training.epoch()
        training.epoch()
    assert whole.loss == resumed.loss
    state = resumed.network.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in whole.network.state_dict().items())


def test_a_diverging_training_stops() -> None:
    with pytest.raises(FloatingPointError, match="lower lr"):
        new_training(lr=1e30).epoch()


# ---- the stage


class SomeParams:
    """The sections that the stage reads."""

    def __init__(self, **backbones: Backbone) -> None:
        self.seed = 0
        self.backbones = backbones
        self.pretrain = Pretrain.model_validate({"classes": 4, "images_per_class": 20, **RECIPE})


def only_cell(**backbones: Backbone) -> Cell:
    [cell] = pretrain.cells(SomeParams(**backbones))  # type: ignore[arg-type]
    return cell


def job_in(folder: Path) -> Job:
    for name in ("output", "work"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    return Job(5, {}, folder / "output", folder / "work", "cpu", checkpoint_seconds=0.0)


def pretrained(folder: Path) -> dict[str, bytes]:
    """Run the cell; returns the files it wrote."""
    job, cell = job_in(folder), only_cell(small=backbone())
    pretrain.run(job, **cell.parameters)
    return {path.name: path.read_bytes() for path in job.output.iterdir()}


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


def test_an_interrupted_cell_goes_on_and_writes_the_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill_after_first(_: Job, done: int, __: int) -> None:
        epochs.append(done)
        if done == 1:
            raise Killed

    epochs: list[int] = []
    expected = pretrained(tmp_path / "whole")
    monkeypatch.setattr(Job, "progress", kill_after_first)
    with pytest.raises(Killed):
        pretrained(tmp_path / "killed")
    assert pretrained(tmp_path / "killed") == expected
    assert epochs == [1, 2, 3]
    assert set(expected) == {"weights.safetensors", "record.json"}


def test_the_weights_serve_as_a_backbone(tmp_path: Path) -> None:
    pretrained(tmp_path)
    weights = tmp_path / "output" / "weights.safetensors"
    network, preprocess, _ = load_backbone(backbone(), root=tmp_path, seed=0, pretrained=weights)
    whole = build_classifier(backbone(), classes=4).eval()
    whole.load_state_dict(load_file(weights))
    images = preprocess(torch.randint(0, 256, (2, 1, 32, 32), dtype=torch.uint8))
    torch.testing.assert_close(whole.get_classifier()(network(images)), whole(images))  # type: ignore[operator]


def test_the_record_says_what_was_trained_on_how_much(tmp_path: Path) -> None:
    pretrained(tmp_path)
    record = json.loads((tmp_path / "output" / "record.json").read_text())
    assert record["classes"] == 4
    assert record["images"] == {"train": 72, "held_out": 8}
    assert 0 < record["final_train_loss"] < math.log(4)
    assert 0 <= record["held_out_accuracy"] <= 1
