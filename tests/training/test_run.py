"""Training to the end: interrupted anywhere, it gives the same bytes; diverging, it stops at what was finite."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import save

from softmax_temperature.runner.artifacts import canonical_json
from softmax_temperature.runner.cells import Job
from softmax_temperature.training import Callback, Diverged, Trainer, Watch, train

MakeTrainer = Callable[..., Trainer]
Start = Callable[[], tuple[Trainer, Watch]]


class Killed(BaseException):
    """Stands for a kill: nothing catches it."""


class Stops(Callback):
    """Raises after each of the given epochs, once for all trainings."""

    def __init__(self, epochs: set[int], error: type[BaseException]) -> None:
        self.epochs, self.error = epochs, error

    def after_epoch(self, trainer: Trainer) -> None:
        if trainer.epochs_done in self.epochs:
            self.epochs.remove(trainer.epochs_done)
            raise self.error


@pytest.fixture(params=["resnet", "two-layers"])
def start(
    request: pytest.FixtureRequest, make_trainer: MakeTrainer, make_network: Any, make_images: Any
) -> Callable[..., tuple[Trainer, Watch]]:
    """A new training of three epochs, with dropout or batch norm, and with augmentation; and its watch."""

    def begin(**changes: Any) -> tuple[Trainer, Watch]:
        network = make_network(request.param, dropout=0.5)
        trainer = make_trainer(network, crop_padding=1, flip=True, **changes)
        splits = {"train": make_images(), "test": make_images(10, seed=2)}
        return trainer, Watch(splits, gradient_epochs=frozenset({1, 3}), reliability_epochs=frozenset({2}))

    return begin


def content(trainer: Trainer, watch: Watch) -> tuple[bytes, str]:
    """The bytes that a stage would write."""
    weights = {name: value.contiguous() for name, value in trainer.network.state_dict().items()}
    return save(weights), canonical_json(watch.state_dict())


@pytest.fixture
def uninterrupted(start: Start, make_job: Callable[[Path], Job], tmp_path: Path) -> tuple[bytes, str]:
    trainer, watch = start()
    assert not train(trainer, {"watch": watch}, make_job(tmp_path / "whole"))
    assert trainer.epochs_done == 3
    return content(trainer, watch)


@pytest.mark.parametrize("watch_first", [True, False])
def test_a_training_killed_after_each_epoch_gives_the_same_bytes(
    start: Start, make_job: Callable[[Path], Job], tmp_path: Path, uninterrupted: tuple[bytes, str], watch_first: bool
) -> None:
    stops, job, trained = Stops({1, 2, 3}, Killed), make_job(tmp_path / "killed"), []
    while True:
        trainer, watch = start()
        callbacks: list[tuple[str, Callback]] = [("watch", watch), ("stops", stops)]
        try:
            assert not train(trainer, dict(callbacks if watch_first else callbacks[::-1]), job)
            break
        except Killed:
            trained.append(trainer.epochs_done)
    assert trained == [1, 2, 3]
    assert content(trainer, watch) == uninterrupted
    assert (job.work / "progress").read_text() == "3/3"


@pytest.mark.parametrize("killed_after", [1, 2, 3])
def test_a_training_killed_after_a_checkpoint_does_not_repeat_its_epochs(
    start: Start,
    make_job: Callable[[Path], Job],
    tmp_path: Path,
    uninterrupted: tuple[bytes, str],
    killed_after: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def kill(_: Job, done: int, __: int) -> None:
        trained.append(done)
        if trained == list(range(1, killed_after + 1)):
            raise Killed

    trained: list[int] = []
    monkeypatch.setattr(Job, "progress", kill)
    job = make_job(tmp_path / "killed")
    with pytest.raises(Killed):
        train(*with_watch(start), job)
    trainer, callbacks = with_watch(start)
    assert not train(trainer, callbacks, job)
    assert trained == [1, 2, 3]
    assert content(trainer, callbacks["watch"]) == uninterrupted


def with_watch(start: Start) -> tuple[Trainer, Mapping[str, Any]]:
    trainer, watch = start()
    return trainer, {"watch": watch}


# ---- divergence


def stand_after(start: Start, epochs: int) -> tuple[bytes, str]:
    trainer, watch = start()
    for _ in range(epochs):
        trainer.epoch()
        watch.after_epoch(trainer)
    return content(trainer, watch)


def test_a_diverged_training_stops_and_keeps_what_was_finite(
    start: Callable[..., tuple[Trainer, Watch]], make_job: Callable[[Path], Job], tmp_path: Path
) -> None:
    explodes = {"schedule": {"name": "steps", "milestones": [2.0], "factor": 1e30}, "batch_size": 4}
    job = make_job(tmp_path)
    for _ in range(2):  # The second goes on from the checkpoint of the first, and comes to the same end.
        trainer, watch = start(**explodes)
        assert train(trainer, {"watch": watch}, job)
        assert trainer.epochs_done == 2
        assert {row["epoch"] for row in watch.history} == {1, 2}
        assert all(bool(value.isfinite().all()) for value in trainer.network.state_dict().values())
        assert content(trainer, watch) == stand_after(lambda: start(**explodes), 2)


@pytest.mark.parametrize("stopped_after", [1, 2])
def test_a_training_that_a_callback_finds_diverged_returns_to_where_it_was_last_finite(
    start: Start, make_job: Callable[[Path], Job], tmp_path: Path, stopped_after: int
) -> None:
    trainer, watch = start()
    stops = Stops({stopped_after}, Diverged)
    assert train(trainer, {"watch": watch, "stops": stops}, make_job(tmp_path))
    assert trainer.epochs_done == stopped_after - 1
    assert content(trainer, watch) == stand_after(start, stopped_after - 1)
