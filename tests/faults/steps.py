"""Where the cells of a program are that is started to be ended, and a step at which they wait for that.

Imports nothing that takes time: every process of a victim does.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from softmax_temperature.runner.cells import Job

STEPS = "steps"
GO_ON = "go-on"
HOLD_AT = "SOFTMAX_TEMPERATURE_FAULT_TEST_HOLD_AT"
_say = Job.progress


def note_step(job: Job, done: int, total: int) -> None:
    """In the place of `Job.progress`: of all runs of a cell, every step stays in a file `STEPS` beside its progress.

    Where the variable `HOLD_AT` is "done/total", a cell waits there, however slow the machine is, until it is killed or
    asked to stop, or a file `GO_ON` is in the current folder.
    """
    with (job.work / STEPS).open("a") as log:
        log.write(f"{done}\n")
    _say(job, done, total)
    if f"{done}/{total}" == os.environ.get(HOLD_AT):
        while not _asked_to_stop(job) and not Path(GO_ON).exists():
            time.sleep(0.01)


def _asked_to_stop(job: Job) -> bool:
    from softmax_temperature.runner.stoppable import StoppableJob  # Imports torch; a cell has it.

    return isinstance(job, StoppableJob) and job.stop.number is not None
