"""A search that is killed with SIGKILL and started again ends with the bytes of one that was not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from softmax_temperature.artifacts import find_artifacts, open_artifact

PROGRAM = """
import sys
from pathlib import Path
from softmax_temperature.cells import run_cells
from softmax_temperature.jobs import Cell
from softmax_temperature.params import Compute
from softmax_temperature.stages import search

compute = Compute(engine="serial", workers=1, threads_per_cell=1, device="cpu", checkpoint_seconds=0, ray_address=None,
                  gpus_per_cell=0)
parameters = dict(inverse_temperatures=[1.0, 20.0, 100.0], epochs=150, batch_size=64, lr=1.0, momentum=0.9, repeats=2,
                  precision="float32")
cell = Cell("net", search.run, parameters, {"embeddings": Path("data/embeddings")})
run_cells([cell], output=Path("data/search"), compute=compute, seed=0)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with one artifact of embeddings: ten noisy directions."""
    from softmax_temperature.artifacts import new_artifact
    from softmax_temperature.embeddings import write_embeddings
    from softmax_temperature.splits import SPLITS

    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(10).repeat(20)
    centres = torch.randn(10, 32, generator=generator)
    noisy = {split: centres[labels] + 2 * torch.randn(200, 32, generator=generator) for split in SPLITS}
    rows = {split: (labels, torch.arange(200)) for split in SPLITS}
    provenance = {"dataset": "noise", "backbone": "none", "embedding": 32}
    for name in ("whole", "killed"):
        with new_artifact(tmp_path / name / "data/embeddings", kind="embeddings", about={}) as output:
            write_embeddings(output, rows, lambda split: [noisy[split]], provenance)
    return tmp_path


def start(folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.DEVNULL,
    )


def wait_for_epoch(folder: Path, epoch: int) -> None:
    """Until the search says that it has come so far."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        for path in folder.rglob("progress"):
            text = path.read_text()
            if text and int(text.split("/")[0]) >= epoch:
                return
        time.sleep(0.002)
    pytest.fail(f"the search did not reach epoch {epoch}")


def test_killed_and_resumed_equals_uninterrupted(project: Path) -> None:
    whole = start(project / "whole")
    for epoch in (20, 90):
        process = start(project / "killed")
        wait_for_epoch(project / "killed", epoch)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (project / "killed/data/search").exists()
        (checkpoint,) = (project / "killed").rglob("checkpoint.pt")
        assert checkpoint.stat().st_size > 0
    assert start(project / "killed").wait() == 0
    assert whole.wait() == 0
    results = [open_artifact(project / name / "data/search/net") for name in ("whole", "killed")]
    assert results[0].files == results[1].files
    assert find_artifacts(project / "killed/data/search") == [project / "killed/data/search/net"]
    assert not [path for path in (project / "killed").rglob(".*") if path.is_dir()], "nothing half-built is left"
