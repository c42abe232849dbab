"""Loss modules treat weights, ignored labels and shapes as torch's losses do.

Looking up a loss by its name returns the right loss.
"""

import math
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
from softmax_temperature.losses import make_loss
from softmax_temperature.params.implementations import LOSSES as NAMES
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
def test_each_name_and_its_options_make_the_right_loss(
    name: str, options: dict[str, Any], expected: Loss
) -> None:
    logits, labels = table()
    loss = make_loss(name, options)
    for epoch in (0.0, 1.5, 349.9):
        assert loss(logits, labels, epoch).item() == pytest.approx(
            expected(logits, labels).item(), rel=1e-12
        )


def test_every_loss_is_tested_and_scheduled_focal_loss_changes_at_its_milestones() -> (
    None
):
    assert {name for name, _, _ in LOSSES} == set(NAMES)
    logits, labels = table()
    changing = make_loss(
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
        make_loss(name, options)
    with pytest.raises(
        InputError, match=r"loss 'fokal': unknown loss\. Did you mean 'focal'\?"
    ):
        make_loss("fokal", options)


# ---- batches whose labels are all ignored, soft labels, masked classes, and repr

VOID = 255
FOR_VOID: dict[str, Callable[..., nn.Module]] = {
    "focal": lambda **options: FocalLoss(2.0, **options),
    "FLSD": SampleDependentFocalLoss,
    "FLSc": losses.ScheduledFocalLoss,
    "Brier": BrierLoss,
    "cross-entropy": losses.CrossEntropyLoss,
    "tempered": lambda **options: losses.TemperedCrossEntropyLoss(2.0, **options),
    "smoothing": losses.LabelSmoothingLoss,
}


@pytest.mark.parametrize("name", [*FOR_VOID, "MMCE"])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weight", [None, torch.ones(3, dtype=torch.float64)])
def test_the_loss_of_a_batch_without_labels_is_nan_zero_or_zeros_as_in_torch(
    name: str, reduction: str, weight: Tensor | None
) -> None:
    logits, labels = pixels()
    void = torch.full_like(labels, VOID, dtype=torch.uint8)
    options: dict[str, Any] = {"ignore_index": VOID, "weight": weight}
    if name == "MMCE":  # MMCE has no sum over samples.
        loss, reduction = MMCELoss(**options), "mean"
    else:
        loss = FOR_VOID[name](**options, reduction=reduction)
    for z, y in ((logits, void), (logits[:, :, 0, 0], void[:, 0, 0])):
        leaf = z.clone().requires_grad_()
        value = loss(leaf, y, 0.0)
        theirs = F.cross_entropy(
            z, y.long(), weight, ignore_index=VOID, reduction=reduction
        )
        torch.testing.assert_close(value, theirs, equal_nan=True)
        (gradient,) = torch.autograd.grad(value.sum(), leaf)
        assert not gradient.any()


def test_a_label_is_widened_before_it_is_compared_with_the_ignored_one() -> None:
    logits = torch.zeros(1, 200)
    # As a byte, -100 is 156, but the label 156 must not be ignored.
    label = torch.tensor([156], dtype=torch.uint8)
    assert FocalLoss(0.0)(logits, label).item() == pytest.approx(5.298317)  # log 200


SOFT: dict[str, tuple[nn.Module, nn.Module]] = {
    "focal": (FocalLoss(0.0), nn.CrossEntropyLoss()),
    "cross-entropy": (losses.CrossEntropyLoss(), nn.CrossEntropyLoss()),
    "smoothing": (
        losses.LabelSmoothingLoss(0.2),
        nn.CrossEntropyLoss(label_smoothing=0.2 * 3 / 2),
    ),
}


WEIGHT = torch.tensor([0.2, 1.0, 3.0], dtype=torch.float64)


# Smoothing is compared only without weights, because torch weights the smoothed part of
# a label by the weights of all classes.
@pytest.mark.parametrize(
    ("name", "weight"),
    [
        ("focal", None),
        ("focal", WEIGHT),
        ("cross-entropy", None),
        ("cross-entropy", WEIGHT),
        ("smoothing", None),
    ],
)
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_soft_labels_are_treated_as_by_torchs_cross_entropy(
    name: str, weight: Tensor | None, reduction: str
) -> None:
    logits, _ = pixels()
    soft = torch.softmax(logits.flip(0), dim=1)
    for loss in SOFT[name]:
        loss.weight, loss.reduction = weight, reduction
    ours, theirs = SOFT[name]
    for z, q in ((logits, soft), (logits[:, :, 0, 0], soft[:, :, 0, 0])):
        torch.testing.assert_close(ours(z, q), theirs(z, q))


@pytest.mark.parametrize(
    "loss",
    [
        FocalLoss(3.0),
        losses.ScheduledFocalLoss(),
        BrierLoss(),
        losses.LabelSmoothingLoss(0.1),
        losses.CrossEntropyLoss(),
        losses.TemperedCrossEntropyLoss(2.0),
    ],
    ids=lambda loss: type(loss).__name__,
)
def test_one_hot_labels_equal_their_classes(loss: nn.Module) -> None:
    logits, labels = table()
    leaf = logits.requires_grad_()
    one_hot = F.one_hot(labels, 5).double()
    value, of_classes = loss(leaf, one_hot, 0.0), loss(leaf, labels, 0.0)
    torch.testing.assert_close(value, of_classes)
    torch.testing.assert_close(
        torch.autograd.grad(value, leaf), torch.autograd.grad(of_classes, leaf)
    )


def test_soft_labels_by_hand() -> None:
    # Here p = (3/4, 1/4), q = (1/2, 1/2), and gamma is 2, so the loss is ((1/4)^2
    # log(4/3) + (3/4)^2 log 4) / 2.
    logits = torch.tensor([[3.0, 1.0]], dtype=torch.float64).log()
    soft = torch.full((1, 2), 0.5, dtype=torch.float64)
    focal = (math.log(4 / 3) / 16 + 9 * math.log(4) / 16) / 2
    assert losses.focal_loss(logits, soft, 2.0).item() == pytest.approx(focal)
    gamma = torch.tensor([2.0])
    assert losses.focal_loss(logits, soft, gamma).item() == pytest.approx(focal)
    assert losses.brier_loss(logits, soft).item() == pytest.approx(2 / 16)
    cross_entropy = (math.log(4 / 3) + math.log(4)) / 2
    assert losses.label_smoothing_loss(logits, soft).item() == pytest.approx(
        cross_entropy
    )
    value = losses.rescaled_cross_entropy(logits, soft, 1.0)
    assert value.item() == pytest.approx(cross_entropy)


def test_a_loss_that_is_not_defined_for_soft_labels_says_so() -> None:
    logits, _ = table()
    for loss in (SampleDependentFocalLoss(), MMCELoss()):
        with pytest.raises(
            ValueError,
            match=f"indices: {type(loss).__name__} is not defined for soft labels",
        ):
            loss(logits, logits.softmax(1))
    with pytest.raises(ValueError, match="ignore_index must be negative or None"):
        FocalLoss(ignore_index=2)(logits, logits.softmax(1))


MASKED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    **{name: make() for name, make in FOR_VOID.items() if name != "FLSc"},
    "FLSc": lambda z, y: losses.ScheduledFocalLoss()(z, y, 0.0),
    "MMCE": MMCELoss(),
    "mmce": losses.mmce,
    "rescaled": lambda z, y: losses.rescaled_cross_entropy(z, y, 3.0),
    "soft focal": lambda z, y: losses.focal_loss(z, one_hot(z, y), 2.0),
    "soft Brier": lambda z, y: losses.brier_loss(z, one_hot(z, y)),
    "soft smoothing": lambda z, y: losses.label_smoothing_loss(z, one_hot(z, y)),
    "soft cross-entropy": lambda z, y: losses.CrossEntropyLoss()(z, one_hot(z, y)),
    "soft rescaled": lambda z, y: losses.rescaled_cross_entropy(z, one_hot(z, y), 3.0),
}


def one_hot(logits: Tensor, labels: Tensor) -> Tensor:
    return F.one_hot(labels, logits.shape[1]).to(logits.dtype)


@pytest.mark.parametrize("name", MASKED)
@pytest.mark.parametrize("classes_left", [3, 2, 1])
def test_masked_classes_equal_absent_classes(name: str, classes_left: int) -> None:
    logits, _ = table()
    labels = torch.arange(40) % classes_left
    masked = logits.clone()
    masked[:, classes_left:] = -torch.inf
    masked.requires_grad_()
    value = MASKED[name](masked, labels)
    (gradient,) = torch.autograd.grad(value, masked)
    assert not gradient[:, classes_left:].any()
    if classes_left == 1:  # The only class that is not masked has probability 1.
        assert value.item() == pytest.approx(0, abs=1e-12)
        assert not gradient.any()
        return
    rest = logits[:, :classes_left].clone().requires_grad_()
    expected = MASKED[name](rest, labels)
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(
        gradient[:, :classes_left], torch.autograd.grad(expected, rest)[0]
    )


def test_maps_too_large_for_mmces_pairs_are_refused_before_memory_runs_out() -> None:
    logits = torch.zeros(2, 2, 256, 256)
    with pytest.raises(ValueError, match=r"got 131,072 \(its pairs would take 64 GiB"):
        MMCELoss()(logits, torch.zeros(2, 256, 256, dtype=torch.int64))


def test_a_weight_of_another_number_of_classes_is_refused() -> None:
    logits, labels = table()
    for name, make in FOR_VOID.items():
        for targets in (labels, logits.softmax(1)):
            if name == "FLSD" and targets is not labels:
                continue
            with pytest.raises(ValueError, match=r"weight must have shape \(5,\)"):
                make(weight=torch.ones(3))(logits, targets, 0.0)


def test_a_loss_shows_its_arguments() -> None:
    assert (
        repr(FocalLoss(2.0))
        == "FocalLoss(gamma=2.0, ignore_index=-100, reduction='mean')"
    )
    weighted = SampleDependentFocalLoss("532", torch.tensor([1.0, 2.0]), ignore_index=3)
    assert "policy='532', ignore_index=3" in repr(weighted)
    assert repr(weighted).endswith("weight=[1.0, 2.0])")
    assert "penalty=2.0, as_released=True" in repr(MMCELoss(as_released=True))
    assert "weight=<1000 classes>" in repr(BrierLoss(torch.ones(1000)))
    assert "smoothing=0.05" in repr(losses.LabelSmoothingLoss())
    assert "gammas=(5.0, 3.0, 1.0)" in repr(losses.ScheduledFocalLoss())
    assert "inverse_temperature=2.0" in repr(losses.TemperedCrossEntropyLoss(2.0))


def test_a_loss_that_depends_on_the_epoch_refuses_to_guess_it() -> None:
    with pytest.raises(ValueError, match="epoch must be given"):
        losses.ScheduledFocalLoss()(*table())


def test_an_unknown_reduction_is_refused_at_once() -> None:
    for make in FOR_VOID.values():
        with pytest.raises(ValueError, match="reduction must be one of 'mean'"):
            make(reduction="max")


# ---- transforms of torch: vmap, gradients per sample, compilation

TRANSFORMED: dict[str, Callable[..., Tensor]] = {
    "cross-entropy": losses.CrossEntropyLoss(),
    "focal": FocalLoss(),
    "weighted focal": FocalLoss(weight=torch.tensor([1.0, 2.0, 3.0])),
    "focal, none": FocalLoss(reduction="none"),
    "focal, all count": FocalLoss(ignore_index=None),
    "FLSD": SampleDependentFocalLoss(),
    "Brier": BrierLoss(),
    "label smoothing": losses.LabelSmoothingLoss(),
    "weighted smoothing": losses.LabelSmoothingLoss(
        weight=torch.tensor([1.0, 2.0, 3.0])
    ),
    "tempered": losses.TemperedCrossEntropyLoss(2.0),
    "MMCE": MMCELoss(),
    "weighted MMCE": MMCELoss(weight=torch.tensor([1.0, 2.0, 3.0]), as_released=True),
}


def several_batches(name: str) -> tuple[Tensor, Tensor]:
    """Four batches. A fifth of the labels are ignored unless all must count."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(4, 20, 3, generator=generator, dtype=torch.float64)
    labels = torch.randint(3, (4, 20), generator=generator)
    if name != "focal, all count":
        labels[:, ::5] = -100
    return logits, labels


@pytest.mark.parametrize("name", TRANSFORMED)
def test_losses_and_their_gradients_are_mapped_over_batches(name: str) -> None:
    loss = TRANSFORMED[name]
    logits, labels = several_batches(name)
    logits.requires_grad_()
    each = torch.stack([loss(*batch) for batch in zip(logits, labels, strict=True)])
    (gradient,) = torch.autograd.grad(each.sum(), logits)
    batches = logits.detach()
    torch.testing.assert_close(torch.vmap(loss)(batches, labels), each.detach())
    slope = torch.func.grad(lambda rows, classes: loss(rows, classes).sum())
    torch.testing.assert_close(torch.vmap(slope)(batches, labels), gradient)
    torch.testing.assert_close(slope(batches[0], labels[0]), gradient[0])


@pytest.mark.parametrize("name", TRANSFORMED)
def test_losses_compile_into_one_graph(name: str) -> None:
    logits, labels = several_batches(name)
    compiled = torch.compile(TRANSFORMED[name], fullgraph=True, backend="eager")
    expected = TRANSFORMED[name](logits[0], labels[0])
    torch.testing.assert_close(compiled(logits[0], labels[0]), expected)


def test_a_small_batch_inside_a_function_transform_is_not_kept_for_the_next_call() -> (
    None
):
    loss = FocalLoss()
    logits, labels = several_batches("focal")
    rows = logits[0, :6]
    gradient = torch.func.grad(lambda values: loss(values, labels[0, :6]))
    first = gradient(rows)
    second = gradient(rows)
    torch.testing.assert_close(first, second)
