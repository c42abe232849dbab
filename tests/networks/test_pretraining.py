"""Pretraining: learns, resumes bit for bit, and depends on nothing but its seed and parameters."""

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from softmax_temperature.networks.backbones import Preprocess
from softmax_temperature.networks.pretraining import Pretraining

PREPROCESS = Preprocess(8, 8, "bilinear", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))
RECIPE = {"epochs": 3, "batch_size": 16, "lr": 0.1, "momentum": 0.9, "weight_decay": 0.0005}


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


def test_a_resumed_training_gives_the_same_bits() -> None:
    whole, resumed = new_training(), new_training()
    whole.epoch()
    resumed.load_state_dict(copy.deepcopy(whole.state_dict()))
    for training in (whole, resumed):
        training.epoch()
        training.epoch()
    assert whole.loss == resumed.loss
    state = resumed.network.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in whole.network.state_dict().items())
