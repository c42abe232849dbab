"""The losses as modules treat weights, ignored labels and shapes as torch's cross-entropy does."""

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from softmax_temperature import BrierLoss, FocalLoss, MMCELoss, SampleDependentFocalLoss, losses

MODULES = (FocalLoss(3.0), SampleDependentFocalLoss(), BrierLoss(), MMCELoss())


def pixels(ignored: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = 2 * torch.randn(4, 3, 5, 2, generator=generator, dtype=torch.float64)
    labels = torch.randint(3, (4, 5, 2), generator=generator)
    labels.view(-1)[:ignored] = -100
    return logits, labels


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weight", [None, torch.tensor([0.2, 1.0, 3.0], dtype=torch.float64)])
@pytest.mark.parametrize("ignore_index", [-100, 2])
def test_focal_loss_with_gamma_zero_is_torchs_cross_entropy(reduction: str, weight: Any, ignore_index: int) -> None:
    options: dict[str, Any] = {"ignore_index": ignore_index, "reduction": reduction}
    logits, labels = pixels(ignored=7 if ignore_index == -100 else 0)
    ours, theirs = FocalLoss(0.0, weight, **options), nn.CrossEntropyLoss(weight, **options)
    torch.testing.assert_close(ours(logits, labels), theirs(logits, labels))


@pytest.mark.parametrize("module", MODULES, ids=lambda module: type(module).__name__)
def test_ignored_pixels_change_neither_value_nor_gradient(module: nn.Module) -> None:
    logits, labels = pixels(ignored=6)
    rows, classes = logits.movedim(1, -1).reshape(-1, 3).requires_grad_(), labels.flatten()
    value = module(rows, classes)
    (gradient,) = torch.autograd.grad(value, rows)
    assert value.item() == pytest.approx(module(rows[6:], classes[6:]).item(), rel=1e-12)
    assert value.item() == pytest.approx(module(logits, labels).item(), rel=1e-12)
    assert not gradient[:6].any()
    assert gradient[6:].any(1).all()


def test_a_weight_multiplies_each_samples_loss() -> None:
    logits, labels, weight = torch.tensor([[2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 1]), torch.tensor([1.0, 3.0])
    for module, each in (
        (BrierLoss(weight), losses.brier_loss(logits, labels, reduction="none")),
        (SampleDependentFocalLoss("53", weight), losses.focal_loss(logits, labels, 3.0, reduction="none")),
    ):
        assert module(logits, labels).item() == pytest.approx((each[0] + 3 * each[1]).item() / 4, rel=1e-6)
    penalty = 2 * losses.weighted_mmce(logits, labels)
    expected = F.cross_entropy(logits, labels, weight) + penalty
    assert MMCELoss(weight=weight)(logits, labels).item() == pytest.approx(expected.item(), rel=1e-6)


def test_labels_of_another_shape_are_refused() -> None:
    logits, labels = pixels()
    with pytest.raises(ValueError, match=r"labels must have shape \(4, 5, 2\)"):
        FocalLoss()(logits, labels[:, 0])
