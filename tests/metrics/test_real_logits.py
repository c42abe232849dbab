"""The metrics on real logits of four CIFAR-10 networks, against loops in NumPy, scikit-learn and scipy's optimisers."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax
from sklearn.metrics import accuracy_score, log_loss, top_k_accuracy_score

from softmax_temperature.metrics import calibration_report
from softmax_temperature.scaling import fit_temperature

pytestmark = pytest.mark.real_data("cifar10_logits")

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Accuracy, NLL, ECE, T by NLL, T by ECE on all 10,000 rows, as first found: the loops below must not drift with us.
FOUND = {
    "densenet_BC_100_12": (0.9562, 0.20173, 0.02539, 1.93618, 2.0),
    "resnet_basic_110": (0.9406, 0.32723, 0.04126, 2.56828, 2.6),
    "resnext_29_8x64d": (0.9646, 0.12741, 0.01293, 1.30799, 1.3),
    "vgg_15_BN_64": (0.9318, 0.34386, 0.0465, 2.22485, 2.3),
}


class Network(NamedTuple):
    """Logits in float64, shape (10000, 10), and labels."""

    name: str
    logits: Floats
    labels: Integers

    def tensors(self) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.from_numpy(self.logits.astype(np.float32)), torch.from_numpy(self.labels)


@pytest.fixture(params=FOUND)
def network(request: pytest.FixtureRequest, project_root: Path) -> Network:
    with np.load(project_root / "data" / "raw" / "cifar10_logits.npz", allow_pickle=False) as data:
        place = data["names"].tolist().index(request.param)
        return Network(request.param, data["logits"][place].astype(np.float64), data["labels"])


def loss_of(log_temperature: float, logits: Floats, labels: Integers) -> float:
    """Mean NLL at a temperature, from log-probabilities of the labels picked row by row."""
    log_probs = log_softmax(logits / np.exp(log_temperature), axis=1)
    return -float(np.mean([row[label] for row, label in zip(log_probs, labels, strict=True)]))


def test_scores_equal_those_of_scikit_learn(network: Network) -> None:
    _, logits, labels = network
    probs = softmax(logits, axis=1)
    report = calibration_report(*network.tensors())
    assert report["accuracy"] == accuracy_score(labels, logits.argmax(axis=1))
    assert report["top5_accuracy"] == top_k_accuracy_score(labels, logits, k=5)
    assert report["negative_log_likelihood"] == pytest.approx(log_loss(labels, probs), abs=1e-12)
    assert report["brier_score"] == pytest.approx(((probs - np.eye(10)[labels]) ** 2).sum(axis=1).mean(), abs=1e-12)


def test_temperature_by_likelihood_is_where_scipy_finds_the_minimum(network: Network) -> None:
    _, logits, labels = network
    fit = fit_temperature(*network.tensors())
    found = minimize_scalar(loss_of, bounds=(-2, 3), args=(logits, labels), method="bounded", options={"xatol": 1e-7})
    # At a minimum the value is flat: an optimiser that compares values finds the place to the root of their precision.
    assert np.log(fit.temperature) == pytest.approx(found.x, abs=1e-5)
    assert fit.value == pytest.approx(found.fun, abs=1e-12)
    assert not fit.at_bound


def test_values_are_those_first_found(network: Network) -> None:
    report = calibration_report(*network.tensors())
    names = ("accuracy", "negative_log_likelihood", "expected_calibration_error")
    fits = [fit_temperature(*network.tensors(), criterion=criterion).temperature for criterion in ("nll", "ece")]
    assert [*(report[name] for name in names), *fits] == pytest.approx(FOUND[network.name], abs=5e-6)
