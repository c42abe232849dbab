"""On a Ray cluster: the bytes of one process, whatever dies, and whatever a node does not see."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softmax_temperature.runner import ray_engine
from softmax_temperature.runner.artifacts import find_artifacts, open_artifact, write_json
from softmax_temperature.tools.profiles import render_profile
from tests.faults.copies import copy_project
from tests.faults.victims import ROOT, checkpoints, expect_little_lost, progress, results

pytestmark = pytest.mark.timeout(900)  # Of the first one, the cluster and a run without it are part.

PROFILES = ROOT / "profiles"
EPOCHS, MANY = 40, 20_000  # Seconds, and more than any test waits for.
STAGES = f"""
import json
import sys
from pathlib import Path
from softmax_temperature.runner import ray_engine
from softmax_temperature.runner.cells import run_cells
from softmax_temperature.params import validate
from softmax_temperature.tools.profiles import render_profile
from softmax_temperature.stages.programs import exit_code
from softmax_temperature.stages import embed, fetch, train_cooling

_, smoke = render_profile("smoke", Path({str(PROFILES)!r}))
content = smoke.model_dump()
content["compute"] |= {{"device": "cpu", "checkpoint_seconds": 0, "workers": 2}} | json.loads(sys.argv[1])
content["datasets"] |= {{name: {{"train_limit": 120, "test_limit": 60}} for name in ("digits", "mine")}}
content["backbones"] = {{"untrained-64": content["backbones"]["untrained-64"]}}
content["classifier_temperature"] |= {{"datasets": ["digits", "mine"], "backbones": ["untrained-64"]}}
content["classifier_temperature"]["rescaling"] |= {{"dataset": "digits", "backbone": "untrained-64"}}
paper = content["cooling"]
paper["recipe"] |= {{"epochs": int(sys.argv[2]), "lr": 0.01}}
few = {{"schedules": ["none"], "arms": ["none"], "seeds": 2}}
paper["experiments"] = {{"digits-vgg": paper["experiments"]["digits-vgg"] | few}}
params = validate(content, where="test")
ray_engine.SECONDS_BETWEEN_LOOKS = 1.0

def work():
    for name in ("digits", "mine"):
        run_cells(fetch.cells(params, name), output=fetch.OUTPUT / name, compute=params.compute, seed=0)
    run_cells(embed.cells(params), output=embed.OUTPUT, compute=params.compute, seed=0)
    run_cells(train_cooling.cells(params), output=train_cooling.OUTPUT, compute=params.compute, seed=0)

sys.exit(exit_code(work))
"""


MISBEHAVIOUR = """
import json
import sys
from pathlib import Path
from softmax_temperature.runner.engines import run_all
from softmax_temperature.params import Compute
from tests.faults.misbehaviour import Misbehaviour, misbehave_there

_, minutes, *ways = sys.argv
settings = {"engine": "ray", "workers": 1, "threads_per_cell": 1, "device": "cpu", "checkpoint_seconds": 0}
compute = Compute(**settings, cell_minutes=json.loads(minutes), ray_address=None, gpus_per_cell=0)
tasks = [Misbehaviour(how) for how in ways]
said = run_all(misbehave_there, tasks, [("a", task.result) for task in tasks], title="t", compute=compute)
Path("said.json").write_text(json.dumps(said))
"""


def new_project(folder: Path) -> Path:
    """A folder with one data set of the user's own."""
    generator = np.random.default_rng(0)
    parts = {"train": 200, "test": 100}
    images = {f"x_{part}": generator.integers(0, 255, (n, 8, 8, 3), dtype=np.uint8) for part, n in parts.items()}
    labels = {f"y_{part}": np.arange(n) % 10 for part, n in parts.items()}
    (folder / "data/raw").mkdir(parents=True)
    np.savez(folder / "data/raw/mine.npz", **images, **labels)
    return folder


def environment(address: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "RAY_ADDRESS": address}


def start(folder: Path, address: str, *, epochs: int = EPOCHS, **compute: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", STAGES, json.dumps(compute), str(epochs)]
    return subprocess.Popen(command, cwd=folder, env=environment(address), stderr=subprocess.PIPE, text=True)


def ended(driver: subprocess.Popen[str]) -> tuple[int, str]:
    _, errors = driver.communicate(timeout=600)
    return driver.returncode, errors


def wait_for_training(folder: Path, driver: subprocess.Popen[str], *, cells: int) -> None:
    """Until so many cells have trained for some epochs."""
    while driver.poll() is None:
        if sum(done >= 2 for done in progress(folder, "cooling/training").values()) == cells:
            return
        time.sleep(0.01)
    pytest.fail(f"it ended too early:\n{ended(driver)}")


def said_of(folder: Path, address: str, *ways: str, minutes: float | None = None) -> list[str | None]:
    """What the engine says of tasks that misbehave on nodes, one after the other."""
    command = [sys.executable, "-c", MISBEHAVIOUR, json.dumps(minutes), *ways]
    pipes: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 600}
    done = subprocess.run(command, cwd=folder, env=environment(address), check=False, **pipes)
    assert done.returncode == 0, done.stderr
    said: list[str | None] = json.loads((folder / "said.json").read_text())
    return said


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project in which the stages have run without a cluster."""
    folder = new_project(tmp_path_factory.mktemp("serial"))
    code, errors = ended(start(folder, "", engine="serial"))
    assert code == 0, errors
    return folder


@pytest.fixture(scope="module")
def serial(whole: Path) -> dict[str, bytes]:
    found = results(whole)
    assert len({name.rpartition("/")[0] for name in found if name.endswith("manifest.json")}) == 6
    return found


@pytest.fixture
def driver_of(tmp_path: Path, ray_cluster: Any) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts the stages on the cluster; whatever happens, nothing of them outlives the test."""
    drivers = []

    def begin(before: Path | None = None, **compute: Any) -> subprocess.Popen[str]:
        project = tmp_path / "project"
        if before:  # Only the training is left to do.
            shutil.copytree(before, project, ignore=shutil.ignore_patterns("cooling"))
        else:
            new_project(project)
        drivers.append(start(project, ray_cluster.said, engine="ray", **compute))
        return drivers[-1]

    yield begin
    for driver in drivers:
        driver.kill()
        driver.communicate()


def test_a_node_that_sees_nothing_is_sent_what_it_needs(
    tmp_path: Path, driver_of: Any, blind_node: Callable[[Path], None], serial: dict[str, bytes]
) -> None:
    (tmp_path / "project").mkdir()
    blind_node(tmp_path / "project")
    code, errors = ended(driver_of(gpus_per_cell=0.5))  # The only node with a GPU, for two cells at a time.
    assert code == 0, errors
    assert "1 cells run here" in errors  # The user's own data set.
    assert results(tmp_path / "project") == serial


def test_cells_of_a_node_that_dies_run_elsewhere(
    tmp_path: Path, ray_cluster: Any, driver_of: Any, serial: dict[str, bytes]
) -> None:
    driver = driver_of()
    wait_for_training(tmp_path / "project", driver, cells=2)  # One on each node, for a node has room for one.
    ray_cluster.say("kill a node")
    code, errors = ended(driver)
    assert code == 0, errors
    assert results(tmp_path / "project") == serial


def test_a_signal_brings_cells_on_nodes_to_a_checkpoint(tmp_path: Path, driver_of: Any, whole: Path) -> None:
    # A checkpoint that is there was written when it was asked for.
    driver = driver_of(whole, workers=1, epochs=MANY, checkpoint_seconds=60)
    wait_for_training(tmp_path / "project", driver, cells=1)
    driver.send_signal(signal.SIGTERM)
    code, errors = ended(driver)
    assert code == 143, errors
    assert "stopped by SIGTERM" in errors
    assert len(checkpoints(tmp_path / "project")) == 1
    expect_little_lost(tmp_path / "project")


def test_a_cell_that_hangs_on_a_node_is_ended(tmp_path: Path, ray_cluster: Any) -> None:
    hanging, well = said_of(tmp_path, ray_cluster.said, "hangs", "well", minutes=0.05)
    assert "it took longer than compute.cell_minutes = 0.05" in (hanging or "")
    assert (well or "").startswith("well in process ")


@pytest.mark.soak
def test_a_cell_that_ray_kills_for_memory_is_not_started_for_ever(
    tmp_path: Path, nodes_without_memory: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_task_oom_retries", raising=False)
    assert said_of(tmp_path, nodes_without_memory.said, "hangs") == [ray_engine._LOST]


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_all_stages_on_the_cluster_leave_the_bytes_of_one_process(tmp_path: Path, ray_cluster: Any) -> None:
    found = {}
    for engine, address in (("serial", ""), ("ray", ray_cluster.said)):
        folder = copy_project(tmp_path / engine)
        _, smoke = render_profile("smoke", PROFILES)
        content = smoke.model_dump()
        content["compute"] |= {"engine": engine, "device": "cpu", "workers": 2}
        write_json(folder / "params.yaml", content)  # YAML holds JSON.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # The programs say `python`.
        command, pipes = [sys.executable, "-m", "dvc", "repro"], {"capture_output": True, "text": True}
        done = subprocess.run(command, cwd=folder, env=environment(address) | {"PATH": path}, check=False, **pipes)
        assert done.returncode == 0, done.stderr
        found[engine] = results(folder)
    stages = {name.split("/")[1] for name in found["ray"]}
    assert {"backbones", "embeddings", "classifier_temperature", "focal", "cooling", "temperature_check"} <= stages
    assert found["ray"] == found["serial"]


def test_a_head_that_dies_is_one_error(tmp_path: Path, ray_cluster: Any, driver_of: Any, whole: Path) -> None:
    driver = driver_of(whole, workers=1, epochs=MANY)
    wait_for_training(tmp_path / "project", driver, cells=1)
    ray_cluster.say("kill the head")
    code, errors = ended(driver)
    assert code == 2, errors
    assert f"error: {ray_cluster.said}: the Ray cluster does not answer any more." in errors
    for place in find_artifacts(tmp_path / "project/data"):
        assert not open_artifact(place).problems()
