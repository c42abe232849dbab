"""Pretraining trains whole networks from any library, in the shared training loop.

The parameters need not name the last layer.
"""

import math

import pytest
import torch
from torch import nn

from softmax_temperature.losses import make_loss
from softmax_temperature.networks.preprocess import Preprocess
from softmax_temperature.params.shared import PretrainRecipe
from softmax_temperature.training.pretraining import (
    PreprocessedImages,
    WholeNetwork,
    pretraining_recipe,
)
from softmax_temperature.training.trainer import Trainer

PREPROCESS = Preprocess(8, 8, "bilinear", (0.5, 0.5, 0.5), (0.5, 0.5, 0.5))


def test_the_first_step_is_torchs_and_the_learning_rate_follows_a_half_cosine() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(144, 2),
    )
    before = [parameter.detach().clone() for parameter in network.parameters()]
    images = torch.randint(
        0, 256, (64, 1, 8, 8), generator=torch.Generator().manual_seed(0)
    ).to(torch.uint8)
    labels = torch.arange(64) % 2
    how = PretrainRecipe(
        epochs=4, batch_size=64, lr=0.1, momentum=0.0, weight_decay=0.0
    )
    gradients = torch.autograd.grad(
        nn.functional.cross_entropy(network(PREPROCESS(images)), labels),
        list(network.parameters()),
    )
    samples, objective = (
        PreprocessedImages(images, labels, "train", PREPROCESS),
        make_loss("cross_entropy", {}),
    )
    training = Trainer(
        WholeNetwork(network),
        objective,
        samples,
        pretraining_recipe(how),
        seed=1,
        device="cpu",
    )
    training.epoch()
    for parameter, old, gradient in zip(
        network.parameters(), before, gradients, strict=True
    ):
        torch.testing.assert_close(
            parameter, old - 0.1 * gradient, rtol=1e-4, atol=1e-6
        )
    for _ in range(3):
        training.epoch()
    # The schedule is half a cosine over four steps; the last step is three quarters of
    # the way along it.
    [group] = training.optimizer.param_groups
    assert group["lr"] == pytest.approx(0.1 * (1 + math.cos(0.75 * math.pi)) / 2)
    assert training.evaluate(images)[0].shape == (64, 2)
