"""Running a training to its end: resuming, checkpoints, and what follows each epoch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import torch

from softmax_temperature.training.trainer import Diverged, Trainer

if TYPE_CHECKING:
    from softmax_temperature.runner.cells import Job


class Resumable(Protocol):
    """What can be interrupted between two epochs."""

    def state_dict(self) -> dict[str, Any]:
        """All that its next epoch depends on, ready for a checkpoint; of a follower, nothing changes it later."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from where `state_dict` was taken."""


class Follower(Resumable, Protocol):
    """What acts or looks after each epoch, and after each batch if it is among the trainer's `after_batch`."""

    def after_epoch(self, trainer: Trainer) -> None:
        """Called once an epoch, after it; may raise Diverged."""


def train(trainer: Trainer, followers: Mapping[str, Follower], job: Job) -> bool:
    """Train for the epochs of the recipe, from the job's checkpoint if there is one.

    Args:
        trainer: new.
        followers: new, called in this order after each epoch; the names are those in the checkpoint.
        job: the cell that trains.

    Returns:
        Whether the training diverged; it then stops, and trainer and followers stand where it was last finite.

    Raises:
        torch.OutOfMemoryError: the device's memory does not suffice for a batch of one sample; or, where several
            processes train together, for the share of one of them.
    """
    checkpointer, epochs = job.checkpointer(), trainer.recipe.epochs
    parts: dict[str, Resumable] = {"trainer": trainer, **followers}
    for name, state in (checkpointer.load() or {}).items():
        parts[name].load_state_dict(state)
    while trainer.epochs_done < epochs:
        if not _epoch(trainer, followers):
            return True
        checkpointer.save_if_due(lambda: {name: part.state_dict() for name, part in parts.items()})
        job.progress(trainer.epochs_done, epochs)
    return False


def _epoch(trainer: Trainer, followers: Mapping[str, Follower]) -> bool:
    """One epoch and what follows it; whether all stayed finite. Otherwise all of them stand as before it.

    If memory runs out, it begins again with its batches in smaller pieces.
    """
    while True:
        before = {name: follower.state_dict() for name, follower in followers.items()}
        try:
            trainer.epoch()
            for follower in followers.values():
                follower.after_epoch(trainer)
        except Diverged:
            _go_back(trainer, followers, before)
            return False
        except torch.OutOfMemoryError:
            if not trainer.can_split_batches:
                raise
        else:
            return True
        # Only here: while the error is handled, it holds the tensors of the step that it ended.
        _go_back(trainer, followers, before)
        trainer.split_batches()


def _go_back(trainer: Trainer, followers: Mapping[str, Follower], before: Mapping[str, dict[str, Any]]) -> None:
    trainer.rewind()
    for name, follower in followers.items():
        follower.load_state_dict(before[name])
