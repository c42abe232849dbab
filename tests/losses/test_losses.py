"""Losses equal hand-worked values and second implementations, even at the extremes."""

import math
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from netcal.metrics import MMCE
from torch import Tensor

from softmax_temperature import losses, metrics

GAMMA_STARS = {
    0.1: 14.92,
    0.15: 8.03,
    0.19: 5.34,
    0.2: 4.85,
    0.25: 3.07,
    0.3: 1.96,
    0.35: 1.21,
    0.4: 0.68,
    0.45: 0.29,
}
Loss = Callable[..., Tensor]
ALL: dict[str, Loss] = {
    "brier": losses.brier_loss,
    "label smoothing": losses.label_smoothing_loss,
    "rescaled": lambda z, y: losses.rescaled_cross_entropy(z, y, 3.0),
    **{
        f"focal {gamma}": lambda z, y, gamma=gamma: losses.focal_loss(z, y, gamma)
        for gamma in (0.0, 0.1, 1.0, 5.0)
    },
    "mmce": losses.mmce,
    "mmce as released": lambda z, y: losses.mmce(z, y, as_released=True),
    "weighted mmce": losses.weighted_mmce,
    "weighted mmce as released": lambda z, y: losses.weighted_mmce(
        z, y, as_released=True
    ),
}


def batch(
    samples: int = 20, classes: int = 5, *, scale: float = 2.0
) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = scale * torch.randn(
        samples, classes, generator=generator, dtype=torch.float64
    )
    return logits, torch.multinomial(
        torch.softmax(logits, dim=1), 1, generator=generator
    ).squeeze(1)


def confident(*confidences: float) -> Tensor:
    """Logits of two classes for which class 0 has the given probabilities."""
    return torch.tensor(
        [[math.log(r / (1 - r)), 0.0] for r in confidences], dtype=torch.float64
    )


def ratio(p: float, gamma: float) -> float:
    """The function g of the focal paper, written as printed."""
    return (1 - p) ** gamma - gamma * p * (1 - p) ** (gamma - 1) * math.log(p)


# ---- all losses


@pytest.mark.parametrize("loss", ALL.values(), ids=ALL)
@pytest.mark.parametrize("scale", [0.1, 2.0, 12.0])
def test_gradients_equal_finite_differences(loss: Loss, scale: float) -> None:
    logits, labels = batch(9, scale=scale)
    assert torch.autograd.gradcheck(lambda z: loss(z, labels), logits.requires_grad_())


@pytest.mark.parametrize("loss", ALL.values(), ids=ALL)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_values_and_gradients_are_finite_in_every_batch(
    loss: Loss, dtype: torch.dtype
) -> None:
    # The rows are: certain and right, certain and wrong, nearly certain and right,
    # nearly certain and wrong, and two that are undecided. Among the batches are one
    # with only right rows, one with only wrong rows, and one with a single row.
    extreme = torch.tensor(
        [[1e4, 0.0], [0.0, 1e4], [20.0, 0.0], [-20.0, 0.0], [0.0, 0.0], [1e-9, 0.0]]
    )
    for rows in ([0, 1, 2, 3, 4, 5], [0, 2], [1, 3], [3], [4, 5]):
        logits = extreme[rows].to(dtype).requires_grad_()
        value = loss(logits, torch.zeros(len(rows), dtype=torch.int64))
        (gradient,) = torch.autograd.grad(value, logits)
        assert value.dtype == dtype
        assert 0 <= value.item() < math.inf
        assert gradient.isfinite().all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda z, y: losses.focal_loss(z, y, -1),
            "gamma must be finite and at least 0, got -1",
        ),
        (
            lambda z, y: losses.focal_loss(z, y, torch.ones(3)),
            r"have shape \(20,\), got \(3,\)",
        ),
        (lambda z, y: losses.focal_loss(z, y, 1, reduction="max"), "reduction must be"),
        (
            lambda z, y: losses.focal_loss(z * math.nan, y, 1),
            "logits must be finite, got nan",
        ),
        (
            lambda z, y: losses.focal_loss(
                torch.where(z == z.max(), math.inf, z), y, 1
            ),
            "finite, got inf in row",
        ),
        (
            lambda z, y: losses.focal_loss(z - math.inf, y, 1),
            "logits must leave a class unmasked, got only -inf in row 0",
        ),
        (
            lambda z, y: losses.focal_loss(z.scatter(1, y[:, None], -math.inf), y, 1),
            r"labels must not name a masked class, got class \d in row 0",
        ),
        (
            lambda z, _: losses.brier_loss(z, z.softmax(1) * 1.1),
            "soft labels must be probabilities.* got a sum of 1.1 in row 0",
        ),
        (
            lambda z, _: losses.brier_loss(
                z[:, :3] * 0, torch.tensor([[1.5, -1, 0.5]] * 20)
            ),
            "soft labels must be probabilities",
        ),
        (
            lambda z, _: losses.focal_loss(
                torch.where(z == z.max(), -math.inf, z), z.softmax(1), 1
            ),
            "soft labels must give masked classes probability 0, but row",
        ),
        (
            lambda z, _: losses.mmce(z, z.softmax(1)),
            "class indices .*got torch.float64 of shape",
        ),
        (
            lambda z, y: losses.weighted_mmce(
                z[:1].expand(16_385, -1), y[:1].expand(16_385)
            ),
            "at most 16,384 rows, because MMCE compares all pairs, got 16,385",
        ),
        (lambda z, y: losses.brier_loss(z, y + 5), "labels must be in"),
        (lambda z, y: losses.brier_loss(z[0], y), "logits must have shape"),
        (
            lambda z, y: losses.label_smoothing_loss(z, y, smoothing=0.81),
            r"smoothing must be in \[0, 0.8\] for 5",
        ),
        (
            lambda z, y: losses.rescaled_cross_entropy(z, y, 0.0),
            "inverse_temperature must be finite and positive",
        ),
        (
            lambda z, y: losses.mmce(z, y, kernel_width=0.0),
            "kernel_width must be finite and positive, got 0",
        ),
        (lambda z, y: losses.weighted_mmce(z[:0], y[:0]), "logits must have shape"),
        (
            lambda *_: losses.sample_dependent_gamma(torch.tensor([0.5, 1.1])),
            r"true_probs must be in \[0, 1\]",
        ),
        (
            lambda *_: losses.sample_dependent_gamma(torch.ones(2), policy="52"),
            "policy must be one of '53', '532', got",
        ),
        (
            lambda *_: losses.gradient_ratio(torch.tensor(-0.1), 1),
            r"true_probs must be in \[0, 1\]",
        ),
        (lambda *_: losses.gamma_star(0.5), r"p0 must be in \(0, 0.5\), got 0.5"),
        (
            lambda *_: losses.scheduled_gamma(-1),
            "epoch must be an integer of at least 0, got -1",
        ),
        (
            lambda *_: losses.scheduled_gamma(1, gammas=(1.0,)),
            "gammas must hold one value more than milestones",
        ),
        (
            lambda *_: losses.scheduled_gamma(1, milestones=(5, 5)),
            "milestones must ascend",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call: Loss, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(*batch())


# ---- the focal loss and its theory


def test_focal_loss_by_hand_and_gamma_zero_is_the_cross_entropy() -> None:
    torch.testing.assert_close(
        losses.focal_loss(*batch(), 0), F.cross_entropy(*batch())
    )
    # The true classes have probabilities 3/4 and 1/2. With gamma 2 the losses are
    # (1/16) log(4/3) and (1/4) log 2.
    logits, labels = confident(0.75, 0.5), torch.tensor([0, 0])
    expected = torch.tensor(
        [math.log(4 / 3) / 16, math.log(2) / 4], dtype=torch.float64
    )
    torch.testing.assert_close(
        losses.focal_loss(logits, labels, 2, reduction="none"), expected
    )
    torch.testing.assert_close(losses.focal_loss(logits, labels, 2), expected.mean())
    torch.testing.assert_close(
        losses.focal_loss(logits, labels, 2, reduction="sum"), expected.sum()
    )


@pytest.mark.parametrize("gamma", [0.1, 0.5, 1.0, 5.0])
def test_the_gradient_is_zero_at_p_1_and_that_of_the_cross_entropy_at_p_0(
    gamma: float,
) -> None:
    # This is Proposition 1 at p = 1 (first row) and p = 0 (second row). In the first
    # row, the gradient of the released code's (1 - p) ** gamma is NaN if gamma is below
    # 1.
    logits = torch.tensor([[1e4, 0.0], [0.0, 1e4]], requires_grad=True)
    (gradient,) = torch.autograd.grad(
        losses.focal_loss(logits, torch.tensor([0, 0]), gamma), logits
    )
    assert gradient.tolist() == [[0, 0], [-0.5, 0.5]]


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.0, 7.0])
def test_gradient_ratio_is_the_printed_formula_and_has_its_limits(gamma: float) -> None:
    p = torch.linspace(0.001, 0.999, 999, dtype=torch.float64)
    expected = torch.tensor(
        [ratio(value, gamma) for value in p.tolist()], dtype=torch.float64
    )
    torch.testing.assert_close(losses.gradient_ratio(p, gamma), expected)
    ends = losses.gradient_ratio(torch.tensor([0.0, 1.0], dtype=torch.float64), gamma)
    assert ends.tolist() == [1, 0]
    assert losses.gradient_ratio(p, 0.0).eq(1).all()
    torch.testing.assert_close(
        losses.gradient_ratio(p, torch.full((999,), gamma)), expected
    )
    assert (
        losses.gradient_ratio(
            p.float(), torch.tensor([gamma], dtype=torch.float64)
        ).dtype
        == torch.float32
    )


@pytest.mark.parametrize("p0", list(GAMMA_STARS))
def test_gamma_star_is_the_smallest_gamma_that_keeps_g_below_one(p0: float) -> None:
    star = losses.gamma_star(p0).item()
    assert star == pytest.approx(GAMMA_STARS[p0], abs=0.006)
    assert ratio(p0, star) == pytest.approx(1, abs=1e-9)
    # Proposition 2: g <= 1 for every p >= p0 and gamma >= gamma*, with equality only at
    # (p0, gamma*).
    for p, gamma in product(
        np.linspace(p0, 0.999, 60), star * np.array([1, 1.001, 1.1, 2, 5])
    ):
        assert ratio(p, gamma) <= 1 + 1e-9
        assert ratio(p, gamma) < 1 - 1e-9 or (p == p0 and gamma == star)
    assert ratio(p0, 0.99 * star) > 1


# The expected values come from the formula with Lambert's W, evaluated in 400 digits
# with mpmath. In float64, the formula would lose at least half of the digits for p0
# below 0.5.
@pytest.mark.parametrize(
    ("p0", "star"),
    [
        (1e-12, 4919469619473.81),
        (0.001, 3113.12195861473),
        (0.49, 0.0524473316184584),
        (0.499, 0.00512265554811782),
        (0.49999, 5.10952387039709e-5),
        (0.4999999, 5.10939284454565e-7),
        (0.49999999999, 5.10939194381845e-11),
    ],
)
def test_gamma_star_is_exact_from_the_smallest_probability_to_one_half(
    p0: float, star: float
) -> None:
    assert losses.gamma_star(p0).item() == pytest.approx(star, rel=1e-12)


@pytest.mark.parametrize(
    ("policy", "expected"), [("53", [5, 5, 3, 3, 3, 3]), ("532", [5, 5, 3, 3, 2, 2])]
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sample_dependent_gamma_changes_at_its_thresholds(
    policy: str, expected: list[int], dtype: torch.dtype
) -> None:
    probs = torch.tensor(
        [0.0, 0.199, 0.2, 0.499, 0.5, 1.0], dtype=dtype, requires_grad=True
    )
    gamma = losses.sample_dependent_gamma(probs, policy=policy)
    assert (gamma.tolist(), gamma.dtype, gamma.requires_grad) == (
        expected,
        dtype,
        False,
    )


def test_scheduled_gamma_follows_the_epochs_of_the_paper() -> None:
    assert [losses.scheduled_gamma(epoch) for epoch in (0, 99, 100, 249, 250, 349)] == [
        5,
        5,
        3,
        3,
        1,
        1,
    ]
    assert losses.scheduled_gamma(300, gammas=(5, 3, 2)) == 2
    assert [
        losses.scheduled_gamma(epoch, milestones=(30, 70)) for epoch in (29, 30, 70)
    ] == [5, 3, 1]
    assert losses.scheduled_gamma(7, gammas=(3.0,), milestones=()) == 3


# ---- the cross-entropy at an inverse temperature, and the baselines


def test_brier_loss_is_the_brier_score() -> None:
    logits, labels = batch()
    torch.testing.assert_close(
        losses.brier_loss(logits, labels),
        metrics.brier_score(logits.softmax(1), labels),
    )
    # The wrong class has probability 1, so the loss is (0 - 1)^2 + (1 - 0)^2 = 2.
    assert losses.brier_loss(torch.tensor([[0.0, 1e4]]), torch.tensor([0])).item() == 2


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("void", [-100, 1])
def test_weighted_smoothing_is_torchs_for_indices_and_one_hot_labels(
    reduction: str, void: int
) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 5, 3, 2, generator=generator, dtype=torch.float64)
    labels = torch.randint(5, (4, 3, 2), generator=generator)
    weight = torch.tensor([0.5, 1, 2, 0, 3], dtype=torch.float64)
    options = {"ignore_index": void, "reduction": reduction}
    loss = losses.LabelSmoothingLoss(0.08, weight, **options)
    # torch spreads the smoothing over the true class, too.
    torchs = F.cross_entropy(logits, labels, weight, label_smoothing=0.1, **options)
    torch.testing.assert_close(loss(logits, labels), torchs)
    one_hot = F.one_hot(labels, 5).movedim(-1, 1).double()
    if void == -100 and reduction != "mean":
        torch.testing.assert_close(loss(logits, one_hot), torchs)


def test_smoothing_is_less_than_torchs_by_the_true_classs_share() -> None:
    logits, labels = batch()
    ours = losses.label_smoothing_loss(logits, labels, smoothing=0.05)
    torch.testing.assert_close(
        ours, F.cross_entropy(logits, labels, label_smoothing=0.05 * 5 / 4)
    )
    assert abs(ours - F.cross_entropy(logits, labels, label_smoothing=0.05)) > 1e-3
    # The loss is smallest if the probabilities equal the smoothed labels.
    target = (
        torch.tensor([[0.05 / 2, 0.95, 0.05 / 2]], dtype=torch.float64)
        .log()
        .requires_grad_()
    )
    (gradient,) = torch.autograd.grad(
        losses.label_smoothing_loss(target, torch.tensor([1]), smoothing=0.05), target
    )
    torch.testing.assert_close(gradient, torch.zeros_like(gradient))


@pytest.mark.parametrize("inverse_temperature", [0.01, 1.0, 250.0])
def test_rescaled_cross_entropy_is_scaled_once_and_divided_once(
    inverse_temperature: float,
) -> None:
    logits, labels = batch()
    value = losses.rescaled_cross_entropy(
        logits.requires_grad_(), labels, inverse_temperature
    )
    torch.testing.assert_close(
        value * inverse_temperature,
        F.cross_entropy(inverse_temperature * logits, labels),
    )
    # The gradient is (softmax(alpha z) - one-hot) / n, without a factor alpha.
    (gradient,) = torch.autograd.grad(value, logits)
    probs = torch.softmax(inverse_temperature * logits.detach(), dim=1)
    torch.testing.assert_close(gradient, (probs - F.one_hot(labels, 5)) / 20)


# ---- MMCE


def pairs_mean(
    first: list[float],
    second: list[float],
    weight: Callable[[float, float], float],
    width: float,
) -> float:
    """Mean of weight times kernel over all pairs of values in `first` and `second`."""
    return float(
        np.mean(
            [
                weight(r, s) * math.exp(-abs(r - s) / width)
                for r, s in product(first, second)
            ]
        )
    )


def slow_weighted(
    logits: Tensor, labels: Tensor, width: float, *, as_released: bool
) -> float:
    """Squared weighted MMCE, computed in double loops over right, wrong and mixed
    pairs.
    """
    confidences, predicted = torch.softmax(logits, dim=1).max(1)
    right, wrong = (
        confidences[predicted == labels].tolist(),
        confidences[predicted != labels].tolist(),
    )
    m, n = len(right), len(wrong)
    both_right = pairs_mean(right, right, lambda r, s: (1 - r) * (1 - s), width)
    both_wrong = pairs_mean(wrong, wrong, lambda r, s: r * s, width)
    mixed = pairs_mean(right, wrong, lambda r, s: (1 - r) * s, width)
    if as_released:
        return (
            both_right / (m * m + 1e-5)
            + both_wrong / (n * n + 1e-5)
            - 2 * mixed / (m * n + 1e-5)
            + 1e-10
        )
    return both_right + both_wrong - 2 * mixed


@pytest.mark.parametrize("width", [0.4, 0.05])
@pytest.mark.parametrize("released", [False, True])
def test_the_weighted_form_equals_a_double_loop(width: float, released: bool) -> None:
    logits, labels = batch(25)
    value = losses.weighted_mmce(
        logits, labels, kernel_width=width, as_released=released
    ).item()
    assert value == pytest.approx(
        math.sqrt(slow_weighted(logits, labels, width, as_released=released)), rel=1e-9
    )


def test_mmce_equals_that_of_netcal() -> None:
    logits, labels = batch(300)
    theirs = MMCE().measure(torch.softmax(logits, dim=1).numpy(), labels.numpy())
    assert losses.mmce(logits, labels).item() == pytest.approx(theirs, rel=1e-9)
    assert losses.mmce(logits, labels, as_released=True).item() == pytest.approx(
        theirs**2, rel=1e-9
    )


def test_mmce_by_hand() -> None:
    # One sample is right with confidence 0.9, and one is wrong with confidence 0.7. The
    # residuals are 0.1 and -0.7, and the kernel between them is e^(-0.2 / 0.4).
    logits, labels = confident(0.9, 0.7), torch.tensor([0, 1])
    square = 0.1**2 + 0.7**2 - 2 * 0.1 * 0.7 * math.exp(-0.5)
    assert losses.mmce(logits, labels).item() == pytest.approx(math.sqrt(square) / 2)
    # There is one right and one wrong sample, so each of the means has one term.
    assert losses.weighted_mmce(logits, labels).item() == pytest.approx(
        math.sqrt(square)
    )


def test_a_batch_of_only_right_or_wrong_samples_is_zero_only_as_released() -> None:
    all_right, labels = confident(0.9, 0.8), torch.tensor([0, 0])
    # The residuals are 0.1 and 0.2, and the kernel is e^(-1/4).
    square = (0.01 + 0.04 + 2 * 0.02 * math.exp(-0.25)) / 4
    assert losses.weighted_mmce(all_right, labels).item() == pytest.approx(
        math.sqrt(square)
    )
    assert losses.weighted_mmce(all_right, labels, as_released=True).item() == 0
    all_wrong = losses.weighted_mmce(all_right, 1 - labels).item()
    assert all_wrong == pytest.approx(
        math.sqrt(0.81 + 0.64 + 2 * 0.72 * math.exp(-0.25)) / 2
    )
