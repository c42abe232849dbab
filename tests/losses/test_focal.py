import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature import losses

GAMMA_STARS = {0.1: 14.92, 0.15: 8.03, 0.19: 5.34, 0.2: 4.85, 0.25: 3.07, 0.3: 1.96, 0.35: 1.21, 0.4: 0.68, 0.45: 0.29}


def batch(samples: int = 12, classes: int = 4, *, scale: float = 2.0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = scale * torch.randn(samples, classes, generator=generator, dtype=torch.float64)
    return logits, torch.randint(classes, (samples,), generator=generator)


def ratio(p: float, gamma: float) -> float:
    """g as printed."""
    return (1 - p) ** gamma - gamma * p * (1 - p) ** (gamma - 1) * math.log(p)


def test_focal_loss_by_hand_and_gamma_zero_is_the_cross_entropy() -> None:
    assert torch.equal(losses.focal_loss(*batch(), 0), F.cross_entropy(*batch()))
    # Probabilities of the true classes 3/4 and 1/2, gamma 2: (1/16) log(4/3) and (1/4) log 2.
    logits, labels = torch.tensor([[math.log(3), 0.0], [0.0, 0.0]], dtype=torch.float64), torch.tensor([0, 1])
    expected = torch.tensor([math.log(4 / 3) / 16, math.log(2) / 4], dtype=torch.float64)
    torch.testing.assert_close(losses.focal_loss(logits, labels, 2, reduction="none"), expected)
    torch.testing.assert_close(losses.focal_loss(logits, labels, 2), expected.mean())
    torch.testing.assert_close(losses.focal_loss(logits, labels, 2, reduction="sum"), expected.sum())


@pytest.mark.parametrize("gamma", [0.0, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("scale", [0.1, 3.0, 12.0])
def test_focal_gradients_are_those_of_finite_differences(gamma: float, scale: float) -> None:
    logits, labels = batch(6, scale=scale)
    assert torch.autograd.gradcheck(lambda z: losses.focal_loss(z, labels, gamma), logits.requires_grad_())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("gamma", [0.0, 0.1, 0.5, 1.0, 5.0])
def test_gradients_are_finite_at_both_ends(gamma: float, dtype: torch.dtype) -> None:
    # p = 1 exactly, p = 0 exactly, and p next to both: the released (1 - p) ** gamma gives NaN in the first row.
    logits = torch.tensor([[1e4, 0.0, 0.0], [0.0, 1e4, 0.0], [20.0, 0, 0], [-20.0, 0, 0], [0.0, 0, 0]], dtype=dtype)
    labels = torch.zeros(5, dtype=torch.int64)
    value = losses.focal_loss(logits.requires_grad_(), labels, gamma)
    (gradient,) = torch.autograd.grad(value, logits)
    assert (value.dtype, value.isfinite().item(), gradient.isfinite().all().item()) == (dtype, True, True)
    # Proposition 1: at p = 1 and gamma > 0 nothing pulls any more; at p = 0 the pull is that of the cross-entropy.
    assert gradient[0].abs().max() == 0
    assert gradient[1, 0].item() == pytest.approx(-1 / 5, rel=1e-2)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0, 7.0])
def test_gradient_ratio_is_the_printed_formula_and_has_its_limits(gamma: float) -> None:
    p = torch.linspace(0.001, 0.999, 999, dtype=torch.float64)
    expected = torch.tensor([ratio(value, gamma) for value in p.tolist()], dtype=torch.float64)
    torch.testing.assert_close(losses.gradient_ratio(p, gamma), expected)
    ends = losses.gradient_ratio(torch.tensor([0.0, 1.0], dtype=torch.float64), gamma)
    assert ends.tolist() == [1, 0]
    assert losses.gradient_ratio(p, 0.0).eq(1).all()
    torch.testing.assert_close(losses.gradient_ratio(p, torch.full((999,), gamma)), expected)
    assert losses.gradient_ratio(p.float(), torch.tensor([gamma], dtype=torch.float64)).dtype == torch.float32


@pytest.mark.parametrize("p0", list(GAMMA_STARS))
def test_gamma_star_is_the_smallest_gamma_that_keeps_g_below_one(p0: float) -> None:
    star = losses.gamma_star(p0).item()
    assert star == pytest.approx(GAMMA_STARS[p0], abs=0.006)
    assert ratio(p0, star) == pytest.approx(1, abs=1e-9)
    # Proposition 2: g <= 1 for every p >= p0 and gamma >= gamma*, with equality at (p0, gamma*) alone.
    for p in np.linspace(p0, 0.999, 60):
        for gamma in star * np.array([1, 1.001, 1.1, 2, 5]):
            assert ratio(p, gamma) <= 1 + 1e-9
            assert ratio(p, gamma) < 1 - 1e-9 or (p == p0 and gamma == star)
    assert ratio(p0, 0.99 * star) > 1


@pytest.mark.parametrize(("policy", "expected"), [("53", [5, 5, 3, 3, 3, 3]), ("532", [5, 5, 3, 3, 2, 2])])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sample_dependent_gamma_changes_at_its_thresholds(policy: str, expected: list[int], dtype: torch.dtype) -> None:
    probs = torch.tensor([0.0, 0.199, 0.2, 0.499, 0.5, 1.0], dtype=dtype, requires_grad=True)
    gamma = losses.sample_dependent_gamma(probs, policy=policy)
    assert gamma.tolist() == expected
    assert gamma.dtype == dtype
    assert not gamma.requires_grad


def test_scheduled_gamma_follows_the_epochs_of_the_paper() -> None:
    assert [losses.scheduled_gamma(epoch) for epoch in (0, 99, 100, 249, 250, 349)] == [5, 5, 3, 3, 1, 1]
    assert losses.scheduled_gamma(300, gammas=(5, 3, 2)) == 2
    assert [losses.scheduled_gamma(epoch, milestones=(30, 70)) for epoch in (29, 30, 70)] == [5, 3, 1]
    assert losses.scheduled_gamma(7, gammas=(3.0,), milestones=()) == 3


def test_bad_input_is_refused_by_name() -> None:
    logits, labels = batch()
    for call, message in (
        (lambda: losses.focal_loss(logits, labels, -1), "gamma must be finite and at least 0, got -1"),
        (lambda: losses.focal_loss(logits, labels, torch.ones(3)), r"have shape \(12,\), got \(3,\)"),
        (lambda: losses.focal_loss(logits, labels, 1, reduction="max"), "reduction must be"),
        (lambda: losses.focal_loss(logits * math.nan, labels, 1), "logits must be finite, got nan"),
        (lambda: losses.sample_dependent_gamma(torch.tensor([0.5, 1.1])), r"true_probs must be in \[0, 1\]"),
        (lambda: losses.sample_dependent_gamma(torch.ones(2), policy="52"), "policy must be one of '53', '532', got"),
        (lambda: losses.gradient_ratio(torch.tensor(-0.1), 1), r"true_probs must be in \[0, 1\]"),
        (lambda: losses.gamma_star(0.5), r"p0 must be in \(0, 0.5\), got 0.5"),
        (lambda: losses.scheduled_gamma(-1), "epoch must be an integer of at least 0, got -1"),
        (lambda: losses.scheduled_gamma(1, gammas=(1.0,)), "gammas must hold one value more than"),
        (lambda: losses.scheduled_gamma(1, milestones=(5, 5)), "milestones must ascend"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
