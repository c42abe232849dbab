"""How a task may end. Imports nothing that takes time: each worker that is lost is started again."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


def misbehave(how: str) -> str:
    """End as the word says, or say in which process this was."""
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "terminated":
        os.kill(os.getpid(), signal.SIGTERM)
    if how == "exits":
        sys.exit(3)
    if how == "hangs":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(60)
    return f"{how} in process {os.getpid()}"


@dataclass(frozen=True)
class Misbehaviour:
    """The same as a task that can go to another machine."""

    how: str
    inputs: Mapping[str, Path] = field(default_factory=dict)
    result: Path = Path("data/work/misbehaviour/result")
    fingerprint: str = ""
    root: Path | None = None


def misbehave_there(task: Misbehaviour) -> str:
    return misbehave(task.how)
