"""Progress goes to standard error, and not too often."""

import io
import sys
from pathlib import Path

import pytest

from softmax_temperature.runner import progress
from tests.runner import toy


def test_steps_are_printed_at_limited_intervals(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = progress.Progress()
    for step in range(1, 4):
        lines(f"step {step}")
    assert capsys.readouterr().err == "step 1\nstep 2\nstep 3\n", (
        "toy cells must print every line"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "SECONDS_BETWEEN_LINES", 60.0)
        lines("too early")
    toy.run(1)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "counts: 1 of 1 cells to run"
    assert [line.rpartition(": ")[2] for line in said[1:-1]] == [
        f"{n}/{toy.STEPS}" for n in range(1, 21)
    ]
    assert said[-1].startswith("counts: 1/1 cells, ")
    assert Path(said[1].rpartition(": ")[0]) == Path("data/cells/counts/n-1")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def at(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress.time, "monotonic", lambda: seconds)


def test_a_terminal_has_one_line_with_time_passed_and_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    at(0.0, monkeypatch)
    cells = progress.CellProgress("training", cells=10, to_run=4)
    at(90.0, monkeypatch)
    cells(1)
    at(4000.0, monkeypatch)
    cells(4)
    lines = terminal.getvalue().split("\r\x1b[K")[1:]
    assert lines == [
        "training: 7/10 cells, 2 min, about 4 min left",
        "training: 10/10 cells, 1 h 7 min\n",
    ]


def test_a_log_gets_plain_lines_seldom_and_one_at_the_end(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 30.0)
    at(0.0, monkeypatch)
    cells = progress.CellProgress("training", cells=4, to_run=4)
    for done, seconds in ((1, 10.0), (2, 31.0), (3, 40.0), (4, 41.0)):
        at(seconds, monkeypatch)
        cells(done)
    assert capsys.readouterr().err.splitlines() == [
        "training: 2/4 cells, 31 s, about 31 s left",
        "training: 4/4 cells, 41 s",
    ]
