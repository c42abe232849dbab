"""The losses as modules treat weights, ignored labels and shapes as torch does; an
objective is what its name says.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from softmax_temperature import (
    BrierLoss,
    FocalLoss,
    MMCELoss,
    SampleDependentFocalLoss,
    losses,
)
from softmax_temperature.losses import OBJECTIVES, make_objective
from softmax_temperature.runner.errors import InputError

MODULES = (FocalLoss(3.0), SampleDependentFocalLoss(), BrierLoss(), MMCELoss())


def pixels(ignored: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(4, 3, 5, 2, generator=generator, dtype=torch.float64)
    labels = torch.randint(3, (4, 5, 2), generator=generator)
    labels.view(-1)[:ignored] = -100
    return logits, labels


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize(
    "weight", [None, torch.tensor([0.2, 1.0, 3.0], dtype=torch.float64)]
)
@pytest.mark.parametrize("ignore_index", [-100, 2])
def test_focal_loss_with_gamma_zero_is_torchs_cross_entropy(
    reduction: str, weight: Any, ignore_index: int
) -> None:
    options: dict[str, Any] = {"ignore_index": ignore_index, "reduction": reduction}
    logits, labels = pixels(ignored=7 if ignore_index == -100 else 0)
    ours, theirs = (
        FocalLoss(0.0, weight, **options),
        nn.CrossEntropyLoss(weight, **options),
    )
    torch.testing.assert_close(ours(logits, labels), theirs(logits, labels))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: type(module).__name__)
def test_ignored_pixels_change_neither_value_nor_gradient(module: nn.Module) -> None:
    logits, labels = pixels(ignored=6)
    rows, classes = (
        logits.movedim(1, -1).reshape(-1, 3).requires_grad_(),
        labels.flatten(),
    )
    value = module(rows, classes)
    (gradient,) = torch.autograd.grad(value, rows)
    assert value.item() == pytest.approx(
        module(rows[6:], classes[6:]).item(), rel=1e-12
    )
    assert value.item() == pytest.approx(module(logits, labels).item(), rel=1e-12)
    assert not gradient[:6].any()
    assert gradient[6:].any(1).all()


def test_a_weight_multiplies_each_samples_loss() -> None:
    logits, labels, weight = (
        torch.tensor([[2.0, 0.0], [0.0, 1.0]]),
        torch.tensor([0, 1]),
        torch.tensor([1.0, 3.0]),
    )
    for module, each in (
        (BrierLoss(weight), losses.brier_loss(logits, labels, reduction="none")),
        (
            SampleDependentFocalLoss("53", weight),
            losses.focal_loss(logits, labels, 3.0, reduction="none"),
        ),
    ):
        assert module(logits, labels).item() == pytest.approx(
            (each[0] + 3 * each[1]).item() / 4, rel=1e-6
        )
    penalty = 2 * losses.weighted_mmce(logits, labels)
    expected = F.cross_entropy(logits, labels, weight) + penalty
    assert MMCELoss(weight=weight)(logits, labels).item() == pytest.approx(
        expected.item(), rel=1e-6
    )


def test_labels_of_another_shape_are_refused() -> None:
    logits, labels = pixels()
    with pytest.raises(ValueError, match=r"labels must have shape \(4, 5, 2\)"):
        FocalLoss()(logits, labels[:, 0])


Loss = Callable[[Tensor, Tensor], Tensor]


def table() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(40, 5, generator=generator, dtype=torch.float64)
    return logits, torch.randint(5, (40,), generator=generator)


def sample_dependent(policy: str) -> Loss:
    return lambda z, y: losses.focal_loss(
        z,
        y,
        losses.sample_dependent_gamma(losses.true_class_probs(z, y), policy=policy),
    )


def with_mmce(weight: float, **options: Any) -> Loss:
    return lambda z, y: (
        F.cross_entropy(z, y) + weight * losses.weighted_mmce(z, y, **options)
    )


LOSSES: list[tuple[str, dict[str, Any], Loss]] = [
    ("cross_entropy", {}, F.cross_entropy),
    ("brier", {}, losses.brier_loss),
    ("label_smoothing", {}, losses.label_smoothing_loss),
    (
        "label_smoothing",
        {"smoothing": 0.2},
        lambda z, y: losses.label_smoothing_loss(z, y, smoothing=0.2),
    ),
    ("focal", {"gamma": 0.0}, F.cross_entropy),
    ("focal", {"gamma": 3.0}, lambda z, y: losses.focal_loss(z, y, 3.0)),
    (
        "tempered_cross_entropy",
        {"inverse_temperature": 0.3},
        lambda z, y: F.cross_entropy(0.3 * z, y),
    ),
    ("mmce", {}, with_mmce(2.0)),
    ("mmce", {"weight": 5.0, "as_released": True}, with_mmce(5.0, as_released=True)),
    ("sample_dependent_focal", {}, sample_dependent("53")),
    ("sample_dependent_focal", {"policy": "532"}, sample_dependent("532")),
    (
        "scheduled_focal",
        {"gammas": [4.0], "milestones": []},
        lambda z, y: losses.focal_loss(z, y, 4.0),
    ),
]


@pytest.mark.parametrize(("name", "options", "expected"), LOSSES)
def test_each_is_the_loss_it_names(
    name: str, options: dict[str, Any], expected: Loss
) -> None:
    logits, labels = table()
    objective = make_objective(name, options)
    for position in (0.0, 1.5, 349.9):
        assert objective(logits, labels, position).item() == pytest.approx(
            expected(logits, labels).item(), rel=1e-12
        )


def test_every_loss_is_tested_and_scheduled_focal_loss_changes_at_its_milestones() -> (
    None
):
    assert {name for name, _, _ in LOSSES} == set(OBJECTIVES)
    logits, labels = table()
    changing = make_objective(
        "scheduled_focal", {"gammas": [5.0, 3.0, 1.0], "milestones": [100, 250]}
    )
    for position, gamma in (
        (0, 5),
        (99.99, 5),
        (100, 3),
        (249.99, 3),
        (250, 1),
        (350, 1),
    ):
        assert torch.equal(
            changing(logits, labels, position),
            losses.focal_loss(logits, labels, float(gamma)),
        )


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("cross_entropy", {"gamma": 1.0}, "gamma"),
        ("focal", {"gamma": -1.0}, "gamma must be finite and at least 0, got -1.0"),
        ("mmce", {"as_released": "yes"}, "as_released must be true or false"),
        ("label_smoothing", {"smoothing": 1.0}, "smoothing"),
        ("sample_dependent_focal", {"policy": "35"}, "'53', '532'"),
        (
            "scheduled_focal",
            {"gammas": [5.0, 3.0, 1.0], "milestones": [250, 100]},
            "milestones must ascend",
        ),
    ],
)
def test_a_wrong_option_is_refused_before_any_training(
    name: str, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(
        InputError,
        match=rf"loss '{name}': does not take the options .*{says}.*Correct `options`",
    ):
        make_objective(name, options)
    with pytest.raises(
        InputError, match=r"loss 'fokal': no such loss\. Did you mean 'focal'\?"
    ):
        make_objective("fokal", options)
