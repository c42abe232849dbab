"""Two at work in one folder: the second says who the first is and waits; a dead holder holds nothing."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from tests.faults.victims import Victim

HOLD = """
import sys, time
from pathlib import Path
from softmax_temperature.runner.locks import alone

with alone(Path("work")):
    print("inside", flush=True)
    while not Path(sys.argv[1]).exists():
        time.sleep(0.01)
"""


def hold(folder: Path, until: str, *more: bytes) -> Victim:
    return Victim([sys.executable, "-c", HOLD, until, *map(os.fsdecode, more)], folder)


def test_a_second_process_waits_and_says_for_whom(tmp_path: Path) -> None:
    first = hold(tmp_path, "first may end", b"caf\xe9")  # A name that is no text.
    assert first.wait_for_output("inside")
    second = hold(tmp_path, "second may end")
    assert second.wait_for_output("waiting for it"), second.output
    assert f"work: process {first.process.pid} on " in second.output
    assert "caf\\udce9" in second.output
    assert "inside" not in second.output
    (tmp_path / "first may end").touch()
    assert first.wait() == 0
    assert second.wait_for_output("inside")
    (tmp_path / "second may end").touch()
    assert second.wait() == 0


def test_the_lock_of_a_dead_process_is_free(tmp_path: Path) -> None:
    first = hold(tmp_path, "never")
    assert first.wait_for_output("inside")
    second = hold(tmp_path, "now")
    assert second.wait_for_output("waiting for it"), second.output
    first.kill()
    (tmp_path / "now").touch()
    assert second.wait() == 0
    third, began = hold(tmp_path, "now"), time.monotonic()
    assert third.wait() == 0
    assert "waiting" not in third.output, f"after {time.monotonic() - began:.1f} s"
