"""Progress goes to standard error, seldom, and says how much is left."""

from __future__ import annotations

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
