"""Progress goes to standard error, seldom, and says what is new."""

import time
from itertools import pairwise
from pathlib import Path

import pytest

from softmax_temperature.runner import progress


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
