"""The training loop equals a plain loop, can resume, and stops if values overflow."""

import copy
import hashlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save
from torch import Tensor, nn

from softmax_temperature.losses import make_loss
from softmax_temperature.params.recipe import Schedule
from softmax_temperature.runner.artifacts import canonical_json
from softmax_temperature.runner.cells import Job
from softmax_temperature.training import (
    Callback,
    Diverged,
    ImageSet,
    Trainer,
    Watch,
    train,
)
from softmax_temperature.training.trainer import learning_rate_factor
from tests.small_trainings import LOSSES

MakeTrainer = Callable[..., Trainer]
Memory = dict[str, Any]
MEAN, STD = [0.5, 0.4, 0.3], [0.2, 0.25, 0.3]
COSINE = {
    "schedule": {"name": "cosine", "warmup": 0.7},
    "epochs": 2,
    "planned_epochs": 5,
}


# ---- the same training, written out


def order_by_hand(seed: int, epoch: int, count: int) -> Tensor:
    """A random order, seeded with 63 bits of the sha256 of "SEED/epoch/EPOCH"."""
    names = f"{seed}/epoch/{epoch}".encode()
    generator = torch.Generator().manual_seed(
        int(hashlib.sha256(names).hexdigest()[:16], 16) // 2
    )
    return torch.randperm(count, generator=generator)


def inputs(images: ImageSet) -> Tensor:
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, STD))
    return (images.inputs / 255 - mean) / std


def sgd(gradient: Tensor, memory: Memory, _: int) -> Any:
    memory["velocity"] = 0.9 * memory.get("velocity", 0) + gradient
    return memory["velocity"]


def adam(gradient: Tensor, memory: Memory, steps: int) -> Any:
    memory["mean"] = 0.9 * memory.get("mean", 0) + 0.1 * gradient
    memory["square"] = 0.95 * memory.get("square", 0) + 0.05 * gradient**2
    root = (memory["square"] / (1 - 0.95**steps)).sqrt()
    return memory["mean"] / (1 - 0.9**steps) / (root + 1e-3)


def adagrad(gradient: Tensor, memory: Memory, _: int) -> Any:
    memory["square"] = memory.get("square", 0) + gradient**2
    return gradient / (memory["square"].sqrt() + 1e-3)


def plain_epochs(
    network: nn.Module, images: ImageSet, recipe: Any, move: Callable[..., Any]
) -> list[float]:
    """Train two epochs in batches of 8 with seed 7, on a cosine schedule with warm-up.

    Returns the mean loss of each epoch.
    """
    pixels, parameters = inputs(images), list(network.parameters())
    memories: list[Memory] = [{} for _ in parameters]
    network.train()
    losses, steps, batches = [], 0, len(images) // 8
    for epoch in range(2):
        order, seen = order_by_hand(7, epoch, len(images)), []
        for batch in range(batches):
            rows = order[8 * batch : 8 * batch + 8]
            loss = F.cross_entropy(
                network(pixels[rows]), images.labels[rows], reduction=recipe.reduction
            )
            gradients = list(torch.autograd.grad(loss, parameters))
            if recipe.clip_norm is not None:
                norm = math.sqrt(
                    sum(gradient.square().sum().item() for gradient in gradients)
                )
                gradients = [
                    gradient * min(1, recipe.clip_norm / norm) for gradient in gradients
                ]
            # The two epochs pass through the whole schedule, which is planned for five
            # epochs.
            place = 5 * (epoch + batch / batches) / 2
            rate = (
                recipe.lr
                * min(1, place / 0.7)
                * (1 + math.cos(math.pi * place / 5))
                / 2
            )
            steps += 1
            with torch.no_grad():
                for parameter, gradient, memory in zip(
                    parameters, gradients, memories, strict=True
                ):
                    parameter.sub_(
                        rate
                        * move(
                            gradient + recipe.weight_decay * parameter, memory, steps
                        )
                    )
            seen.append(loss.item() / (8 if recipe.reduction == "sum" else 1))
        losses.append(sum(seen) / batches)
    return losses


@pytest.mark.parametrize(
    ("network", "move", "changes"),
    [
        ("resnet", sgd, {"weight_decay": 0.1}),
        ("resnet", sgd, {"reduction": "sum", "clip_norm": 2.0, "lr": 0.02}),
        ("two-layers", sgd, {"reduction": "sum", "lr": 0.005}),
        ("two-layers", sgd, {"clip_norm": 0.3, "weight_decay": 0.1}),
        (
            "two-layers",
            adam,
            {"optimizer": "adam", "epsilon": 1e-3, "beta2": 0.95, "weight_decay": 0.1},
        ),
        (
            "two-layers",
            adam,
            {"optimizer": "adam", "epsilon": 1e-3, "beta2": 0.95, "clip_norm": 0.3},
        ),
        (
            "two-layers",
            adagrad,
            {"optimizer": "adagrad", "epsilon": 1e-3, "weight_decay": 0.1},
        ),
    ],
)
def test_two_epochs_equal_a_plain_loop(
    make_trainer: MakeTrainer,
    make_images: Any,
    network: str,
    move: Callable[..., Any],
    changes: dict[str, Any],
) -> None:
    images = make_images(29)  # Batches of 8 leave out five images.
    trainer = make_trainer(network, images=images, **COSINE, **changes)
    plain = copy.deepcopy(trainer.network)
    expected = plain_epochs(plain, images, trainer.recipe, move)
    losses = []
    for _ in range(2):
        trainer.epoch()
        losses.append(trainer.loss)
    assert losses == pytest.approx(expected, rel=1e-4)
    start = make_trainer(network).network.state_dict()
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(
            trainer.network.state_dict()[name], value, rtol=1e-3, atol=2e-5
        )
        assert not torch.equal(value, start[name])


# ---- order and augmentation


def rows_of(
    make_trainer: MakeTrainer, images: ImageSet, **changes: Any
) -> list[list[int]]:
    """The images in every batch during three epochs, identified by their labels."""
    rows: list[list[int]] = []

    def objective(logits: Tensor, labels: Tensor, _: float) -> Tensor:
        rows.append(labels.tolist())
        return logits.square().mean()

    trainer = make_trainer(
        images=ImageSet(images.inputs, torch.arange(len(images)), "train"),
        objective=objective,
        **changes,
    )
    for _ in range(3):
        trainer.epoch()
    return rows


def test_every_epoch_has_its_own_order_which_the_seed_decides(
    make_trainer: MakeTrainer, make_images: Any
) -> None:
    rows = rows_of(make_trainer, make_images(21), seed=5)
    expected = [
        order_by_hand(5, epoch, 21)[:16].view(2, 8).tolist() for epoch in range(3)
    ]
    assert rows == [batch for epoch in expected for batch in epoch]
    assert len({tuple(map(tuple, epoch)) for epoch in expected}) == 3
    assert rows_of(make_trainer, make_images(21), seed=6)[:2] != expected[0]
    # The order does not depend on augmentation, network or learning rate, so training
    # runs that differ in these can be paired.
    assert (
        rows_of(
            make_trainer, make_images(21), seed=5, network="resnet", flip=True, lr=0.001
        )
        == rows
    )


def test_images_are_augmented_for_training_and_not_for_evaluation(
    make_trainer: MakeTrainer,
) -> None:
    # Values rise from left to right, and no pixel is black. So a black pixel is padding
    # and an image whose values fall was mirrored.
    ramp = torch.arange(10, 16, dtype=torch.uint8).expand(64, 3, 6, 6).contiguous()
    kept = {"mean": [0.0] * 3, "std": [1.0] * 3, "batch_size": 64}
    trainer = make_trainer(
        images=ImageSet(ramp, torch.arange(64) % 4, "train"),
        crop_padding=1,
        flip=True,
        **kept,
    )
    seen: list[Tensor] = []
    trainer.network.get_submodule("hidden").register_forward_pre_hook(
        lambda _, given: seen.append(255 * given[0])
    )
    trainer.epoch()
    trainer.evaluate(ramp)
    training, evaluation = seen
    slopes = training[:, 0, 2, 3] - training[:, 0, 2, 2]
    assert set(slopes.round().tolist()) == {-1.0, 1.0}
    black = training[:, 0] < 1
    assert black.any((1, 2)).double().mean() == pytest.approx(8 / 9, abs=0.15)
    assert not black[:, 1:-1, 1:-1].any()
    torch.testing.assert_close(evaluation, ramp.float())


def test_dropout_differs_between_epochs_and_seeds_and_leaves_the_generator_alone(
    make_trainer: MakeTrainer, make_network: Any, make_images: Any
) -> None:
    # All images are identical, so the order does not affect which units are zero.
    images = ImageSet(
        make_images(1).inputs.expand(24, -1, -1, -1), torch.arange(24) % 4, "train"
    )

    def dropped(seed: int) -> list[Tensor]:
        trainer = make_trainer(
            make_network(dropout=0.5), images=images, seed=seed, lr=1e-12, batch_size=24
        )
        seen: list[Tensor] = []
        trainer.network.get_submodule("hidden.3").register_forward_hook(
            lambda _, __, kept: seen.append(kept == 0)
        )
        for _ in range(2):
            trainer.epoch()
        return seen

    before = torch.get_rng_state()
    first, second, other = *dropped(1), dropped(2)[0]
    assert torch.equal(torch.get_rng_state(), before)
    assert not torch.equal(first, second)
    assert not torch.equal(first, other)
    assert all(map(torch.equal, dropped(1), [first, second]))


# ---- divergence


@pytest.mark.parametrize("loss", LOSSES)
def test_a_rate_that_is_too_large_is_a_divergence_with_every_loss(
    make_trainer: MakeTrainer, loss: str
) -> None:
    explodes = {"name": "steps", "milestones": [1.0], "factor": 1e30}
    objective = make_loss(loss, LOSSES[loss])
    trainer = make_trainer(
        "resnet", objective=objective, schedule=explodes, batch_size=4
    )
    trainer.epoch()
    with pytest.raises(Diverged, match="epoch 2"):
        trainer.epoch()
    assert trainer.epochs_done == 1


def test_non_finite_weights_end_a_training_even_if_the_loss_is_finite(
    make_trainer: MakeTrainer,
) -> None:
    # The loss is computed before the only step, so the divergence can be seen only in
    # the weights.
    trainer = make_trainer(batch_size=64, lr=1e38, reduction="sum", weight_decay=10.0)
    with pytest.raises(Diverged, match="epoch 1"):
        trainer.epoch()


# ---- evaluation


@pytest.mark.parametrize("network", ["resnet", "two-layers"])
def test_an_evaluation_equals_the_networks_and_does_not_change_it(
    make_trainer: MakeTrainer, make_network: Any, make_images: Any, network: str
) -> None:
    trainer = make_trainer(make_network(network, dropout=0.5))
    trainer.epoch()
    before = copy.deepcopy(trainer.state_dict()["network"])
    images = make_images(1003, seed=4)  # These samples fill more than two batches.
    logits, norms = trainer.evaluate(images.inputs)
    assert all(
        torch.equal(value, before[name])
        for name, value in trainer.network.state_dict().items()
    )
    plain = make_network(network, dropout=0.5).eval()
    plain.load_state_dict(trainer.network.state_dict())
    with torch.no_grad():
        features = plain.features(inputs(images))
        torch.testing.assert_close(logits, plain(inputs(images)), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(
        norms, features.double().square().sum(1).sqrt(), rtol=1e-4, atol=1e-5
    )


def test_under_bfloat16_logits_and_weights_are_float32_and_logits_are_not_rounded(
    make_trainer: MakeTrainer,
) -> None:
    coarse, exact = (
        make_trainer("resnet", precision=precision)
        for precision in ("bfloat16", "float32")
    )
    given: list[Tensor] = []
    coarse.network.get_submodule("linear").register_forward_hook(
        lambda _, __, logits: given.append(logits.detach())
    )
    for trainer in (coarse, exact):
        trainer.epoch()
    evaluated, _ = coarse.evaluate(coarse.samples.inputs)
    for logits in (*given, evaluated):
        assert logits.dtype == torch.float32
        assert (logits != logits.bfloat16().float()).double().mean() > 0.5
    assert all(
        parameter.dtype == torch.float32 for parameter in coarse.network.parameters()
    )
    # The results differ from those in float32, so autocast was on; the difference is
    # within the precision of eight bits.
    assert coarse.loss != exact.loss
    assert coarse.loss == pytest.approx(exact.loss, rel=0.05)


# ---- interruption and divergence

Start = Callable[..., tuple[Trainer, Watch]]


class Killed(BaseException):
    """Simulates a kill: no code catches this exception."""


class Kills(Callback):
    """Kills a training run once after each of the given epochs."""

    kept = ()

    def __init__(self, epochs: set[int]) -> None:
        self.epochs = epochs

    def after_epoch(self, trainer: Trainer) -> None:
        if trainer.epochs_done in self.epochs:
            self.epochs.remove(trainer.epochs_done)
            raise Killed


@pytest.fixture(params=["resnet", "two-layers"])
def start(
    request: pytest.FixtureRequest,
    make_trainer: MakeTrainer,
    make_network: Any,
    make_images: Any,
) -> Callable[..., tuple[Trainer, Watch]]:
    """A function that makes a trainer for three epochs, and a watch that records them.

    The network has dropout or batch norm, and images are augmented.
    """

    def begin(**changes: Any) -> tuple[Trainer, Watch]:
        network = make_network(request.param, dropout=0.5)
        optimizer = {"resnet": "sgd", "two-layers": "adam"}[request.param]
        trainer = make_trainer(
            network, crop_padding=1, flip=True, **{"optimizer": optimizer, **changes}
        )
        splits = {"train": make_images(), "test": make_images(10, seed=2, split="test")}
        return trainer, Watch(
            splits, gradient_epochs=frozenset({1, 3}), reliability_epochs=frozenset({2})
        )

    return begin


def content(trainer: Trainer, rows: Any) -> tuple[bytes, str]:
    """The bytes that a stage would write for this training run."""
    weights = {
        name: value.contiguous() for name, value in trainer.network.state_dict().items()
    }
    return save(weights), canonical_json(rows)


def until_done(
    start: Callable[[], tuple[Trainer, Any]], job: Job, *, kills_first: bool = False
) -> tuple[Trainer, Any]:
    """Train three epochs; after each, kill the run before its checkpoint, and restart
    it.
    """
    kills = Kills({1, 2, 3})
    while True:
        trainer, callback = start()
        callbacks: list[tuple[str, Callback]] = [
            ("callback", callback),
            ("kills", kills),
        ]
        try:
            assert not train(
                trainer, dict(callbacks[::-1] if kills_first else callbacks), job
            )
        except Killed:
            continue
        assert not kills.epochs
        return trainer, callback


@pytest.mark.parametrize("kills_first", [True, False])
def test_a_training_killed_after_each_epoch_gives_the_same_bytes(
    start: Start, make_job: Callable[[Path], Job], tmp_path: Path, kills_first: bool
) -> None:
    whole, watched = start()
    assert not train(whole, {"watch": watched}, make_job(tmp_path / "whole"))
    job = make_job(tmp_path / "killed")
    trainer, watch = until_done(start, job, kills_first=kills_first)
    assert content(trainer, watch.state_dict()) == content(whole, watched.state_dict())


def test_a_diverged_training_stops_and_keeps_what_was_finite(
    start: Start, make_job: Callable[[Path], Job], tmp_path: Path
) -> None:
    explodes = {
        "schedule": {"name": "steps", "milestones": [2.0], "factor": 1e30},
        "batch_size": 4,
    }
    standing, watched = start(**explodes)
    for _ in range(2):
        standing.epoch()
        watched.after_epoch(standing)
    job = make_job(tmp_path)
    for _ in range(2):  # The second run resumes from the first run's checkpoint.
        trainer, watch = start(**explodes)
        assert train(trainer, {"watch": watch}, job)
        assert trainer.epochs_done == 2
        assert content(trainer, watch.state_dict()) == content(
            standing, watched.state_dict()
        )


# ---- learning rates


def schedule(name: str, **values: Any) -> Schedule:
    return Schedule.model_validate(
        {"name": name, "milestones": [4.0, 9.0], "factor": 0.3, **values}
    )


@pytest.mark.parametrize(
    "name", ["constant", "steps", "linear", "exponential", "cosine"]
)
def test_whole_epochs_equal_torchs_and_a_warm_up_rises_from_zero(
    name: str,
) -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    rates: dict[str, Any] = {
        "constant": lambda: torch.optim.lr_scheduler.ConstantLR(optimizer, 1.0),
        "steps": lambda: torch.optim.lr_scheduler.MultiStepLR(
            optimizer, [4, 9], gamma=0.3
        ),
        "linear": lambda: torch.optim.lr_scheduler.LinearLR(
            optimizer, 1.0, 0.0, total_iters=12
        ),
        "exponential": lambda: torch.optim.lr_scheduler.ExponentialLR(
            optimizer, 0.3 ** (1 / 12)
        ),
        "cosine": lambda: torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 12),
    }
    theirs = rates[name]()
    for epoch in range(12):
        ours, warm = (
            learning_rate_factor(schedule(name, warmup=warmup), epoch, 12)
            for warmup in (0.0, 5.0)
        )
        assert ours == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9)
        assert warm == pytest.approx(ours * min(1, epoch / 5))
        optimizer.step()
        theirs.step()


@pytest.mark.parametrize("warmup", [4.0, 0.68])
def test_the_inverse_square_root_equals_vaswani_et_al(warmup: float) -> None:
    # Section 5.3 has min(step^-0.5, step * warmup_steps^-1.5); we divide it by its
    # value at the end of the warm-up.
    inverse = Schedule.model_validate({"name": "inverse_square_root", "warmup": warmup})
    for step in (1, 300, 3999, 4000, 4001, 16_000, 99_999):
        expected = min(step**-0.5, step * 4000**-1.5) * 4000**0.5
        assert learning_rate_factor(
            inverse, step * warmup / 4000, 25 * warmup
        ) == pytest.approx(expected)
