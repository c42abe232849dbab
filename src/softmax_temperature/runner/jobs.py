"""What a piece of work is: its name, its function, its parameters and inputs; and what it is given when it runs.

Stages describe their work with these and import nothing of how it is run, so that a change to the runner makes no
result stale.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from softmax_temperature.runner.artifacts import Artifact
    from softmax_temperature.runner.checkpoints import Checkpointer

CHECKPOINT = "checkpoint.pt"


@dataclass(frozen=True)
class Cell:
    """One piece of work.

    Attributes:
        name: unique within its stage's output folder, for instance "mnist/resnet18" or "sgd-rescaled"; the only cell
            of a stage is called "." and fills the output folder itself.
        run: a module-level function, called as `run(job, **parameters)`; writes its files into `job.output`.
        parameters: JSON values, all that the result depends on besides inputs and code.
        inputs: artifacts that it reads, by the name it knows them by.
        code: modules that it chooses by name and imports when it runs, for instance the loss of its arm; they count
            as its code, and the modules of other arms do not.
    """

    name: str
    run: Callable[..., None]
    parameters: Mapping[str, Any]
    inputs: Mapping[str, Path] = field(default_factory=dict)
    code: tuple[str, ...] = ()


@dataclass(frozen=True)
class Job:
    """What a running cell is given.

    Attributes:
        seed: its own, derived from the project's seed, the stage and its name: adding a cell changes no other.
        inputs: the artifacts it reads, opened.
        output: the folder to write its files into.
        work: a folder that survives a crash, for its checkpoint.
        device: "cpu" or "cuda".
        checkpoint_seconds: the least time between two checkpoints.
    """

    seed: int
    inputs: Mapping[str, Artifact]
    output: Path
    work: Path
    device: str
    checkpoint_seconds: float

    def checkpointer(self) -> Checkpointer:
        """Where the cell keeps its unfinished state; removed when the cell is done."""
        from softmax_temperature.runner.checkpoints import Checkpointer  # Imports torch, which `--help` must not.

        return Checkpointer(self.work / CHECKPOINT, self.checkpoint_seconds)

    def progress(self, done: int, total: int) -> None:
        """Say how far the cell is; the stage shows it. Not durable, so no fsync."""
        (self.work / "progress").write_text(f"{done}/{total}")


def seed_of(seed: int, *names: str) -> int:
    """A 63-bit seed for a named purpose, independent of every other name's."""
    digest = hashlib.sha256("/".join([str(seed), *names]).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
