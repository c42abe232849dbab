"""Values and gradients are exact up to rounding, in every dtype and at every scale.

The reference values have sixty digits.
"""

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch import Tensor

from softmax_temperature import (
    BrierLoss,
    FocalLoss,
    MMCELoss,
    SampleDependentFocalLoss,
    losses,
)
from tests.losses import exact

Loss = Callable[[Tensor, Tensor], Tensor]
Reference = Callable[[list[float], int], exact.Answer]
DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
# Each entry has the loss, its reference, and the factor by which the loss multiplies
# the exponents, and with them the exponents' rounding errors.
EXACT: dict[str, tuple[Loss, Reference, float]] = {
    **{
        f"focal {gamma}": (
            lambda z, y, gamma=gamma: losses.focal_loss(z, y, gamma),
            lambda row, label, gamma=gamma: exact.focal(row, label, gamma),
            1 + gamma,
        )
        for gamma in (0.0, 0.5, 3.0)
    },
    "FLSD": (
        SampleDependentFocalLoss(),
        lambda row, label: exact.focal(
            row, label, 5 if exact.probabilities(row)[label] < Decimal("0.2") else 3
        ),
        6,
    ),
    "Brier": (losses.brier_loss, exact.brier, 2),
    **{
        f"rescaled {scale}": (
            lambda z, y, scale=scale: losses.rescaled_cross_entropy(z, y, scale),
            lambda row, label, scale=scale: exact.rescaled(row, label, scale),
            scale,
        )
        for scale in (0.25, 16.0)
    },
}


def value_and_gradient(loss: Loss, logits: Tensor, label: int) -> tuple[float, Any]:
    leaf = logits.clone().requires_grad_()
    value = loss(leaf[None], torch.tensor([label]))
    assert value.dtype == logits.dtype
    (gradient,) = torch.autograd.grad(value, leaf)
    return value.item(), gradient.tolist()


def agrees(
    ours: float,
    right: Decimal,
    dtype: torch.dtype,
    ulps: float,
    *,
    size: Decimal = Decimal(0),
) -> bool:
    """Return whether the error is at most `ulps` rounding units of |right| + size.

    If `right` is too large for the dtype, `ours` must be infinite instead.
    """
    info = torch.finfo(dtype)
    if abs(right) > Decimal(info.max):
        return math.isinf(ours)
    allowed = Decimal(ulps * info.eps) * (abs(right) + size) + Decimal(info.tiny)
    return abs(Decimal(ours) - right) <= allowed


@pytest.mark.parametrize("name", EXACT)
@settings(max_examples=60)
@given(
    st.lists(st.floats(-1, 1), min_size=2, max_size=6),
    st.sampled_from([1e-3, 1.0, 20.0, 90.0, 1000.0]),
    st.sampled_from(DTYPES),
    st.integers(0, 5),
)
def test_value_and_gradient_are_right_to_rounding(
    name: str, row: list[float], scale: float, dtype: torch.dtype, label: int
) -> None:
    loss, reference, factor = EXACT[name]
    logits = (scale * torch.tensor(row, dtype=torch.float64)).to(dtype)
    label = label % len(row)
    # At p = 0.2, gamma jumps from 5 to 3.
    p = exact.probabilities(logits.tolist())[label]
    assume(name != "FLSD" or abs(p - Decimal("0.2")) > Decimal("1e-3"))
    value, gradient = value_and_gradient(loss, logits, label)
    right_value, right_gradient = reference(logits.tolist(), label)
    # An exponent of size x has an error of x units in the last place (in float32 if the
    # dtype is narrower). Rounding the result adds one unit.
    exponent_error = 16 * (1 + factor * logits.abs().max().item())
    narrowing = min(1.0, torch.finfo(torch.float32).eps / torch.finfo(dtype).eps)
    ulps = 1 + exponent_error * narrowing
    assert agrees(value, right_value, dtype, ulps)
    # Brier's gradient is a difference: if two wrong classes share all the probability,
    # their terms nearly cancel.
    size = right_value if name == "Brier" else Decimal(0)
    for ours, right in zip(gradient, right_gradient, strict=True):
        assert agrees(ours, right, dtype, ulps, size=size)


@pytest.mark.parametrize("dtype", DTYPES)
def test_label_smoothing_is_right_to_rounding_in_every_dtype(
    dtype: torch.dtype,
) -> None:
    for row in ([0.0, 14_000.0], [20.0, 0.0, -3.0], [1e-3, 0.0, 0.25, -0.5]):
        logits = torch.tensor(row, dtype=dtype)
        value, gradient = value_and_gradient(losses.label_smoothing_loss, logits, 0)
        right_value, right_gradient = exact.smoothed(logits.tolist(), 0, 0.05)
        assert agrees(value, right_value, dtype, 8)
        for ours, right in zip(gradient, right_gradient, strict=True):
            assert abs(Decimal(ours) - right) <= Decimal(4 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("row", [[20.0, 0.0], [0.0, 9.0, 1.0], [0.5, 0.25]])
@pytest.mark.parametrize("penalty", [losses.mmce, losses.weighted_mmce])
def test_the_penalty_of_one_sample_is_its_residual(
    penalty: Loss, row: list[float], dtype: torch.dtype
) -> None:
    for label in range(len(row)):
        logits = torch.tensor(row, dtype=dtype)
        value, _ = value_and_gradient(penalty, logits, label)
        residual = exact.mean_calibration_error(logits.tolist(), label)
        # The smallest residual is 2e-9; its square is far above the smallest float32.
        assert agrees(value, residual, dtype, 64 if dtype.itemsize >= 4 else 2)


def test_certainty_in_float32_has_a_loss_and_a_gradient() -> None:
    logits = torch.tensor([[20.0, 0.0]], requires_grad=True)
    label = torch.tensor([0])
    rest = math.exp(-20)
    for loss, expected in (
        (losses.focal_loss(logits, label, 0.0), rest),
        (losses.focal_loss(logits, label, 1.0), rest**2),
        (losses.brier_loss(logits, label), 2 * rest**2),
        (losses.rescaled_cross_entropy(logits, label, 1.0), rest),
    ):
        assert loss.item() == pytest.approx(expected, rel=1e-6)
        (gradient,) = torch.autograd.grad(loss, logits)
        slope = {rest: rest, rest**2: 2 * rest**2, 2 * rest**2: 4 * rest**2}[expected]
        assert gradient.tolist() == [pytest.approx([-slope, slope], rel=1e-6)]


@pytest.mark.parametrize(
    ("loss", "row", "expected"),
    [
        (lambda z, y: losses.rescaled_cross_entropy(z, y, 250.0), [300, 400], 100),
        (losses.label_smoothing_loss, [0, 14_000], 13_300),
        (SampleDependentFocalLoss(), [0, 14_000], 14_000),
        (FocalLoss(0.0), [0, 60_000], 60_000),
        (BrierLoss(), [0, 60_000], 2),
        (MMCELoss(), [0, 14_000], 14_002),
    ],
)
def test_float16_logits_that_lie_far_apart_have_finite_losses_and_gradients(
    loss: Loss, row: list[float], expected: float
) -> None:
    logits = torch.tensor([row], dtype=torch.float16, requires_grad=True)
    value = loss(logits, torch.tensor([0]))
    (gradient,) = torch.autograd.grad(value, logits)
    assert value.item() == pytest.approx(expected, rel=2e-3)
    assert gradient.isfinite().all()


def test_the_gradient_ratio_of_half_precision_is_that_of_its_probabilities() -> None:
    for dtype in (torch.float16, torch.bfloat16):
        p = torch.tensor([0.0, 1e-3, 0.2, 0.9, 0.996, 1.0], dtype=dtype)
        right = losses.gradient_ratio(p.double(), 3.0).to(dtype)
        torch.testing.assert_close(losses.gradient_ratio(p, 3.0), right)
