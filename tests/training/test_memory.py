"""When a device's memory runs out, batches pass the network in pieces, and a step remains that of the whole batch."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from softmax_temperature.losses import make_objective
from softmax_temperature.runner.checkpoints import load_checkpoint
from softmax_temperature.runner.jobs import CHECKPOINT, Job
from softmax_temperature.training import ClosePlaces, Trainer, Watch, train, trainer

MakeTrainer = Callable[..., Trainer]
MakeJob = Callable[[Path], Job]


class Memory:
    """Room for some samples at once: stands in for the allocator of a GPU; notes how many came."""

    def __init__(self, samples: int, *, after: int = 0, training: bool = True) -> None:
        self.samples, self.after, self.training = samples, after, training
        self.seen: list[int] = []

    def __call__(self, network: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        if network.training == self.training:
            self.seen.append(len(inputs[0]))
            if len(inputs[0]) > self.samples and len(self.seen) > self.after:
                raise torch.OutOfMemoryError(f"tried to allocate {len(inputs[0])} samples")


def limited(training: Trainer, memory: Memory) -> Trainer:
    training.network.register_forward_pre_hook(memory)
    return training


def weights(training: Trainer) -> dict[str, Tensor]:
    return training.network.state_dict()


@pytest.mark.parametrize(
    ("loss", "changes"),
    [
        ("cross_entropy", {}),
        ("mmce", {}),  # Couples the samples of a batch: the mean over pieces would be another loss.
        ("brier", {"reduction": "sum", "lr": 0.01, "clip_norm": 0.5}),
    ],
)
def test_steps_in_pieces_are_those_of_whole_batches(
    make_trainer: MakeTrainer, make_job: MakeJob, tmp_path: Path, loss: str, changes: dict[str, Any]
) -> None:
    whole = make_trainer(objective=make_objective(loss, {}), **changes)
    assert not train(whole, {}, make_job(tmp_path / "whole"))
    memory = Memory(3)
    pieces = limited(make_trainer(objective=make_objective(loss, {}), **changes), memory)
    assert not train(pieces, {}, make_job(tmp_path / "pieces"))
    assert pieces.micro_batches == 4, "batches of 8 samples, by halves, until they fit"
    assert memory.seen[:3] == [8, 4, 2]
    assert pieces.loss == pytest.approx(whole.loss, rel=1e-5)
    for name, value in weights(whole).items():
        torch.testing.assert_close(weights(pieces)[name], value, rtol=1e-4, atol=1e-6)


def test_dropout_is_the_same_when_a_piece_is_computed_again(
    make_trainer: MakeTrainer, make_network: Callable[..., nn.Module]
) -> None:
    """With other masks the gradient would not be that of the loss: compare with a network that keeps its pieces."""
    found = []
    for keeps in (False, True):
        training = make_trainer(make_network(dropout=0.5))
        training.split_batches()
        if keeps:
            training._logits = lambda inputs, own=training: torch.cat(  # type: ignore[method-assign,misc]
                [own._logits_at_once(piece) for piece in inputs.split(4)]
            )
        training.epoch()
        found.append(weights(training))
    for name, value in found[0].items():
        assert torch.equal(found[1][name], value)


def test_an_epoch_in_whose_middle_memory_ran_out_begins_again(
    make_trainer: MakeTrainer, make_images: Any, make_job: MakeJob, tmp_path: Path
) -> None:
    """With 21 samples an epoch has two batches; the fourth is the last of the second epoch."""
    split = {"test": make_images(10, seed=2)}
    training, watch = limited(make_trainer("resnet"), Memory(4, after=3)), Watch(split, ClosePlaces())
    assert not train(training, {"watch": watch}, make_job(tmp_path))
    expected, seen = make_trainer("resnet"), Watch(split, ClosePlaces())
    for epoch in range(3):
        if epoch == 1:
            expected.split_batches()
        expected.epoch()
        seen.after_epoch(expected)
    assert watch.history == seen.history
    assert all(torch.equal(weights(training)[name], value) for name, value in weights(expected).items())


def test_a_training_in_pieces_goes_on_in_pieces(make_trainer: MakeTrainer, make_job: MakeJob, tmp_path: Path) -> None:
    whole = limited(make_trainer("resnet"), Memory(4))
    assert not train(whole, {}, make_job(tmp_path / "whole"))
    job = make_job(tmp_path / "resumed")
    assert not train(limited(make_trainer("resnet", epochs=2, planned_epochs=3), Memory(4)), {}, job)
    assert (load_checkpoint(job.work / CHECKPOINT) or {})["trainer"]["micro_batches"] == 2
    memory = Memory(4)
    resumed = limited(make_trainer("resnet"), memory)
    assert not train(resumed, {}, job)
    assert set(memory.seen) == {4}, "it did not try whole batches again"
    assert all(torch.equal(weights(resumed)[name], value) for name, value in weights(whole).items())


def test_evaluation_takes_smaller_batches_too(
    make_trainer: MakeTrainer, make_images: Any, make_job: MakeJob, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "EVALUATION_BATCH", 10)
    memory = Memory(6, training=False)
    training = limited(make_trainer(), memory)
    watch = Watch({"test": make_images(10, seed=2)}, ClosePlaces())
    assert not train(training, {"watch": watch}, make_job(tmp_path))
    assert memory.seen == [10, 5, 5, 5, 5, 5, 5]
    assert [row["epoch"] for row in watch.history] == [1, 2, 3]


def test_memory_for_not_even_one_sample_ends_the_training(
    make_trainer: MakeTrainer, make_job: MakeJob, tmp_path: Path
) -> None:
    memory = Memory(0)
    with pytest.raises(torch.OutOfMemoryError, match="tried to allocate 1 samples"):
        train(limited(make_trainer(), memory), {}, make_job(tmp_path))
    assert memory.seen == [8, 4, 2, 1]
