import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
import torch
from netcal.metrics import MMCE
from torch import Tensor

from softmax_temperature import losses

FORMS: list[Callable[..., Tensor]] = [losses.mmce, losses.weighted_mmce]


def batch(samples: int = 25, classes: int = 4) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(samples, classes, generator=generator, dtype=torch.float64)
    return logits, torch.multinomial(torch.softmax(logits, dim=1), 1, generator=generator).squeeze(1)


def confident(*confidences: float) -> Tensor:
    """Logits of two classes that give class 0 these probabilities, above one half."""
    return torch.tensor([[math.log(r / (1 - r)), 0.0] for r in confidences], dtype=torch.float64)


def pairs_mean(first: list[float], second: list[float], weight: Callable[[float, float], float], width: float) -> float:
    """Mean over all pairs of a weight times the kernel."""
    return float(np.mean([weight(r, s) * math.exp(-abs(r - s) / width) for r, s in product(first, second)]))


def slow_weighted(logits: Tensor, labels: Tensor, width: float, *, as_released: bool) -> float:
    """The square, as three double loops: right with right, wrong with wrong, right with wrong."""
    confidences, predicted = torch.softmax(logits, dim=1).max(1)
    right, wrong = confidences[predicted == labels].tolist(), confidences[predicted != labels].tolist()
    m, n = len(right), len(wrong)
    both_right = pairs_mean(right, right, lambda r, s: (1 - r) * (1 - s), width)
    both_wrong = pairs_mean(wrong, wrong, lambda r, s: r * s, width)
    mixed = pairs_mean(right, wrong, lambda r, s: (1 - r) * s, width)
    if as_released:
        return both_right / (m * m + 1e-5) + both_wrong / (n * n + 1e-5) - 2 * mixed / (m * n + 1e-5) + 1e-10
    return both_right + both_wrong - 2 * mixed


@pytest.mark.parametrize("width", [0.4, 0.05])
@pytest.mark.parametrize("released", [False, True])
def test_the_weighted_form_equals_a_double_loop(width: float, released: bool) -> None:
    logits, labels = batch()
    value = losses.weighted_mmce(logits, labels, kernel_width=width, as_released=released).item()
    assert value == pytest.approx(math.sqrt(slow_weighted(logits, labels, width, as_released=released)), rel=1e-9)


def test_mmce_equals_that_of_netcal() -> None:
    logits, labels = batch(300)
    theirs = MMCE().measure(torch.softmax(logits, dim=1).numpy(), labels.numpy())
    assert losses.mmce(logits, labels).item() == pytest.approx(theirs, rel=1e-9)
    assert losses.mmce(logits, labels, as_released=True).item() == pytest.approx(theirs**2, rel=1e-9)


def test_mmce_by_hand() -> None:
    # One right at 0.9, one wrong at 0.7: residuals 0.1 and -0.7, kernel e^(-0.2 / 0.4) between them.
    logits, labels = confident(0.9, 0.7), torch.tensor([0, 1])
    square = 0.1**2 + 0.7**2 - 2 * 0.1 * 0.7 * math.exp(-0.5)
    assert losses.mmce(logits, labels).item() == pytest.approx(math.sqrt(square) / 2)
    # Each kind has one sample, so its mean is that sample.
    assert losses.weighted_mmce(logits, labels).item() == pytest.approx(math.sqrt(square))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("as_released", [False, True])
def test_gradients_are_those_of_finite_differences(form: Callable[..., Tensor], as_released: bool) -> None:
    logits, labels = batch(9)
    assert torch.autograd.gradcheck(lambda z: form(z, labels, as_released=as_released), logits.requires_grad_())


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_and_gradients_are_finite_in_every_batch(form: Callable[..., Tensor], dtype: torch.dtype) -> None:
    half, one = (0.5 + 1e-9, 0.5 + 1e-9), (1 - 1e-15, 1 - 1e-15)
    for confidences, labels in (((0.9, 0.8), (0, 0)), ((0.9,), (1,)), (half, (0, 1)), (one, (0, 1))):
        for as_released in (False, True):
            logits = confident(*confidences).to(dtype).requires_grad_()
            value = form(logits, torch.tensor(labels), as_released=as_released)
            (gradient,) = torch.autograd.grad(value, logits)
            assert value.dtype == dtype
            assert 0 <= value.item() < math.inf
            assert gradient.isfinite().all()


def test_a_batch_of_one_kind_keeps_its_own_term_and_is_zero_as_released() -> None:
    all_right, labels = confident(0.9, 0.8), torch.tensor([0, 0])
    # Residuals 0.1 and 0.2, kernel e^(-1/4).
    square = (0.01 + 0.04 + 2 * 0.02 * math.exp(-0.25)) / 4
    assert losses.weighted_mmce(all_right, labels).item() == pytest.approx(math.sqrt(square))
    assert losses.weighted_mmce(all_right, labels, as_released=True).item() == 0
    all_wrong = losses.weighted_mmce(all_right, 1 - labels).item()
    assert all_wrong == pytest.approx(math.sqrt(0.81 + 0.64 + 2 * 0.72 * math.exp(-0.25)) / 2)


@pytest.mark.parametrize("form", FORMS)
def test_bad_input_is_refused_by_name(form: Callable[..., Tensor]) -> None:
    logits, labels = batch()
    with pytest.raises(ValueError, match="kernel_width must be finite and positive, got 0"):
        form(logits, labels, kernel_width=0.0)
    with pytest.raises(ValueError, match="logits must have shape"):
        form(logits[:0], labels[:0])
