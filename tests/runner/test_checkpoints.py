"""A checkpoint is whole or absent, and never runs code."""

import hashlib
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from softmax_temperature.runner.checkpoints import Checkpointer, load_checkpoint, save_checkpoint
from softmax_temperature.runner.errors import InputError

STATE = {"epoch": 3, "weights": torch.arange(5.0), "curves": [torch.ones(2), torch.zeros(2)], "note": None}


def test_round_trip(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "c.pt", STATE)
    loaded = load_checkpoint(tmp_path / "c.pt")
    assert loaded is not None
    assert loaded["epoch"] == 3
    assert torch.equal(loaded["weights"], STATE["weights"])
    assert torch.equal(loaded["curves"][1], torch.zeros(2))


@pytest.mark.parametrize("damage", ["flip", "truncate", "empty"])
def test_a_damaged_checkpoint_is_moved_aside(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "c.pt"
    save_checkpoint(path, STATE)
    content = bytearray(path.read_bytes())
    content[-40] ^= 4
    path.write_bytes({"flip": bytes(content), "truncate": bytes(content[:100]), "empty": b""}[damage])
    assert load_checkpoint(path) is None
    assert (tmp_path / "c.pt.damaged").is_file()
    assert not path.exists()


class Payload:
    def __reduce__(self) -> tuple[object, ...]:
        return (Path("ran").touch, ())


def test_a_pickle_with_code_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    content = pickle.dumps(Payload())
    Path("c.pt").write_bytes(hashlib.sha256(content).digest() + content)
    with pytest.warns(UserWarning, match="pickle"), pytest.raises(InputError, match="is no checkpoint"):
        load_checkpoint(Path("c.pt"))
    assert not Path("ran").exists()


@pytest.mark.parametrize(("seconds", "saves"), [(1, 5), (60, 1), (0, 100)])
def test_saving_is_a_twentieth_of_the_time_at_most_unless_every_state_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, saves: int
) -> None:
    now, saved = 1000.0, []

    def state() -> dict[str, Any]:
        nonlocal now
        now += 1.0  # As long as it takes.
        saved.append(now)
        return STATE

    monkeypatch.setattr("time.monotonic", lambda: now)
    checkpointer = Checkpointer(tmp_path / "c.pt", seconds)
    for _ in range(100):
        now += 1.0
        checkpointer.save_if_due(state)
    assert len(saved) == saves


def test_saving_waits_for_its_time(tmp_path: Path) -> None:
    patient = Checkpointer(tmp_path / "c.pt", seconds=3600)
    patient.save_if_due(lambda: pytest.fail("asked for a state that was not due"))
    assert patient.load() is None
    eager = Checkpointer(tmp_path / "c.pt", seconds=0)
    eager.save_if_due(lambda: {"epoch": 1})
    assert eager.load() == {"epoch": 1}
