"""Losses and metrics refuse labels that are passed before the scores."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from softmax_temperature import (
    BrierLoss,
    FocalLoss,
    MMCELoss,
    SampleDependentFocalLoss,
    calibrate,
    losses,
    metrics,
    scaling,
)
from softmax_temperature.metrics.checks import ArgumentError

ROWS = 64
CLASSES = 5
GENERATOR = torch.Generator().manual_seed(0)
INPUTS = torch.randn(ROWS, 8, generator=GENERATOR)
CLASS_INDICES = torch.randint(CLASSES, (ROWS,), generator=GENERATOR)
ONE_HOT = one_hot(CLASS_INDICES, CLASSES).float()
SMOOTH = 0.9 * ONE_HOT + 0.1 / CLASSES
WEIGHT = torch.randn(8, CLASSES, generator=GENERATOR)
CALLS: dict[str, Callable[[Any, Any], Tensor]] = {
    "FocalLoss": FocalLoss(),
    "BrierLoss": BrierLoss(),
    "LabelSmoothingLoss": losses.LabelSmoothingLoss(),
    "CrossEntropyLoss": losses.CrossEntropyLoss(),
    "MMCELoss": MMCELoss(),
    "SampleDependentFocalLoss": SampleDependentFocalLoss(),
    "focal_loss": lambda logits, labels: losses.focal_loss(logits, labels, 3.0),
    "brier_loss": losses.brier_loss,
    "label_smoothing_loss": losses.label_smoothing_loss,
    "mmce": losses.mmce,
}
SOFT = [
    "FocalLoss",
    "BrierLoss",
    "LabelSmoothingLoss",
    "CrossEntropyLoss",
    "focal_loss",
    "brier_loss",
    "label_smoothing_loss",
]
swapped = pytest.raises(ArgumentError, match=r"look swapped: .*\. Give the logits firs")


def scores() -> Tensor:
    return INPUTS @ WEIGHT.clone().requires_grad_()


@pytest.mark.parametrize("call", CALLS)
def test_labels_before_the_scores_are_refused(call: str) -> None:
    loss = CALLS[call]
    for labels in (ONE_HOT, SMOOTH, ONE_HOT.long(), CLASS_INDICES):
        for second in (scores(), scores().softmax(dim=1)):
            with swapped:
                loss(labels, second)
    for labels in (ONE_HOT, ONE_HOT.long(), CLASS_INDICES):
        with swapped:
            loss(labels, scores().softmax(dim=1).detach())


def test_maps_of_labels_before_the_scores_are_refused() -> None:
    maps = torch.randn(2, CLASSES, 6, 6, generator=GENERATOR).requires_grad_()
    labels = torch.randint(CLASSES, (2, 6, 6), generator=GENERATOR)
    for first in (labels, one_hot(labels, CLASSES).movedim(-1, 1).float()):
        for second in (maps, maps.detach()):
            with swapped:
                FocalLoss()(first, second)
    assert FocalLoss()(maps, labels).isfinite()


@pytest.mark.parametrize("call", SOFT)
def test_soft_labels_after_the_logits_are_accepted(call: str) -> None:
    loss = CALLS[call]
    expected = loss(scores(), CLASS_INDICES)
    assert torch.allclose(loss(scores(), ONE_HOT), expected)
    assert torch.allclose(loss(scores().detach(), ONE_HOT), expected)
    # Mutual learning: both networks are trained.
    assert loss(scores(), scores().softmax(dim=1)).requires_grad


def test_labels_learned_for_fixed_logits_are_accepted() -> None:
    labels = SMOOTH.clone().requires_grad_()
    FocalLoss()(scores().detach(), labels).backward()
    assert labels.grad is not None
    assert labels.grad.abs().sum() > 0
    with torch.no_grad():
        fixed = torch.zeros(ROWS, CLASSES).scatter(1, CLASS_INDICES[:, None], 1.0)
        parameters = nn.Parameter(fixed)
        assert FocalLoss()(fixed, parameters).isfinite()


def test_the_order_is_checked_inside_transforms() -> None:
    def right(weight: Tensor) -> Tensor:
        loss: Tensor = FocalLoss()(INPUTS @ weight, ONE_HOT)
        return loss

    def wrong(weight: Tensor) -> Tensor:
        loss: Tensor = FocalLoss()(ONE_HOT, (INPUTS @ weight).softmax(dim=1))
        return loss

    def of_indices(weight: Tensor) -> Tensor:
        loss: Tensor = FocalLoss()(INPUTS @ weight, CLASS_INDICES)
        return loss

    def hessian(function: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
        return torch.func.jacrev(torch.func.grad(function))

    for transform in (torch.func.grad, torch.func.jacrev, hessian):
        expected = transform(of_indices)(WEIGHT)
        assert torch.allclose(transform(right)(WEIGHT), expected, atol=1e-6)
        with swapped:
            transform(wrong)(WEIGHT)


METRICS: dict[str, Callable[[Any, Any], object]] = {
    "ece": metrics.expected_calibration_error,
    "brier": metrics.brier_score,
    "nll": metrics.negative_log_likelihood,
    "top accuracy": metrics.top_accuracy,
    "report": metrics.calibration_report,
    "fit": scaling.fit_temperature,
    "calibrate": calibrate,
    "calibrate probs": lambda probs, labels: calibrate(probs, labels, kind="probs"),
}


@pytest.mark.parametrize("metric", METRICS)
def test_metrics_refuse_labels_before_the_scores(metric: str) -> None:
    probs = (INPUTS @ WEIGHT).double().softmax(dim=1)
    for labels in (ONE_HOT, CLASS_INDICES):
        with pytest.raises(ArgumentError, match="labels look swapped"):
            METRICS[metric](labels, probs)
