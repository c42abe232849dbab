"""Each objective is the loss that it is named after."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature import losses
from softmax_temperature.losses import OBJECTIVES, make_objective
from softmax_temperature.runner.errors import InputError

Loss = Callable[[Tensor, Tensor], Tensor]


def batch() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(40, 5, generator=generator, dtype=torch.float64)
    return logits, torch.randint(5, (40,), generator=generator)


def sample_dependent(policy: str) -> Loss:
    return lambda z, y: losses.focal_loss(
        z, y, losses.sample_dependent_gamma(losses.true_class_probs(z, y), policy=policy)
    )


def with_mmce(weight: float, **options: Any) -> Loss:
    return lambda z, y: F.cross_entropy(z, y) + weight * losses.weighted_mmce(z, y, **options)


LOSSES: list[tuple[str, dict[str, Any], Loss]] = [
    ("cross_entropy", {}, F.cross_entropy),
    ("brier", {}, losses.brier_loss),
    ("label_smoothing", {}, losses.label_smoothing_loss),
    ("label_smoothing", {"smoothing": 0.2}, lambda z, y: losses.label_smoothing_loss(z, y, smoothing=0.2)),
    ("focal", {"gamma": 0.0}, F.cross_entropy),
    ("focal", {"gamma": 3.0}, lambda z, y: losses.focal_loss(z, y, 3.0)),
    ("tempered_cross_entropy", {"inverse_temperature": 0.3}, lambda z, y: F.cross_entropy(0.3 * z, y)),
    ("mmce", {}, with_mmce(2.0)),
    ("mmce", {"weight": 5.0, "as_released": True}, with_mmce(5.0, as_released=True)),
    ("sample_dependent_focal", {}, sample_dependent("53")),
    ("sample_dependent_focal", {"policy": "532"}, sample_dependent("532")),
    ("scheduled_focal", {"gammas": [4.0], "milestones": []}, lambda z, y: losses.focal_loss(z, y, 4.0)),
]


@pytest.mark.parametrize(("name", "options", "expected"), LOSSES)
def test_each_is_the_loss_it_names(name: str, options: dict[str, Any], expected: Loss) -> None:
    logits, labels = batch()
    objective = make_objective(name, options)
    for position in (0.0, 1.5, 349.9):
        assert objective(logits, labels, position).item() == pytest.approx(expected(logits, labels).item(), rel=1e-12)


def test_every_loss_is_tested_and_scheduled_focal_loss_changes_at_its_milestones() -> None:
    assert {name for name, _, _ in LOSSES} == set(OBJECTIVES)
    logits, labels = batch()
    changing = make_objective("scheduled_focal", {"gammas": [5.0, 3.0, 1.0], "milestones": [100, 250]})
    for position, gamma in ((0, 5), (99.99, 5), (100, 3), (249.99, 3), (250, 1), (350, 1)):
        assert torch.equal(changing(logits, labels, position), losses.focal_loss(logits, labels, float(gamma)))


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("cross_entropy", {"gamma": 1.0}, "gamma"),
        ("focal", {"gamma": -1.0}, "gamma must be finite and at least 0, got -1.0"),
        ("mmce", {"as_released": "yes"}, "as_released must be true or false"),
        ("label_smoothing", {"smoothing": 1.0}, "smoothing"),
        ("sample_dependent_focal", {"policy": "35"}, "'53', '532'"),
        ("scheduled_focal", {"gammas": [5.0, 3.0, 1.0], "milestones": [250, 100]}, "milestones must ascend"),
    ],
)
def test_a_wrong_option_is_refused_before_any_training(name: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=rf"loss '{name}': does not take the options .*{says}.*Correct `options`"):
        make_objective(name, options)
    with pytest.raises(InputError, match=r"loss 'fokal': no such loss\. Did you mean 'focal'\?"):
        make_objective("fokal", options)
