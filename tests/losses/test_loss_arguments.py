"""The losses refuse invalid arguments before they use them as indices."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from softmax_temperature import (
    BrierLoss,
    Cooling,
    CosineClassifier,
    FocalLoss,
    MMCELoss,
    SampleDependentFocalLoss,
    losses,
    metrics,
    scaling,
)
from softmax_temperature.losses import (
    CrossEntropyLoss,
    LabelSmoothingLoss,
    ScheduledFocalLoss,
    focal_loss,
    mmce,
    true_class_probs,
)
from softmax_temperature.metrics.checks import ArgumentError

LOSSES = (FocalLoss, SampleDependentFocalLoss, BrierLoss, MMCELoss)
every_loss = pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)


def batch(classes: int = 3) -> tuple[Tensor, Tensor]:
    logits = torch.randn(6, classes, generator=torch.Generator().manual_seed(0))
    return logits, torch.arange(6) % classes


@every_loss
@pytest.mark.parametrize(
    ("dtype", "label"), [(torch.uint8, 156), (torch.int8, 100), (torch.int16, 199)]
)
def test_a_class_of_a_narrow_type_is_not_the_ignored_label(
    loss: Any, dtype: torch.dtype, label: int
) -> None:
    logits, _ = batch(classes=200)
    labels = torch.full((6,), label)
    for ignored in (-100, label - 256, label + 256):
        module = loss(ignore_index=ignored)
        narrow = module(logits, labels.to(dtype))
        assert narrow.item() == pytest.approx(module(logits, labels).item())
        assert narrow.item() > 1


@every_loss
@pytest.mark.parametrize("classes", [1, 2, 4])
def test_a_weight_has_one_number_for_each_class(loss: Any, classes: int) -> None:
    with pytest.raises(ValueError, match=r"weight must have shape \(3,\)"):
        loss(weight=torch.ones(classes))(*batch())


@every_loss
def test_an_infinity_that_was_replaced_is_refused(loss: Any) -> None:
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
        logits, labels = batch()
        logits = torch.cat([logits] * 5).to(dtype)
        logits[17, 2] = torch.finfo(dtype).max
        labels = labels.repeat(5)
        with pytest.raises(ValueError, match=r"the largest float, .* row 17, class 2"):
            loss()(logits, labels)
        # The dtype's lowest number is accepted, because users mask classes with it.
        logits[17, 2] = torch.finfo(dtype).min
        assert torch.isfinite(loss()(logits, labels))


@every_loss
def test_the_remedy_for_squeezed_logits_of_masks_is_to_make_two_classes(
    loss: Any,
) -> None:
    logits = torch.randn(4, 6, 5, generator=torch.Generator().manual_seed(0))
    masks = (logits > 0).long()
    with pytest.raises(ValueError, match=r"give torch.stack\(\[torch.zeros_like"):
        loss()(logits, masks)
    both = torch.stack([torch.zeros_like(logits), logits], dim=1)
    assert torch.isfinite(loss()(both, masks))
    with pytest.raises(ValueError, match="each column is a classifier of two classes"):
        loss()(logits[:, 0], masks[:, 0])


@pytest.mark.parametrize("call", [FocalLoss(), metrics.top_accuracy])
def test_the_remedy_for_a_list_of_batches_is_to_join_them(call: Any) -> None:
    logits, labels = batch()
    with pytest.raises(TypeError, match=r"got list\. Join the batches: torch.cat"):
        call(list(logits.split(4)), list(labels.split(4)))


@pytest.mark.parametrize("epoch", ["3", float("nan"), float("inf"), -1, True, [1]])
def test_an_epoch_is_a_number(epoch: Any) -> None:
    with pytest.raises(ValueError, match="epoch must be a number of at least 0, got"):
        losses.ScheduledFocalLoss()(*batch(), epoch)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"gammas": 3.0}, "gammas must be a list of numbers, got 3.0"),
        ({"gammas": "531"}, "gammas must be finite and at least 0, got '5'"),
        ({"milestones": 100}, "milestones must be a list of numbers, got 100"),
        ({"milestones": ("1", "2")}, "milestones must be an integer .*, got '1'"),
        ({"milestones": (1.5, 2)}, "milestones must be an integer .*, got 1.5"),
    ],
)
def test_a_schedule_is_two_lists_of_numbers(options: Any, fault: str) -> None:
    for schedule in (
        lambda: losses.ScheduledFocalLoss(**options),
        lambda: losses.scheduled_gamma(0, **options),
    ):
        with pytest.raises(ValueError, match=fault):
            schedule()


@every_loss
def test_a_weight_is_a_tensor_of_finite_numbers(loss: Any) -> None:
    for weight in (torch.tensor([1.0, -1.0, 1.0]), torch.tensor([1.0, torch.nan, 1.0])):
        with pytest.raises(ValueError, match="weight must be finite and at least 0"):
            loss(weight=weight)
    with pytest.raises(ValueError, match=r"weight must have shape \(classes,\)"):
        loss(weight=torch.ones(3, 1))
    with pytest.raises(TypeError, match="weight must be a torch tensor, got list"):
        loss(weight=[1.0, 1.0, 1.0])


@every_loss
def test_shapes_are_checked_before_they_are_indexed(loss: Any) -> None:
    logits, labels = batch()
    one_hot = nn.functional.one_hot(labels, 3)
    module = loss()
    for bad_logits, bad_labels, fault in (
        (logits, labels[:, None], r"labels must have shape \(6,\).*got \(6, 1\)"),
        (logits, one_hot, r"labels must have shape \(6,\).*got \(6, 3\)"),
        (logits[:, 0], labels, r"logits must have shape \(n, classes\).*got \(6,\)"),
        (logits.T, labels, r"labels must have shape \(3,\).*got \(6,\)"),
        (logits, labels + 1, "got 3.*subtract 1"),
    ):
        with pytest.raises(ValueError, match=fault):
            module(bad_logits, bad_labels)


def test_label_maps_of_another_shape_are_named() -> None:
    logits = torch.randn(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
    labels = torch.zeros(2, 4, 5, dtype=torch.int64)
    for bad_logits, bad_labels, remedy in (
        (logits, labels[:, None], r"labels\[:, 0\]"),
        (logits, nn.functional.one_hot(labels, 3).movedim(-1, 1), "argmax"),
        (logits.movedim(1, -1), labels, "second dimension"),
    ):
        with pytest.raises(ValueError, match=remedy):
            FocalLoss()(bad_logits, bad_labels)


def test_arguments_are_checked_when_a_loss_is_made() -> None:
    with pytest.raises(ValueError, match=r"reduction must be one of .* got 'avg'"):
        FocalLoss(reduction="avg")
    with pytest.raises(ValueError, match=r"gamma must be finite .* got '3'"):
        FocalLoss("3")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="ignore_index must be an integer"):
        BrierLoss(ignore_index=1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("penalty", [losses.mmce, losses.weighted_mmce])
def test_the_option_as_released_of_a_penalty_must_be_true_or_false(
    penalty: Any,
) -> None:
    with pytest.raises(TypeError, match="as_released must be true or false"):
        penalty(*batch(), as_released="no")


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
@pytest.mark.parametrize("penalty", [losses.mmce, losses.weighted_mmce])
def test_unsigned_labels_have_the_penalty_of_others(
    penalty: Any, dtype: torch.dtype
) -> None:
    logits, labels = batch()
    assert penalty(logits, labels.to(dtype)) == penalty(logits, labels)


def test_soft_labels_have_no_probability_of_a_true_class() -> None:
    logits, _ = batch()
    with pytest.raises(ValueError, match="soft labels have no true class"):
        losses.true_class_probs(logits, torch.softmax(logits, dim=1))


@pytest.mark.parametrize(
    "value",
    ["2", None, [2.0], torch.ones(3), True, False, np.True_, torch.tensor(True)],
)
@pytest.mark.parametrize(
    ("name", "build"),
    [
        ("gamma", FocalLoss),
        ("gammas", lambda value: losses.ScheduledFocalLoss((value, 3.0, 1.0))),
        ("penalty", MMCELoss),
        ("smoothing", losses.LabelSmoothingLoss),
        ("inverse_temperature", losses.TemperedCrossEntropyLoss),
        ("gamma", lambda value: losses.focal_loss(*batch(), gamma=value)),
        (
            "inverse_temperature",
            lambda value: losses.rescaled_cross_entropy(*batch(), value),
        ),
        ("temperature", lambda value: scaling.apply_temperature(batch()[0], value)),
        (
            "temperature",
            lambda value: scaling.temperature_interval(*batch(), temperature=value),
        ),
        ("factor", lambda value: Cooling(nn.Linear(2, 3), factor=value)),
        ("inverse_temperature", lambda value: CosineClassifier(4, 3, value)),
    ],
)
def test_anything_but_one_number_is_refused(name: str, build: Any, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name} must be"):
        build(value)


@pytest.mark.parametrize("dtype", [torch.bool, torch.complex64])
def test_a_gamma_for_each_sample_is_a_real_number(dtype: torch.dtype) -> None:
    with pytest.raises(ValueError, match=f"gamma must be real numbers, got {dtype}"):
        losses.focal_loss(*batch(), gamma=torch.ones(6, dtype=dtype))


def test_an_unhashable_policy_and_complex_weights_are_refused() -> None:
    with pytest.raises(ValueError, match="policy must be one of"):
        SampleDependentFocalLoss(["53"])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="weight must be real"):
        FocalLoss(weight=torch.ones(3, dtype=torch.complex64))


def test_lists_are_not_tensors() -> None:
    with pytest.raises(TypeError, match="true_probs must be a torch tensor"):
        losses.sample_dependent_gamma([0.1])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="logits must be a torch tensor"):
        losses.LabelSmoothingLoss()([[1.0, 2.0]], torch.tensor([0]))  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8])
def test_labels_that_wrapped_around_are_refused(dtype: torch.dtype) -> None:
    # In eight bits, class 256 of 300 wraps around to 0.
    logits = torch.randn(300, 300, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(300)
    calls: list[Any] = [
        FocalLoss(),
        BrierLoss(),
        MMCELoss(),
        metrics.negative_log_likelihood,
        metrics.calibration_report,
        lambda rows, classes: metrics.brier_score(rows.softmax(1), classes),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="larger numbers have wrapped around"):
            call(logits, labels.to(dtype))
        call(logits[:100], labels[:100].to(dtype))


LOGITS = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
CLASSES = torch.arange(6) % 4
SOFT = LOGITS.softmax(dim=1)
MASKED = LOGITS.clone()
MASKED[2, 1] = -math.inf


@pytest.mark.parametrize(
    ("call", "remedy"),
    [
        (lambda: FocalLoss(reduction="avg"), r"'none', got 'avg'\. Give one of them"),
        (lambda: MMCELoss()(LOGITS, SOFT), r"not defined for soft .*labels\.argmax"),
        (lambda: mmce(LOGITS, SOFT), r"no prediction is right .*labels\.argmax"),
        (lambda: true_class_probs(LOGITS, SOFT), r"no true class.*labels\.argmax"),
        (lambda: FocalLoss()(LOGITS, 2 * SOFT), r"sum of 2 in row 0\. Divide each row"),
        (lambda: FocalLoss()(MASKED, SOFT), r"row 2 does not\. Give these classes"),
        (lambda: FocalLoss()(MASKED, torch.ones_like(CLASSES)), r"leave such rows out"),
        (lambda: FocalLoss()(MASKED - math.inf, CLASSES), r"Leave such rows out"),
        (lambda: FocalLoss()(LOGITS / 0.0, CLASSES), r"finite, got .*Look for a learn"),
        (
            lambda: FocalLoss(ignore_index=3)(LOGITS, SOFT),
            r"negative or None .*Leave rows without a class out",
        ),
        (lambda: LabelSmoothingLoss(1.0), r"got 1\.0\. Give a fraction"),
        (lambda: LabelSmoothingLoss(0.9)(LOGITS, CLASSES), r"got 0\.9\. Give less"),
        (lambda: focal_loss(LOGITS, CLASSES, torch.ones(5)), r"or one for each row"),
        (lambda: focal_loss(LOGITS, CLASSES, -torch.ones(6)), r"one for each sample"),
        (lambda: ScheduledFocalLoss()(LOGITS, CLASSES), r"given: .*Pass the position"),
        (lambda: ScheduledFocalLoss((1.0,), (2,)), r"before each milestone"),
        (lambda: ScheduledFocalLoss(milestones=(3, 2)), r"ascend.*Sort them"),
    ],
)
def test_each_refusal_says_what_to_do(call: Callable[[], object], remedy: str) -> None:
    with pytest.raises(ArgumentError, match=remedy) as refused:
        call()
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.float32, torch.long, torch.bool]
)
@pytest.mark.parametrize("loss", [*LOSSES, LabelSmoothingLoss, CrossEntropyLoss])
def test_rows_with_several_classes_are_not_to_be_divided_by_their_sum(
    loss: type[nn.Module], dtype: torch.dtype
) -> None:
    several = torch.eye(4)[CLASSES]
    several[1] = torch.tensor([1, 0, 1, 0])
    several[2] = 0
    with pytest.raises(ValueError, match="each column is a classifier of two") as found:
        loss()(LOGITS, several.to(dtype))
    assert "Divide" not in str(found.value)
    assert "argmax" not in str(found.value)


def test_one_hot_rows_without_a_class_are_left_out() -> None:
    one_hot = torch.eye(4)[CLASSES]
    one_hot[2] = 0
    with pytest.raises(
        ValueError, match=r"sum of 0 in row 2\. Leave rows without a cl"
    ):
        FocalLoss()(LOGITS, one_hot)
    kept = torch.arange(6) != 2
    loss = FocalLoss()(LOGITS[kept], one_hot[kept])
    assert loss == pytest.approx(FocalLoss()(LOGITS[kept], CLASSES[kept]).item())
