"""Training records match loops over samples, autograd, and the metrics."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from softmax_temperature.losses import make_loss
from softmax_temperature.training import BestEpoch, Norms, Trainer, Watch, scaled_epochs
from softmax_temperature.training.watch import (
    _norm_counts,
    describe_logits,
    last_layer_gradient_norms,
)

MakeTrainer = Callable[..., Trainer]


def batch(
    count: int = 60, classes: int = 4, scale: float = 2.0
) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    logits = scale * torch.randn(count, classes, generator=generator)
    return logits, torch.randint(classes, (count,), generator=generator)


# ---- description of one split


def describe_by_loop(logits: Tensor, labels: Tensor) -> dict[str, float | None]:
    samples: list[tuple[bool, float, float, float]] = []
    for row, label in zip(logits.double().numpy(), labels.tolist(), strict=True):
        probs = np.exp(row - row.max()) / np.exp(row - row.max()).sum()
        entropy = -sum(p * math.log(p) for p in probs if p > 0)
        samples.append(
            (int(row.argmax()) == label, -math.log(probs[label]), entropy, probs.max())
        )
    expected: dict[str, float | None] = {}
    for suffix, wanted in (
        ("", (True, False)),
        ("_right", (True,)),
        ("_wrong", (False,)),
    ):
        chosen = [sample for sample in samples if sample[0] in wanted]
        for place, name in ((1, "nll"), (2, "entropy")):
            expected[name + suffix] = (
                sum(sample[place] for sample in chosen) / len(chosen)
                if chosen
                else None
            )
    gap = 0.0
    for number in range(15):
        inside = [
            (right, top)
            for right, _, _, top in samples
            if number / 15 < top <= (number + 1) / 15
        ]
        gap += abs(sum(right - top for right, top in inside))
    accuracy = sum(right for right, *_ in samples) / len(samples)
    return expected | {"accuracy": accuracy, "ece": gap / len(samples)}


@pytest.mark.parametrize("scale", [0.1, 2.0, 20.0])
def test_a_description_is_that_of_a_loop_over_samples(scale: float) -> None:
    logits, labels = batch(scale=scale)
    assert describe_logits(logits, labels) == pytest.approx(
        describe_by_loop(logits, labels), rel=1e-9
    )


# ---- gradients of the last layer


@pytest.mark.parametrize(
    ("loss", "options"),
    [
        ("cross_entropy", {}),
        ("focal", {"gamma": 3.0}),
        ("brier", {}),
        ("sample_dependent_focal", {}),
    ],
)
def test_gradient_norms_are_those_of_a_real_layer_one_sample_at_a_time(
    loss: str, options: dict[str, Any]
) -> None:
    torch.manual_seed(0)
    layer, features = (
        nn.Linear(7, 4).double(),
        3 * torch.randn(20, 7, dtype=torch.float64),
    )
    labels, objective = torch.arange(20) % 4, make_loss(loss, options)
    expected = []
    for feature, label in zip(features, labels, strict=True):
        layer.zero_grad()
        objective(layer(feature[None]), label[None], 0.0).backward()
        assert layer.weight.grad is not None
        expected.append(layer.weight.grad.norm().item())
    norms = last_layer_gradient_norms(
        layer(features), labels, features.norm(dim=1), objective, 0.0
    )
    assert norms.dtype == torch.float64
    assert norms.tolist() == pytest.approx(expected, rel=1e-9)


def test_if_a_loss_couples_samples_their_shares_add_up_to_its_gradient() -> None:
    logits, labels = batch(12)
    objective, leaf = make_loss("mmce", {}), logits.double().requires_grad_()
    # With one-hot features, each sample has its own column in the weights' gradient.
    layer = nn.Linear(12, 4, bias=False).double()
    with torch.no_grad():
        layer.weight.copy_(leaf.T)
    (objective(layer(torch.eye(12, dtype=torch.float64)), labels, 0.0) * 12).backward()
    assert layer.weight.grad is not None
    norms = last_layer_gradient_norms(logits, labels, torch.ones(12), objective, 0.0)
    torch.testing.assert_close(norms, layer.weight.grad.norm(dim=0))


# ---- rows


def test_scaled_epochs_by_hand() -> None:
    # Figure 3's epochs are mapped to a training run of a tenth of the length, and to a
    # run of two epochs, in which several of Figure 3's epochs fall on the same epoch.
    assert scaled_epochs([10, 100, 200], 35, 350) == {1, 10, 20}
    assert scaled_epochs([10, 100, 200, 350], 2, 350) == {1, 2}


# ---- the watch


@pytest.fixture
def watched(make_trainer: MakeTrainer, make_images: Any) -> tuple[Trainer, Watch]:
    """A trainer after three epochs of focal loss, and the watch that recorded them."""
    objective = make_loss("scheduled_focal", {"gammas": [5.0, 1.0], "milestones": [4]})
    trainer = make_trainer(
        "resnet", objective=objective, images=make_images(32), planned_epochs=6
    )
    splits = {
        "validation": make_images(11, seed=1, split="validation"),
        "train": make_images(32).sample(15),
    }
    watch = Watch(
        splits, gradient_epochs=frozenset({2}), reliability_epochs=frozenset({2, 3})
    )
    for _ in range(3):
        trainer.epoch()
        watch.after_epoch(trainer)
    return trainer, watch


def test_each_epoch_and_split_has_a_row(
    watched: tuple[Trainer, Watch], make_images: Any
) -> None:
    trainer, watch = watched
    seen = [(row["epoch"], row["split"]) for row in watch.history]
    assert seen == [
        (epoch, split) for epoch in (1, 2, 3) for split in ("validation", "train")
    ]
    last = watch.history[-2]
    assert last["loss"] == trainer.loss
    weights = trainer.network.get_parameter("linear.weight").detach().double()
    assert last["weight_norm"] == pytest.approx(math.sqrt(weights.square().sum()))
    images = make_images(11, seed=1)
    logits, norms = trainer.evaluate(images.inputs)
    assert last["feature_norm"] == pytest.approx(norms.mean().item())
    assert {
        name: last[name] for name in describe_logits(logits, images.labels)
    } == pytest.approx(describe_by_loop(logits, images.labels), rel=1e-6)


def test_details_are_recorded_on_training_images_after_the_chosen_epochs(
    watched: tuple[Trainer, Watch], make_trainer: MakeTrainer, make_images: Any
) -> None:
    _, watch = watched
    assert {row["epoch"] for row in watch.gradient_norms} == {2}
    assert {row["epoch"] for row in watch.reliability} == {2, 3}
    assert sum(row["count"] for row in watch.gradient_norms) == 15
    assert sum(row["count"] for row in watch.reliability) == 30
    # Epoch two of three corresponds to epoch four of the six planned, so the second
    # gamma is in use.
    again = make_trainer(
        "resnet",
        objective=make_loss("focal", {"gamma": 5.0}),
        images=make_images(32),
    )
    again.epoch()
    again.epoch()
    sample = make_images(32).sample(15)
    logits, norms = again.evaluate(sample.inputs)
    expected = last_layer_gradient_norms(
        logits, sample.labels, norms, make_loss("focal", {"gamma": 1.0}), 0
    )
    assert watch.gradient_norms == _norm_counts(2, expected)


@pytest.mark.parametrize(
    ("every", "final", "close", "expected"),
    [(3, 1, (), [1, 3, 6, 7]), (3, 1, (5,), [1, 3, 5, 6, 7]), (9, 3, (), [1, 5, 6, 7])],
)
def test_epochs_are_recorded_at_intervals_and_at_both_ends(
    make_trainer: MakeTrainer,
    make_images: Any,
    every: int,
    final: int,
    close: tuple[int, ...],
    expected: list[int],
) -> None:
    trainer, plain = (make_trainer(epochs=7, planned_epochs=7) for _ in range(2))
    watch = Watch(
        {"train": make_images(8)},
        reliability_epochs=frozenset(close),
        every=every,
        final=final,
    )
    for _ in range(7):
        trainer.epoch()
        watch.after_epoch(trainer)
        plain.epoch()
    assert [row["epoch"] for row in watch.history] == expected
    assert {row["epoch"] for row in watch.reliability} == set(close)
    ours, theirs = trainer.network.state_dict(), plain.network.state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items()), (
        "the watch changed the weights"
    )


def norm(tensors: Iterable[Tensor]) -> float:
    return math.sqrt(
        sum(
            float(value) ** 2
            for tensor in tensors
            for value in tensor.flatten().tolist()
        )
    )


# Without clipping, the batches' gradients have different norms.
@pytest.mark.parametrize("clip_norm", [0.5, None])
def test_norms_equal_loops_over_numbers(
    make_trainer: Callable[..., Trainer], make_images: Any, clip_norm: float | None
) -> None:
    trainer = make_trainer(clip_norm=clip_norm)
    images = make_images(10, seed=2).inputs
    norms = Norms(images)
    gradients: list[float] = []

    def note(each: Trainer) -> None:
        gradients.append(
            norm(
                parameter.grad
                for parameter in each.network.parameters()
                if parameter.grad is not None
            )
        )

    trainer.after_batch += [norms.after_batch, note]
    for epoch in (1, 2):
        gradients.clear()
        trainer.epoch()
        norms.after_epoch(trainer)
        logits, _ = trainer.evaluate(images)
        assert len(gradients) == trainer.steps_per_epoch == 2
        assert norms.history[-1] == pytest.approx(
            {
                "epoch": epoch,
                "logit_norm": sum(norm([row]) for row in logits) / 10,
                "weight_norm": norm(trainer.network.parameters()),
                "gradient_norm": sum(gradients) / 2,
            },
            rel=1e-5,
        )
    is_clipped = max(gradients) < 0.5 + 1e-5
    assert is_clipped == (clip_norm is not None), "norms must be those after clipping"


@pytest.mark.parametrize(
    ("validation", "best"),
    [([0.2, 0.6, 0.6, 0.4], 2), ([0.0, 0.0, 0.0, 0.0], 1), ([0.1, 0.2, 0.3, 0.4], 4)],
)
def test_the_first_of_the_best_epochs_by_validation_accuracy_is_kept(
    make_trainer: MakeTrainer, validation: list[float], best: int
) -> None:
    trainer, watch = make_trainer(epochs=4, planned_epochs=4), Watch({})
    chosen, weights = BestEpoch(watch), []
    seen = {
        "train": [0.9, 0.1, 0.1, 0.1],
        "validation": validation,
        "test": [0.1, 0.1, 0.9, 0.1],
    }
    for epoch in range(4):
        trainer.epoch()
        watch.history += [
            {"split": split, "accuracy": values[epoch]}
            for split, values in seen.items()
        ]
        chosen.after_epoch(trainer)
        weights.append(
            [value.clone() for value in trainer.network.state_dict().values()]
        )
    assert chosen.epoch == best
    chosen.restore(trainer)
    assert all(
        map(torch.equal, trainer.network.state_dict().values(), weights[best - 1])
    )
