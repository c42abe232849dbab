import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature import losses, metrics


def batch(samples: int = 20, classes: int = 5) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(samples, classes, generator=generator, dtype=torch.float64)
    return logits, torch.randint(classes, (samples,), generator=generator)


def test_brier_loss_is_the_brier_score() -> None:
    logits, labels = batch()
    score = metrics.brier_score(torch.softmax(logits, dim=1), labels)
    torch.testing.assert_close(losses.brier_loss(logits, labels), score)
    # All mass on the wrong class of two: (1 - 0)^2 + (0 - 1)^2.
    assert losses.brier_loss(torch.tensor([[0.0, 1e4]]), torch.tensor([0])).item() == 2


def test_smoothing_is_less_than_torchs_by_the_share_that_torch_gives_back_to_the_true_class() -> None:
    logits, labels = batch()
    ours = losses.label_smoothing_loss(logits, labels, smoothing=0.05)
    torch.testing.assert_close(ours, F.cross_entropy(logits, labels, label_smoothing=0.05 * 5 / 4))
    assert abs(ours - F.cross_entropy(logits, labels, label_smoothing=0.05)) > 1e-3


def test_smoothed_loss_is_least_at_its_target() -> None:
    target = torch.tensor([[0.05 / 2, 0.95, 0.05 / 2]], dtype=torch.float64)
    logits = target.log().requires_grad_()
    losses.label_smoothing_loss(logits, torch.tensor([1]), smoothing=0.05).backward()
    torch.testing.assert_close(logits.grad, torch.zeros_like(logits))


@pytest.mark.parametrize("inverse_temperature", [0.01, 1.0, 250.0])
def test_rescaled_cross_entropy_is_scaled_once_and_divided_once(inverse_temperature: float) -> None:
    logits, labels = batch()
    logits.requires_grad_()
    value = losses.rescaled_cross_entropy(logits, labels, inverse_temperature)
    plain = F.cross_entropy(inverse_temperature * logits, labels)
    torch.testing.assert_close(value * inverse_temperature, plain)
    # The gradient is softmax(alpha z) minus one-hot over n, without a factor alpha.
    (gradient,) = torch.autograd.grad(value, logits)
    probs = torch.softmax(inverse_temperature * logits.detach(), dim=1)
    torch.testing.assert_close(gradient, (probs - F.one_hot(labels, 5)) / 20)


@pytest.mark.parametrize(
    "loss", [losses.brier_loss, losses.label_smoothing_loss, lambda z, y: losses.rescaled_cross_entropy(z, y, 3.0)]
)
def test_gradients_are_right_and_finite_at_the_ends(loss: Callable[[Tensor, Tensor], Tensor]) -> None:
    logits, labels = batch(6)
    assert torch.autograd.gradcheck(lambda z: loss(z, labels), logits.requires_grad_())
    extreme = torch.tensor([[1e4, 0.0], [0.0, 1e4]], requires_grad=True)
    value = loss(extreme, torch.tensor([0, 0]))
    (gradient,) = torch.autograd.grad(value, extreme)
    assert (value.dtype, value.isfinite().item(), gradient.isfinite().all().item()) == (torch.float32, True, True)


def test_bad_input_is_refused_by_name() -> None:
    logits, labels = batch()
    for call, message in (
        (lambda: losses.label_smoothing_loss(logits, labels, smoothing=0.81), r"smoothing must be in \[0, 0.8\] for 5"),
        (lambda: losses.rescaled_cross_entropy(logits, labels, 0.0), "inverse_temperature must be finite and positive"),
        (lambda: losses.brier_loss(logits, labels + 5), "labels must be in"),
        (lambda: losses.brier_loss(logits * math.nan, labels), "logits must be finite"),
        (lambda: losses.brier_loss(logits[0], labels), "logits must have shape"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
