"""`dvc repro`, killed at any instant, interrupted, or started twice: the artifacts are those of one that was not."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import CHECKPOINT
from softmax_temperature.runner.reading import read_yaml
from softmax_temperature.stages import search
from tests.faults import work
from tests.faults.copies import copy_project
from tests.faults.steps import GO_ON, HOLD_AT
from tests.faults.victims import Victim, checkpoints, expect_little_lost, progress, results

STAGES = ("code", "fetch", "embed", "search")
RUNNING = re.compile("Running stage '([a-z]+)")
EPOCHS = work.EPOCHS["search"]
SEARCH = search.OUTPUT.relative_to("data").as_posix()
NEVER = 3600.0  # Seconds between two checkpoints: one that is new was written because of the signal.


def new_project(folder: Path) -> Path:
    """The project with some of its stages, without Git; two backbones, none of them pretrained."""
    copy_project(folder)
    stages = read_yaml(folder / "dvc.yaml")["stages"]
    graph = {name: stages[name] for name in STAGES}
    graph["embed"]["deps"].remove("data/backbones")
    with (folder / "dvc.yaml").open("w") as file:
        YAML().dump({"stages": graph}, file)
    return folder


def repro(folder: Path, *, engine: str = "processes", checkpoint_seconds: float = 0, hold_at: int = 0) -> Victim:
    """Start it; how cells are run makes no stage stale. If an epoch is given, the search's cells wait at it.

    DVC runs stages through the shell that is the user's, or /bin/sh: Debian's stays between the two, others do not.
    """
    write_json(folder / "params.yaml", work.content(engine, checkpoint_seconds))  # YAML holds JSON.
    variables = {HOLD_AT: f"{hold_at}/{EPOCHS}", "SHELL": "/bin/sh"}
    return Victim([sys.executable, "-m", "dvc", "repro"], folder, **variables)


def outcome(folder: Path) -> dict[str, bytes]:
    return {**results(folder), "dvc.lock": (folder / "dvc.lock").read_bytes()}


@pytest.fixture(scope="module")
def make_project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Path]]:
    # The programs say `python`.
    path = os.environ["PATH"]
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), path])
    yield lambda name: new_project(tmp_path_factory.mktemp(name) / "project")
    os.environ["PATH"] = path


@pytest.fixture(scope="module")
def two_at_once(make_project: Callable[[str], Path]) -> tuple[Path, int, str]:
    """A project that was rebuilt while a second `dvc repro` came; the first process's number, what the second said."""
    folder = make_project("whole")
    first = repro(folder, engine="serial", hold_at=EPOCHS // 2)
    first.wait_for_progress(folder, EPOCHS // 2, SEARCH)
    second = repro(folder, engine="serial")
    code = second.wait()
    (folder / GO_ON).touch()
    assert first.wait() == 0, first.output
    return folder, first.process.pid, f"{code}\n{second.output}"


def test_a_second_pipeline_says_who_is_at_work(two_at_once: tuple[Path, int, str]) -> None:
    _, number, said = two_at_once
    assert f"(PID {number}): " in said
    assert not said.startswith("0")


@pytest.mark.timeout(600)
def test_a_pipeline_that_was_killed_or_interrupted_goes_on(
    make_project: Callable[[str], Path], two_at_once: tuple[Path, int, str]
) -> None:
    folder = make_project("killed")
    victim = repro(folder)
    victim.wait_for_output("Running stage 'fetch")
    time.sleep(0.5)
    victim.process.terminate()
    assert victim.wait() == -signal.SIGTERM, victim.output
    expect_little_lost(folder)
    victim = repro(folder, hold_at=EPOCHS // 5)
    victim.wait_for_progress(folder, EPOCHS // 5, SEARCH)
    assert victim.kill(), victim.output
    expect_little_lost(folder)
    interrupt(folder)
    last = repro(folder, engine="serial")
    assert last.wait() == 0, last.output
    assert outcome(folder) == outcome(two_at_once[0])


def interrupt(folder: Path) -> None:
    """Type Ctrl-C: a terminal sends SIGINT to DVC, its stage and its workers; they leave a checkpoint, none is left."""
    victim = repro(folder, checkpoint_seconds=NEVER, hold_at=EPOCHS // 2)
    victim.wait_for_progress(folder, EPOCHS // 2, SEARCH)
    before = saves(folder)
    os.killpg(victim.process.pid, signal.SIGINT)
    assert victim.wait() > 0, victim.output
    assert "stopped by SIGINT" in victim.output, victim.output
    saved, fresh = checkpoints(folder), progress(folder, SEARCH, since=victim.began)
    assert max(fresh.values()) >= EPOCHS // 2
    assert all(saved[place] >= done for place, done in fresh.items())
    after = saves(folder)
    assert all(after[place] != before.get(place) for place in fresh)


def saves(folder: Path) -> dict[Path, int]:
    """What a cell's checkpoint is to the file system, by its work folder: another file after each save."""
    return {place: (place / CHECKPOINT).stat().st_ino for place in checkpoints(folder)}


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_twenty_kills_lose_nothing(
    make_project: Callable[[str], Path],
    two_at_once: tuple[Path, int, str],
    record_property: Callable[[str, object], None],
) -> None:
    generator = random.Random(0)  # noqa: S311  # not for secrets
    began, timed = time.monotonic(), repro(make_project("timed"))
    assert timed.wait() == 0, timed.output
    seconds, folder, phases = time.monotonic() - began, make_project("killed"), list[str]()
    while len(phases) < 20:
        victim = repro(folder)
        with suppress(subprocess.TimeoutExpired):
            victim.process.wait(generator.uniform(0, seconds))
        if victim.kill():
            expect_little_lost(folder)
            phases.append(["before any stage", *RUNNING.findall(victim.output)][-1])
        else:
            assert victim.process.returncode == 0, victim.output
            assert outcome(folder) == outcome(two_at_once[0])
            folder = make_project("killed")
    last = repro(folder)
    assert last.wait() == 0, last.output
    assert outcome(folder) == outcome(two_at_once[0])
    record_property("kills", len(phases))
    for name, count in sorted(Counter(phases).items()):
        record_property(f"kills, {name}", count)
