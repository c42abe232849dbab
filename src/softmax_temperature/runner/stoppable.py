"""A job whose cell ends at its next checkpoint once a signal was put off.

Of several processes that train one network the first one has the checkpoint and decides when the cell ends; all of them
come to its checkpoints together.

Not in `jobs` and `checkpoints`, which are code of every cell: how cells are stopped makes no result stale.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softmax_temperature.runner.checkpoints import Checkpointer, save_checkpoint
from softmax_temperature.runner.jobs import CHECKPOINT, Job
from softmax_temperature.runner.torchrun import agreed, follows

if TYPE_CHECKING:
    from softmax_temperature.runner.stopping import Stop

WORTH = 20
"""A save is worth this many times its own time."""


@dataclass(frozen=True)
class StoppableJob(Job):
    """The same for the cell.

    Attributes:
        stop: whether a signal came.
    """

    stop: Stop

    def checkpointer(self) -> Checkpointer:
        """Where the cell keeps its unfinished state; ends the cell when it is asked to stop."""
        self.stop.waits = True
        return StoppableCheckpointer(self.work / CHECKPOINT, self.checkpoint_seconds, self.stop)


class StoppableCheckpointer(Checkpointer):
    """Saves at once, and ends the cell, when that is asked to stop.

    Large states take long to save. After a save the next one waits for `WORTH` times as long as that took, unless every
    state is to be saved.

    Args:
        path: the file.
        seconds: the least time between two saves, otherwise; 0 to save every state.
        stop: whether a signal came.
    """

    def __init__(self, path: Path, seconds: float, stop: Stop) -> None:
        super().__init__(path, seconds)
        self._least, self._stop = seconds, stop

    def load(self) -> dict[str, Any] | None:
        """The last saved state, or None."""
        state: dict[str, Any] | None = agreed(super().load())
        return state

    def save_if_due(self, state: Callable[[], dict[str, Any]]) -> None:
        """Save what `state()` returns when enough time has passed, or when this is the last chance to.

        Raises:
            Stop: it was the last chance.
        """
        number = agreed(self._stop.number)
        if number is None:
            before, began = self._saved, time.monotonic()
            super().save_if_due(state)
            if self._least and self._saved != before:
                self.seconds = max(self._least, WORTH * (self._saved - began))
            return
        self._stop.number = number
        if not follows():
            save_checkpoint(self.path, state())
        raise self._stop
