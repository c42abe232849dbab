"""TemperatureScaler finds what its peers find, gives back what it was given, and keeps
scikit-learn's conventions.
"""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch_uncertainty import post_processing
from torch_uncertainty.metrics import (
    AdaptiveCalibrationError,
    BrierScore,
    CalibrationError,
)

from softmax_temperature import TemperatureScaler, metrics, sample_logits

LOGITS, LABELS = sample_logits()
WHY = "Columns of logits are the classes; this check has labels beyond them."
BEYOND = (
    "estimators_overwrite_params",
    "estimators_fit_returns_self",
    "readonly_memmap_input",
    "fit2d_1feature",
)


@parametrize_with_checks(
    [TemperatureScaler()],
    expected_failed_checks=lambda _: {f"check_{name}": WHY for name in BEYOND},
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learns_own_checks(estimator: Any, check: Any) -> None:
    check(estimator)


def test_probabilities_are_those_of_scikit_learns_temperature_scaling() -> None:
    features, labels = load_iris(return_X_y=True)
    classifier = LogisticRegression(C=0.01, max_iter=1000).fit(
        features[::2], labels[::2]
    )
    held_out, theirs = (
        features[1::2],
        CalibratedClassifierCV(FrozenEstimator(classifier), method="temperature"),
    )
    theirs.fit(held_out, labels[1::2])
    logits = classifier.decision_function(held_out)
    ours = TemperatureScaler().fit(logits, labels[1::2])
    np.testing.assert_allclose(
        ours.predict_proba(logits), theirs.predict_proba(held_out), rtol=1e-5
    )


def test_numbers_and_temperature_are_those_of_torch_uncertainty() -> None:
    logits, labels = torch.from_numpy(LOGITS), torch.from_numpy(LABELS)
    probs, kind = (
        logits.softmax(dim=1),
        {"task": "multiclass", "num_classes": 10, "num_bins": 15},
    )
    for theirs, ours in (
        (CalibrationError(**kind), metrics.expected_calibration_error),
        (CalibrationError(**kind, norm="max"), metrics.maximum_calibration_error),
        (AdaptiveCalibrationError(**kind), metrics.adaptive_calibration_error),
        (BrierScore(num_classes=10), metrics.brier_score),
    ):
        assert ours(probs, labels).item() == pytest.approx(
            theirs(probs, labels).item(), rel=1e-4
        )
    scaler = post_processing.TemperatureScaler(
        nn.Identity()
    )  # Its search stops at four digits.
    scaler.fit(
        DataLoader(TensorDataset(logits, labels), batch_size=500), progress=False
    )
    assert TemperatureScaler().fit(logits, labels).temperature_ == pytest.approx(
        scaler.temperature[0].item(), rel=1e-3
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_arrays_give_arrays_and_tensors_tensors_with_the_same_numbers(
    dtype: torch.dtype,
) -> None:
    tensor = torch.from_numpy(LOGITS).to(dtype)
    array, scaler = (
        tensor.numpy(),
        TemperatureScaler().fit(tensor, torch.from_numpy(LABELS)),
    )
    assert TemperatureScaler().fit(array, LABELS).temperature_ == scaler.temperature_
    for method in (scaler.transform, scaler.predict_proba):
        assert isinstance(method(array), np.ndarray)
        assert (method(tensor).dtype, method(array).dtype) == (dtype, array.dtype)
        np.testing.assert_array_equal(method(tensor).numpy(), method(array))


def test_one_column_is_the_logit_of_class_one() -> None:
    logits = np.array([[2.0], [-1.0], [0.5], [3.0]])
    scaler = TemperatureScaler().fit(logits[[0, 1, 2, 2]], [1, 0, 0, 1])
    probs = scaler.predict_proba(logits)
    np.testing.assert_allclose(
        probs[:, 1], 1 / (1 + np.exp(-logits[:, 0] / scaler.temperature_))
    )


def test_logits_that_separate_the_labels_are_left_as_they_are() -> None:
    with pytest.warns(ConvergenceWarning, match="No temperature fits"):
        scaler = TemperatureScaler().fit(5 * np.eye(3)[[0, 1, 2, 0]], [0, 1, 2, 0])
    assert (scaler.temperature_, scaler.at_bound_) == (1.0, True)


def test_a_wrapped_network_divides_its_logits_and_saves_the_temperature() -> None:
    network, scaler = (
        nn.Linear(4, 10),
        TemperatureScaler(criterion="ece").fit(LOGITS, LABELS),
    )
    wrapped, inputs = (
        scaler.wrap(network),
        torch.randn(3, 4, generator=torch.manual_seed(0)),
    )
    torch.testing.assert_close(wrapped(inputs), network(inputs) / scaler.temperature_)
    other = copy.deepcopy(wrapped)
    other.temperature.fill_(1.0)
    other.load_state_dict(wrapped.state_dict())
    torch.testing.assert_close(other(inputs), wrapped(inputs))
