"""A program that dies by SIGKILL before each step of a write, one after the other, and prints what it left each time.

    python crash_at_each_step.py file|artifact|moved-artifact|checkpoint FOLDER

Each write is a process of its own. After each death it prints, as JSON, the step that was not done any more, what a
reader then finds, and what lies in the folder after the next write has gone through.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from softmax_temperature.runner import artifacts
from softmax_temperature.runner.artifacts import new_artifact, open_artifact, write_json, write_text

OLD, NEW = "old " * 1000, "new " * 1000
Writer = Callable[[Path, str], None]
Reader = Callable[[Path], str]


def write_file(folder: Path, value: str) -> None:
    write_text(folder / "file", value)


def read_file(folder: Path) -> str:
    return (folder / "file").read_text()


def write_artifact(folder: Path, value: str) -> None:
    with new_artifact(folder / "artifact", kind="numbers", about={}) as output:
        write_json(output / "value.json", value)
        (output / "deep").mkdir()
        write_text(output / "deep" / "again", value)


def read_artifact(folder: Path) -> str:
    if not (folder / "artifact").exists():
        return "absent"
    artifact = open_artifact(folder / "artifact")
    assert artifact.problems() == []
    assert artifact.path("deep/again").read_text() == artifact.json("value.json")
    return str(artifact.json("value.json"))


def write_checkpoint(folder: Path, value: str) -> None:
    from softmax_temperature.runner.checkpoints import save_checkpoint

    save_checkpoint(folder / "checkpoint.pt", {"value": value})


def read_checkpoint(folder: Path) -> str:
    from softmax_temperature.runner.checkpoints import load_checkpoint

    return str((load_checkpoint(folder / "checkpoint.pt") or {})["value"])


WRITES: dict[str, tuple[Writer, Reader]] = {
    "file": (write_file, read_file),
    "artifact": (write_artifact, read_artifact),
    "moved-artifact": (write_artifact, read_artifact),
    "checkpoint": (write_checkpoint, read_checkpoint),
}


class Steps:
    """Counts steps and kills this process before the one that was asked for; tells its name through a pipe."""

    def __init__(self, fatal: int, pipe: int) -> None:
        self.left, self.pipe, self.armed = fatal, pipe, False

    def step(self, name: str) -> None:
        if self.armed and self.left == 0:
            os.write(self.pipe, name.encode())
            os.kill(os.getpid(), signal.SIGKILL)
        self.left -= self.armed

    def before(self, module: Any, name: str) -> None:
        """Make a function of a module a step."""
        original = getattr(module, name)

        def call(*arguments: Any, **options: Any) -> Any:
            self.step(name)
            return original(*arguments, **options)

        setattr(module, name, call)


class SlowFile:
    """A file for writing whose bytes reach the system in two halves."""

    def __init__(self, file: IO[bytes], steps: Steps) -> None:
        self.file, self.steps = file, steps

    def __enter__(self) -> SlowFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.steps.step("close")
        self.file.close()

    def fileno(self) -> int:
        return self.file.fileno()

    def write(self, content: bytes) -> int:
        self.steps.step("write")
        self.file.write(content[: len(content) // 2])
        self.steps.step("half of the write")
        return self.file.write(content[len(content) // 2 :])

    def flush(self) -> None:
        self.steps.step("flush")


def install(steps: Steps, how: str) -> None:
    """Make a step of everything that a write asks of the system."""
    events = {"open", "os.chmod", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "fcntl.flock"}
    sys.addaudithook(lambda event, _: steps.step(event) if event in events else None)
    steps.before(os, "fsync")
    opened = Path.open

    def slow(path: Path, mode: str = "r", *arguments: Any, **options: Any) -> Any:
        if mode != "wb":
            return opened(path, mode, *arguments, **options)
        return SlowFile(opened(path, mode, buffering=0), steps)

    Path.open = slow  # type: ignore[assignment, method-assign]
    if how == "moved-artifact":
        artifacts._exchange = lambda *_: False
    else:
        steps.before(artifacts, "_exchange")


def die_at(fatal: int, how: str, folder: Path) -> str | None:
    """Write in another process that dies; returns the name of the step, or None if it came to its end."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        steps = Steps(fatal, writing)
        install(steps, how)
        steps.armed = True
        WRITES[how][0](folder, NEW)
        steps.armed = False
        os._exit(0)
    os.close(writing)
    _, status = os.waitpid(child, 0)
    with os.fdopen(reading) as pipe:
        name = pipe.read()
    if os.WIFSIGNALED(status):
        return name
    assert os.WEXITSTATUS(status) == 0, "a write failed by itself"
    return None


def main(how: str, folder: Path) -> None:
    write, read = WRITES[how]
    names = {OLD: "old", NEW: "new"}
    deaths, number = [], 0
    while True:
        write(folder, OLD)
        step = die_at(number, how, folder)
        found = read(folder)
        if step is None:
            break
        write(folder, NEW)
        after = read(folder)
        left = sorted(path.name for path in folder.iterdir())
        deaths.append({"step": step, "found": names.get(found, found), "after": names.get(after, after), "left": left})
        number += 1
    sys.stdout.write(json.dumps({"deaths": deaths, "end": names[found]}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
