"""Progress goes to standard error, seldom, and says what is new."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest

from softmax_temperature.runner import progress


def test_a_line_every_few_seconds_with_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # Started at 0; the calls of `advance` come at 1, 6, 7 and 12 seconds.
    clock = iter([0.0, 1.0, 6.0, 7.0, 12.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.counting("images", 2000) as advance:
        for _ in range(4):
            advance(300)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "images: 600 of 2,000, about 14 s left",
        "images: 1,200 of 2,000, about 8 s left",
    ]


def test_a_stage_has_a_line_for_each_step_and_none_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []
    monkeypatch.setattr(progress, "say", lines.append)
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.01)
    finished: list[str] = []
    with progress.watching("stage", {"cell": tmp_path}, finished):
        for step in ("1/2", "2/2"):
            (tmp_path / "progress").write_text(step)
            while not any(step in line for line in lines):
                time.sleep(0.01)
            time.sleep(0.05)  # A line that comes twice would come now.
        finished.append("cell")
    assert {"stage: 0/1 cells (cell 1/2)", "stage: 0/1 cells (cell 2/2)"} <= set(lines)
    assert lines[-1] == "stage: 1/1 cells"
    assert all(one != other for one, other in pairwise(lines))
