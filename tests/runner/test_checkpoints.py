"""A checkpoint is complete or absent, and loading it never runs code."""

import hashlib
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from softmax_temperature.runner.checkpoints import Checkpointer, UnusableCheckpoint

STATE = {
    "epoch": 3,
    "weights": torch.arange(5.0),
    "curves": [torch.ones(2), torch.zeros(2)],
    "note": None,
}


@pytest.mark.parametrize("flip", [True, False])
def test_a_state_comes_back_and_a_damaged_one_is_set_aside(flip: bool) -> None:
    path = Path("c.pt")
    checkpointer = Checkpointer(path, 0)
    assert checkpointer.load() is None
    checkpointer.save_if_due(lambda: STATE)
    loaded = checkpointer.load()
    assert loaded is not None
    assert loaded["epoch"] == 3
    assert torch.equal(loaded["curves"][1], torch.zeros(2))
    content = bytearray(path.read_bytes())
    content[-40] ^= 4
    path.write_bytes(content if flip else content[:100])
    assert checkpointer.load() is None
    assert [path.name for path in Path().iterdir()] == ["c.pt.damaged"]


class Payload:
    def __reduce__(self) -> tuple[object, ...]:
        return (Path("ran").touch, ())


def test_a_pickle_with_code_is_refused() -> None:
    content = pickle.dumps(Payload())
    Path("c.pt").write_bytes(hashlib.sha256(content).digest() + content)
    with (
        pytest.warns(UserWarning, match="pickle"),
        pytest.raises(UnusableCheckpoint, match="UnpicklingError"),
    ):
        Checkpointer(Path("c.pt"), 0).load()
    assert [path.name for path in Path().iterdir()] == ["c.pt.damaged"]


def test_a_state_that_cannot_be_continued_from_is_set_aside() -> None:
    checkpointer = Checkpointer(Path("c.pt"), 0)
    checkpointer.save_if_due(lambda: STATE)
    with pytest.raises(UnusableCheckpoint, match="KeyError: 'trainer'"):
        checkpointer.resume(lambda state: state["trainer"])
    assert [path.name for path in Path().iterdir()] == ["c.pt.damaged"]
    checkpointer.resume(lambda _: pytest.fail("there is none left"))


def test_a_checkpoint_outlives_exhausted_memory() -> None:
    checkpointer = Checkpointer(Path("c.pt"), 0)
    checkpointer.save_if_due(lambda: STATE)

    def restore(_: dict[str, Any]) -> None:
        raise RuntimeError("CUDA out of memory. Tried to allocate")

    with pytest.raises(RuntimeError, match="out of memory"):
        checkpointer.resume(restore)
    assert Path("c.pt").is_file()


@pytest.mark.parametrize(("seconds", "saves"), [(1, 5), (60, 1), (3600, 0), (0, 100)])
def test_saving_is_a_twentieth_of_the_time_at_most_unless_every_state_is_wanted(
    monkeypatch: pytest.MonkeyPatch, seconds: float, saves: int
) -> None:
    now, saved = 1000.0, []

    def state() -> dict[str, Any]:
        nonlocal now
        now += 1.0  # The clock is simulated, so that saving takes one second.
        saved.append(now)
        return STATE

    monkeypatch.setattr("time.monotonic", lambda: now)
    checkpointer = Checkpointer(Path("c.pt"), seconds)
    for _ in range(100):
        now += 1.0
        checkpointer.save_if_due(state)
    assert len(saved) == saves
