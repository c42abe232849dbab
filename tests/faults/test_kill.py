"""A search or a training that is killed with SIGKILL and started again ends with the bytes of one that was not."""

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

PROFILES = Path(__file__).parents[2] / "profiles"
SEARCH = """
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

COOLING = f"""
from pathlib import Path
from softmax_temperature.cells import run_cells
from softmax_temperature.params import validate
from softmax_temperature.profiles import render_profile
from softmax_temperature.stages import fetch, train_cooling

_, smoke = render_profile("smoke", Path({str(PROFILES)!r}))
content = smoke.model_dump()
content["compute"] |= {{"engine": "serial", "workers": 1, "device": "cpu", "checkpoint_seconds": 0}}
paper = content["cooling"]
paper["recipe"] |= {{"epochs": 12, "lr": 0.01}}
paper["arms"]["periodic"] |= {{"max_temperature": 0.5, "reset_temperature": 0.5}}
place = {{"schedules": ["none"], "arms": ["periodic"], "seeds": 1}}
paper["experiments"] = {{"digits-vgg": paper["experiments"]["digits-vgg"] | place}}
params = validate(content, where="killed")
images = fetch.OUTPUT / "digits"
run_cells(fetch.cells(params, "digits"), output=images, compute=params.compute, seed=0)
run_cells(train_cooling.cells(params), output=train_cooling.OUTPUT, compute=params.compute, seed=0)
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


def start(program: str, folder: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stderr=subprocess.DEVNULL,
    )


def wait_for_epoch(folder: Path, epoch: int) -> None:
    """Until the cell says that it has come so far."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        # Folders come and go meanwhile, which os.walk passes over and rglob does not.
        for place, _, names in os.walk(folder):
            text = Path(place, "progress").read_text() if "progress" in names else ""
            if text and int(text.split("/")[0]) >= epoch:
                return
        time.sleep(0.002)
    pytest.fail(f"the cell did not reach epoch {epoch}")


@pytest.mark.parametrize(
    ("program", "output", "cell", "kills"),
    [
        (SEARCH, "data/search", "net", (20, 90)),
        (COOLING, "data/cooling/training", "digits-vgg/none/periodic/0", (3, 8)),
    ],
    ids=["search", "cooling"],
)
def test_killed_and_resumed_equals_uninterrupted(
    project: Path, program: str, output: str, cell: str, kills: tuple[int, ...]
) -> None:
    whole = start(program, project / "whole")
    for epoch in kills:
        process = start(program, project / "killed")
        wait_for_epoch(project / "killed", epoch)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not (project / "killed" / output).exists()
        (checkpoint,) = (project / "killed").rglob("checkpoint.pt")
        assert checkpoint.stat().st_size > 0
    assert start(program, project / "killed").wait() == 0
    assert whole.wait() == 0
    results = [open_artifact(project / name / output / cell) for name in ("whole", "killed")]
    assert results[0].files == results[1].files
    assert find_artifacts(project / "killed" / output) == [project / "killed" / output / cell]
    assert not [path for path in (project / "killed").rglob(".*") if path.is_dir()], "nothing half-built is left"
