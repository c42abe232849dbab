"""Progress goes to standard error, and seldom."""

from pathlib import Path

import pytest

from softmax_temperature.runner import progress
from tests.runner import toy


def test_steps_are_said_at_most_every_so_many_seconds(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = progress.Progress()
    for step in range(1, 4):
        lines(f"step {step}")
    assert capsys.readouterr().err == "step 1\nstep 2\nstep 3\n", (
        "toy cells set no time between lines"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "SECONDS_BETWEEN_LINES", 60.0)
        lines("too early")
    toy.run(1)
    said = capsys.readouterr().err.splitlines()
    assert said[0] == "counts: 1 of 1 cells to run"
    assert [line.rpartition(": ")[2] for line in said[1:]] == [
        f"{n}/{toy.STEPS}" for n in range(1, 21)
    ] + ["1/1 cells"]
    assert Path(said[1].rpartition(": ")[0]) == Path("data/cells/counts/n-1")
