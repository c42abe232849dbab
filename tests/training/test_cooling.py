"""With Cooling, training resumes with equal bytes; Cooling's period may span epochs."""

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from softmax_temperature.cooling import method
from softmax_temperature.data.seeds import drawn_from
from softmax_temperature.data.splits import SplitName
from softmax_temperature.metrics.checks import ArgumentError
from softmax_temperature.networks.small import MLP
from softmax_temperature.networks.vgg import SmallVGG
from softmax_temperature.runner.cells import Job
from softmax_temperature.scaling import fit_temperature
from softmax_temperature.training import ImageSet, Trainer, train
from softmax_temperature.training.cooling import CoolingCallback
from tests.training.test_trainer import content, until_done

CLASSES, STEPS = 4, 5  # 21 images in batches of 4 are 5 steps.
MODES: dict[str, dict[str, Any]] = {
    "last_layer": {"mode": "last_layer"},
    "distributed": {"mode": "distributed", "factor": 0.8, "optimizer_state": "rescale"},
    "periodic": {"mode": "periodic", "max_temperature": 0.1, "reset_temperature": 0.2},
}
MakeJob = Callable[[Path], Job]
Start = Callable[..., tuple[Trainer, CoolingCallback]]


def some_images(count: int, seed: int, split: SplitName = "train") -> ImageSet:
    """Noise images; each class is brighter in one channel or in none.

    Some labels are wrong, so that there is a finite best temperature.
    """
    generator = torch.Generator().manual_seed(seed)
    images = torch.randint(0, 160, (count, 3, 8, 8), generator=generator)
    labels = torch.arange(count) % CLASSES
    for channel in range(3):
        images[labels == channel, channel] += 60
    labels[::7] = 0
    return ImageSet(images.to(torch.uint8), labels, split)


@pytest.fixture
def start(make_trainer: Callable[..., Trainer]) -> Start:
    """A function that makes a trainer for three epochs, and its Cooling callback."""

    def begin(
        *,
        period: str | int = "epoch",
        optimizer_state: str = "keep",
        optimizer: str = "sgd",
        activation: str = "relu",
        **settings: Any,
    ) -> tuple[Trainer, CoolingCallback]:
        with drawn_from(0):
            network: nn.Module = SmallVGG(
                CLASSES, widths=(6, 6), dense=8, image_size=8, batch_norm=True
            )
            if activation == "tanh":
                network = MLP(CLASSES, (8, 8), image_size=8)
        settings |= {"period": period, "optimizer_state": optimizer_state}
        callback = CoolingCallback(network, some_images(30, seed=1), **settings)
        recipe = {
            "batch_size": 4,
            "optimizer": optimizer,
            "weight_decay": 0.0,
            "epsilon": 0.1,
        }
        trainer = make_trainer(
            network, images=some_images(21, seed=0), crop_padding=1, flip=True, **recipe
        )
        trainer.after_batch.append(callback.after_batch)
        return trainer, callback

    return begin


@pytest.mark.parametrize("period", ["epoch", 3])
@pytest.mark.parametrize("mode", MODES)
def test_a_training_killed_between_two_coolings_gives_the_same_bytes(
    start: Start, make_job: MakeJob, tmp_path: Path, mode: str, period: str | int
) -> None:
    whole, cooled = start(period=period, **MODES[mode])
    assert not train(whole, {"cooling": cooled}, make_job(tmp_path / "whole"))
    trainer, callback = until_done(
        lambda: start(period=period, **MODES[mode]), make_job(tmp_path / "killed")
    )
    assert len(callback.temperatures) == (3 if period == "epoch" else STEPS)
    assert content(trainer, callback.temperatures) == content(
        whole, cooled.temperatures
    )


def test_a_network_with_tanh_is_resumed_with_the_scales_of_its_activations(
    start: Start, make_job: MakeJob, tmp_path: Path
) -> None:
    settings = {"mode": "distributed", "activation": "tanh"}
    whole, cooled = start(**settings)
    assert not train(whole, {"cooling": cooled}, make_job(tmp_path / "whole"))
    scales = {
        name: value.item()
        for name, value in whole.network.named_buffers()
        if name.endswith("cooling_scale")
    }
    assert len(scales) == 2
    assert 1 not in scales.values()
    trainer, callback = until_done(
        lambda: start(**settings), make_job(tmp_path / "killed")
    )
    assert content(trainer, callback.temperatures) == content(
        whole, cooled.temperatures
    )


def test_a_period_in_batches_runs_over_the_ends_of_epochs(
    start: Start, make_job: MakeJob, tmp_path: Path
) -> None:
    trainer, callback = start(period=4, mode="last_layer")
    modes: list[bool] = []
    trainer.after_batch.append(lambda each: modes.append(each.network.training))
    assert not train(trainer, {"cooling": callback}, make_job(tmp_path))
    # Cooling runs after batches 4, 8 and 12 of 15.
    assert [(row["cooling"], row["epoch"]) for row in callback.temperatures] == [
        (1, 1),
        (2, 2),
        (3, 3),
    ]
    assert modes == [True] * 15, "Cooling left the network in evaluation mode"


def test_rows_say_what_the_network_was_divided_by(start: Start) -> None:
    trainer, callback = start(mode="last_layer")
    images = some_images(30, seed=1)
    for epoch in (1, 2):
        trainer.epoch()
        before, _ = trainer.evaluate(images.inputs)
        callback.after_epoch(trainer)
        row, (after, _) = callback.temperatures[-1], trainer.evaluate(images.inputs)
        torch.testing.assert_close(after, before / row["applied"], rtol=1e-5, atol=1e-6)
        assert row["applied"] == pytest.approx(
            fit_temperature(before, images.labels).temperature, rel=1e-6
        )
        assert (row["cooling"], row["epoch"], row["at_bound"]) == (epoch, epoch, False)
        assert row["total"] == pytest.approx(
            trainer.network.get_buffer("cooling_temperature").item(), rel=1e-6
        )


def test_a_refused_batch_is_an_error_and_no_divergence(
    start: Start, make_job: MakeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise ArgumentError("labels are in another order", "Sort them.")

    monkeypatch.setattr(method, "check_class_order", refuse)
    trainer, callback = start(mode="last_layer")
    with pytest.raises(ArgumentError, match="another order"):
        train(trainer, {"cooling": callback}, make_job(tmp_path))


def test_a_temperature_that_overflows_is_a_divergence(
    start: Start, make_job: MakeJob, tmp_path: Path
) -> None:
    trainer, callback = start(mode="last_layer", factor=1000.0)
    before = copy.deepcopy(trainer.network.state_dict())
    assert train(trainer, {"cooling": callback}, make_job(tmp_path))
    assert (trainer.epochs_done, callback.temperatures) == (0, [])
    assert all(
        torch.equal(value, before[name])
        for name, value in trainer.network.state_dict().items()
    )
