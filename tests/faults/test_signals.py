"""SIGINT and SIGTERM: a checkpoint, no process left, and the exit code of the signal."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest
from softmax_temperature.runner.stoppable import StoppableJob
from softmax_temperature.runner.stopping import Stop, Stopped, held_back, put_off, stopped_by_signals

from softmax_temperature.params import validate
from softmax_temperature.runner.artifacts import new_artifact
from softmax_temperature.runner.cells import CHECKPOINT
from softmax_temperature.runner.checkpoints import Checkpointer, load_checkpoint
from softmax_temperature.stages import search
from softmax_temperature.stages.programs import exit_code
from tests.faults import work
from tests.faults.victims import Victim, checkpoints, progress, results, start

NEVER = 3600.0  # Seconds between two checkpoints: one that is there was written because of the signal.


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with embeddings to search: ten noisy directions, twice."""
    import torch

    from softmax_temperature.data.splits import SPLITS
    from softmax_temperature.networks.embeddings import write_embeddings

    folder = tmp_path_factory.mktemp("embedded")
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(10).repeat(20)
    noisy = torch.randn(10, 32, generator=generator)[labels] + 2 * torch.randn(200, 32, generator=generator)
    rows = {split: (labels, torch.arange(200)) for split in SPLITS}
    for backbone in ("untrained-16", "untrained-64"):
        with new_artifact(folder / "data/embeddings/digits" / backbone, kind="embed", about={}) as output:
            write_embeddings(
                output, rows, lambda _: [noisy], {"dataset": "digits", "backbone": backbone, "embedding": 32}
            )
    return folder


@pytest.fixture(scope="module")
def uninterrupted(embedded: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return finished(Path(shutil.copytree(embedded, tmp_path_factory.mktemp("whole") / "project")))


def finished(folder: Path) -> dict[str, bytes]:
    """Run what is left of the search in this process; returns the results."""
    with chdir(folder):
        work.run(search, validate(work.content("serial", NEVER), where="fault tests"))
    return results(folder)


def to_all(victim: Victim, number: int) -> None:
    """As a terminal does for Ctrl-C."""
    os.killpg(victim.process.pid, number)


def to_one(victim: Victim, number: int) -> None:
    victim.process.send_signal(number)


@pytest.mark.parametrize(
    ("engine", "send", "number", "code"),
    [
        ("serial", to_one, signal.SIGTERM, 143),
        ("processes", to_one, signal.SIGTERM, 143),
        ("processes", to_all, signal.SIGINT, 130),
    ],
)
def test_a_signal_comes_to_a_checkpoint_and_leaves_nothing_running(
    embedded: Path,
    uninterrupted: dict[str, bytes],
    tmp_path: Path,
    engine: str,
    send: Callable[[Victim, int], None],
    number: signal.Signals,
    code: int,
) -> None:
    folder = Path(shutil.copytree(embedded, tmp_path / "project"))
    victim = start(folder, "search", engine=engine, checkpoint_seconds=NEVER, hold_at=5)
    at_work = [5] * (1 if engine == "serial" else work.CELLS)
    victim.wait_until(lambda: list(progress(folder, since=victim.began).values()) == at_work)
    assert not checkpoints(folder)
    send(victim, number)
    assert victim.wait() == code, victim.output
    assert f"stopped by {number.name}" in victim.output
    assert "Traceback" not in victim.output
    saved = checkpoints(folder)
    assert 5 <= max(saved.values()) <= 6
    assert finished(folder) == uninterrupted


# ---- the same in this process


def send_soon(number: signal.Signals, seconds: float = 0.5) -> None:
    threading.Timer(seconds, os.kill, (os.getpid(), number)).start()


def wait(*_: object) -> None:
    time.sleep(30)
    pytest.fail("no signal came")


def job(folder: Path, stop: Stop) -> StoppableJob:
    return StoppableJob(0, {}, folder, folder, "cpu", NEVER, stop)


def run_until_stopped(cell: Callable[[Checkpointer], None], folder: Path, patience: float = NEVER) -> None:
    """A cell that saves checkpoints, in a program that a signal has to stop."""

    def program() -> None:
        with stopped_by_signals(), put_off(patience) as stop:
            cell(job(folder, stop).checkpointer())

    with pytest.raises(Stopped):
        program()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_program_that_runs_no_cell_stops_at_once(number: signal.Signals, code: int) -> None:
    before = signal.getsignal(number)
    send_soon(number)
    assert exit_code(wait) == code
    assert signal.getsignal(number) is before


# pytest-timeout's other method shares a timer with the one that is tested.
in_a_thread = pytest.mark.timeout(60, method="thread")


@in_a_thread
@pytest.mark.parametrize("patience", [0.0, 0.2])
def test_a_cell_that_comes_to_no_checkpoint_in_time_is_ended(tmp_path: Path, patience: float) -> None:
    alarm = signal.getsignal(signal.SIGALRM)
    send_soon(signal.SIGTERM)
    run_until_stopped(wait, tmp_path, patience)
    assert signal.getsignal(signal.SIGALRM) is alarm
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0


@in_a_thread
def test_a_cell_without_checkpoints_is_not_waited_for() -> None:
    def program() -> None:
        with stopped_by_signals(), put_off(NEVER):
            wait()

    send_soon(signal.SIGTERM)
    with pytest.raises(Stopped):
        program()


@in_a_thread
def test_a_second_interrupt_is_not_put_off(tmp_path: Path) -> None:
    def cell(_: Checkpointer) -> None:
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)
        pytest.fail("the cell went on")

    run_until_stopped(cell, tmp_path)


@in_a_thread
def test_a_second_sigterm_is_put_off_too(tmp_path: Path) -> None:
    """All processes of a group may be sent one, and then a stage sends its workers another."""

    def cell(checkpointer: Checkpointer) -> None:
        for _ in range(2):
            signal.raise_signal(signal.SIGTERM)
        checkpointer.save_if_due(lambda: {"epoch": 7})
        pytest.fail("the cell went on")

    run_until_stopped(cell, tmp_path)
    assert load_checkpoint(tmp_path / CHECKPOINT) == {"epoch": 7}


@in_a_thread
def test_a_cell_that_ends_meanwhile_is_kept(tmp_path: Path) -> None:
    def cell(_: Checkpointer) -> None:
        signal.raise_signal(signal.SIGTERM)
        (tmp_path / "result").touch()

    run_until_stopped(cell, tmp_path)
    assert (tmp_path / "result").exists()


@in_a_thread
def test_a_cell_that_fails_meanwhile_does_not_hide_the_signal(tmp_path: Path) -> None:
    def cell(_: Checkpointer) -> None:
        signal.raise_signal(signal.SIGTERM)
        raise ZeroDivisionError

    run_until_stopped(cell, tmp_path)


def test_without_a_signal_a_checkpoint_waits_for_its_time(tmp_path: Path) -> None:
    with put_off(NEVER) as stop:
        checkpointer = job(tmp_path, stop).checkpointer()
        checkpointer.save_if_due(lambda: pytest.fail("asked for a state that was not due"))
    assert checkpointer.load() is None


@pytest.mark.parametrize("fails", [False, True])
def test_a_signal_that_is_held_back_is_not_lost(fails: bool) -> None:
    ended = []

    def call() -> None:
        with held_back():
            signal.raise_signal(signal.SIGTERM)
            ended.append(True)
            if fails:
                raise ConnectionError

    def program() -> None:
        with stopped_by_signals():
            call()
            pytest.fail("the program went on")

    with pytest.raises(Stopped):
        program()
    assert ended, "the library was not interrupted"


def test_what_is_ignored_stays_ignored() -> None:
    """As SIGHUP is under nohup, so SIGINT is in what a script starts in the background."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with stopped_by_signals(), put_off(NEVER) as stop:
            signal.raise_signal(signal.SIGINT)
        assert stop.number is None
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_thread_leaves_signals_alone() -> None:
    """Only a main thread may handle them; a cell may run in another."""
    seen = []
    before = signal.getsignal(signal.SIGTERM)

    def run() -> None:
        with put_off(NEVER) as stop:
            seen.append((stop.number, signal.getsignal(signal.SIGTERM)))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [(None, before)]


# ---- a notebook, whose kernel is a process of its own

NOTEBOOK = """
import sys, nbformat
from pathlib import Path
from nbformat.v4 import new_code_cell, new_notebook
from softmax_temperature.papers.shared.notebooks import execute
from softmax_temperature.stages.programs import exit_code

cell = new_code_cell("import pathlib, time; pathlib.Path('running').touch(); time.sleep(300)", id="only")
nbformat.write(new_notebook(cells=[cell]), "slow.ipynb")
sys.exit(exit_code(lambda: execute(Path("slow.ipynb"), Path("executed.ipynb"), {})))
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_notebooks_kernel_ends_with_its_stage(tmp_path: Path, number: signal.Signals) -> None:
    victim = Victim([sys.executable, "-c", NOTEBOOK], tmp_path)
    while not (tmp_path / "running").exists():
        assert victim.process.poll() is None, victim.output
        time.sleep(0.05)
    to_one(victim, number)
    assert victim.wait() == (143 if number == signal.SIGTERM else -number), victim.output
    assert not (tmp_path / "executed.ipynb").exists()
