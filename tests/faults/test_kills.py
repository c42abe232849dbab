"""A stage that is killed with SIGKILL at any instant and started again ends with the bytes of one that was not."""

from __future__ import annotations

import itertools
import random
import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import chdir, suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from softmax_temperature.params import Params, validate
from softmax_temperature.runner.cells import Job
from softmax_temperature.stages import embed
from tests.faults import work
from tests.faults.phases import END, START, WITHIN, phase, steps
from tests.faults.ray_nodes import SETTINGS
from tests.faults.steps import note_step
from tests.faults.victims import checkpoints, expect_little_lost, expect_no_step_twice, progress, results, start

NewProject = Callable[[str, str], Path]
ALL_STEPS = {stage: work.CELLS * steps_of_a_cell for stage, steps_of_a_cell in work.STEPS_OF_A_CELL.items()}


@dataclass(frozen=True)
class Instant:
    """When to kill: so many seconds after so many steps of all cells together; without steps, after the start.

    Each cell waits for it at a step, if one is given.
    """

    steps: int
    seconds: float
    hold_at: int = 0


LAST_STEP = Instant(ALL_STEPS["embedding"], 0)
HELD_THERE = replace(LAST_STEP, hold_at=work.STEPS_OF_A_CELL["embedding"])


def params() -> Params:
    """For runs in this process, in which nothing happens."""
    return validate(work.content("serial", 3600), where="fault tests")


@pytest.fixture(scope="module")
def new_project(tmp_path_factory: pytest.TempPathFactory) -> NewProject:
    """Makes a project folder for a stage, with what that stage reads."""
    source = tmp_path_factory.mktemp("source")
    with chdir(source):
        work.prepare(params())
        shutil.copytree("data", source / "embedding/data", ignore=shutil.ignore_patterns("work"))
        work.run(embed, params())
        for stage in ("search", "training"):
            shutil.copytree("data", source / stage / "data", ignore=shutil.ignore_patterns("work"))

    def make(name: str, stage: str) -> Path:
        return Path(shutil.copytree(source / stage, tmp_path_factory.mktemp(name) / "project"))

    return make


@pytest.fixture(scope="module")
def uninterrupted(new_project: NewProject) -> Callable[[str], dict[str, bytes]]:
    """The results of a stage that nothing happened to; each is run once, in this process."""
    found: dict[str, dict[str, bytes]] = {}

    def run(stage: str) -> dict[str, bytes]:
        if stage not in found:
            found[stage] = finished(new_project("whole", stage), stage)
        return found[stage]

    return run


@pytest.fixture(autouse=True)
def _steps_are_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process as in those that are killed."""
    monkeypatch.setattr(Job, "progress", note_step)


def finished(folder: Path, stage: str) -> dict[str, bytes]:
    """Run what is left of a stage in this process; returns its results."""
    with chdir(folder):
        work.run(work.STAGES[stage], params())
    expect_no_step_twice(folder)
    assert not [path for path in folder.rglob(".*") if path.is_dir()], "nothing half-built is left"
    return results(folder)


def kill(folder: Path, stage: str, engine: str, instant: Instant) -> str | None:
    """Start a stage and kill it; returns the phase that it was in, or None if it came to its end before."""
    victim = start(folder, stage, engine=engine, hold_at=instant.hold_at)
    if instant.steps:
        victim.wait_until(lambda: steps(folder) >= instant.steps and bool(progress(folder, since=victim.began)))
    with suppress(subprocess.TimeoutExpired):
        victim.process.wait(instant.seconds)
    if victim.kill():
        expect_little_lost(folder)
        return phase(folder, stage, victim)
    assert victim.process.returncode == 0, victim.output
    return None


def killed(
    new_project: NewProject,
    stage: str,
    engine: str,
    instants: Iterable[Instant],
    kills: int,
    expected: dict[str, bytes],
) -> list[str]:
    """Kill a stage so often while it lives, each time in what the last kill left, and compare what it ends with.

    Returns:
        The phase of each kill.
    """
    phases: list[str] = []
    folder, output = new_project("killed", stage), work.STAGES[stage].OUTPUT
    for instant in instants:
        met = kill(folder, stage, engine, instant)
        phases += [met] if met else []
        published = (folder / output).exists()
        assert not published or below(output, results(folder)) == below(output, expected), "all or nothing"
        if published or len(phases) == kills:
            assert finished(folder, stage) == expected
            if len(phases) == kills:
                break
            folder = new_project("killed", stage)
    return phases


def below(output: Path, files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: content for name, content in files.items() if Path(name).is_relative_to(output)}


@pytest.mark.parametrize(
    ("stage", "engine", "instants", "phases"),
    [
        ("search", "processes", [Instant(0, 0.5), Instant(100, 0, hold_at=60)], [START, WITHIN]),
        ("training", "serial", [Instant(3, 0, hold_at=3), Instant(11, 0, hold_at=3)], [f"{WITHIN} 0", f"{WITHIN} 1"]),
        # While they are sealed and published, and the program ends: again where that was too fast, at last before it.
        ("embedding", "processes", [LAST_STEP] * 4 + [HELD_THERE], [END]),
    ],
)
def test_killed_and_resumed_equals_uninterrupted(
    new_project: NewProject,
    uninterrupted: Callable[[str], dict[str, bytes]],
    stage: str,
    engine: str,
    instants: list[Instant],
    phases: list[str],
) -> None:
    found = killed(new_project, stage, engine, instants, len(phases), uninterrupted(stage))
    assert len(found) == len(phases)
    assert all(map(str.startswith, found, phases)), found


# ---- soaks


def anywhere(folder: Path, stage: str, engine: str, seed: int) -> Iterator[Instant]:
    """Instants over the whole of a run that is timed first; every fourth over what follows its last step."""
    began = time.monotonic()
    victim = start(folder, stage, engine=engine)
    victim.wait_until(lambda: steps(folder) >= ALL_STEPS[stage])
    last_step = time.monotonic()
    assert victim.wait() == 0, victim.output
    ended = time.monotonic()
    generator = random.Random(seed)  # noqa: S311  # not for secrets
    for number in itertools.count(1):
        if number % 4:
            yield Instant(0, generator.uniform(0, ended - began))
        else:
            yield Instant(ALL_STEPS[stage], generator.uniform(0, ended - last_step))


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("engine", ["serial", "processes"])
@pytest.mark.parametrize("stage", ["search", "training", "embedding"])
def test_twenty_kills_lose_nothing(
    new_project: NewProject,
    uninterrupted: Callable[[str], dict[str, bytes]],
    stage: str,
    engine: str,
    record_property: Callable[[str, object], None],
) -> None:
    instants = anywhere(new_project("timed", stage), stage, engine, seed=0)
    phases = killed(new_project, stage, engine, instants, 20, uninterrupted(stage))
    assert len(phases) == 20
    record_property("kills", len(phases))
    for name, count in sorted(Counter(phases).items()):
        record_property(f"kills, {name}", count)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not find_spec("ray"), reason="needs the extra `ray`")
def test_kills_of_a_stage_whose_cells_run_on_ray(
    new_project: NewProject,
    uninterrupted: Callable[[str], dict[str, bytes]],
    monkeypatch: pytest.MonkeyPatch,
    record_property: Callable[[str, object], None],
) -> None:
    """Ray was started by the stage, and ends with it; cells go on at their checkpoints, whoever runs them next."""
    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    phases = []
    for instant in (Instant(0, 3), Instant(2, 0), Instant(8, 0)):
        folder = new_project("ray", "training")
        phases.append(kill_on_ray(folder, instant))
        go_on_on_ray(folder)
        assert results(folder) == uninterrupted("training")
    record_property("kills", len(phases))
    record_property("phases", phases)
    assert phases[0] == START
    assert all(each.startswith(WITHIN) for each in phases[1:]), phases


def kill_on_ray(folder: Path, instant: Instant) -> str:
    """Kill the stage, not Ray; returns the phase. Ray's workers notice, but may come some epochs further before."""
    victim = start(folder, "training", engine="ray")
    victim.wait_until(lambda: steps(folder) >= instant.steps)
    time.sleep(instant.seconds)
    met = phase(folder, "training", victim)
    assert victim.kill(), victim.output
    expect_little_lost(folder)
    return met


def go_on_on_ray(folder: Path) -> None:
    """Run it to its end; fails if a cell does not go on behind its checkpoint."""
    saved = checkpoints(folder)
    victim = start(folder, "training", engine="ray")
    victim.wait_for_progress(folder, 1)
    first = progress(folder, since=victim.began)
    assert all(done > saved.get(place, 0) for place, done in first.items())
    assert victim.wait() == 0, victim.output
