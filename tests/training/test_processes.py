"""Two processes train like one: batches and, without batch norm, weights are equal."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import chdir
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from softmax_temperature.runner import distributed
from tests.profiles import profile

pytestmark = pytest.mark.usefixtures("own_programs")
ROOT = Path(__file__).parents[2]
TRAININGS = """
import json
import os
import sys
from pathlib import Path
import torch
from safetensors.torch import save_file
from softmax_temperature.early_learning.pair import CorrelatedPair
from softmax_temperature.params.network import Network
from softmax_temperature.losses import make_loss
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.cells import Job
from softmax_temperature.training import Callback, Trainer, train
from softmax_temperature.networks.registry import build_network
from tests.small_trainings import AUGMENTED, RECIPE, images

rank = os.environ.get("RANK", "0")
output = Path(rank)

def new_trainer(loss="cross_entropy", batch_norm=False, pair=False, **changes):
    arguments = {"depth": 8, "width": 1, "batch_norm": batch_norm or pair}
    spec = Network(architecture="wide_resnet", arguments=arguments)
    network = build_network(spec, classes=4, seed=1)
    if pair:
        second = build_network(spec, classes=4, seed=2)
        network = CorrelatedPair(network, second, 0.5)
    recipe = Recipe.model_validate(RECIPE | AUGMENTED | {"planned_epochs": 3} | changes)
    data = images(45, size=8)
    return Trainer(network, make_loss(loss, {}), data, recipe, seed=7, device="cpu")

class Interrupts(Callback):
    epoch, kept = 2, ()

    def after_epoch(self, trainer):
        if trainer.epochs_done == self.epoch:
            raise KeyboardInterrupt

def finished(name, trainer, **callbacks):
    folder = output / name
    folder.mkdir(parents=True, exist_ok=True)
    # Process 0 alone has a checkpoint.
    seconds = 0.0 if rank == "0" else float("inf")
    try:
        train(trainer, callbacks, Job(0, {}, folder, folder, "cpu", seconds))
    except KeyboardInterrupt:
        return
    logits, norms = trainer.evaluate(trainer.samples.inputs[:21])
    values = trainer.network.state_dict()
    state = {name: value.contiguous() for name, value in values.items()}
    state |= {"logits": logits, "norms": norms, "loss": torch.tensor(trainer.loss)}
    save_file(state, folder / "end.safetensors")

finished("mean", new_trainer())
finished("sum", new_trainer("mmce", reduction="sum", clip_norm=0.5))
finished("resumed", new_trainer(), interrupts=Interrupts())
Interrupts.epoch = None
finished("resumed", new_trainer(), interrupts=Interrupts())
refused = {}
TRAININGS = {
    "batch norm": {"batch_norm": True},
    "odd": {"batch_size": 9},
    "pair": {"pair": True},
}
for name, changes in TRAININGS.items():
    try:
        new_trainer(**changes)
    except ValueError as error:
        refused[name] = str(error)
(output / "refused.json").write_text(json.dumps(refused))
"""
STAGE = """
from softmax_temperature.runner.cells import run_cells
from softmax_temperature.params import validate
from softmax_temperature.tools.programs import exit_code
from softmax_temperature.stages.cooling import train_cooling
from softmax_temperature.stages.fetch import fetch

params = validate(json.loads(Path("../params.json").read_text()), where="test")

def work():
    digits = [cell for cell in fetch.cells(params) if cell.name == "digits"]
    run_cells(digits, output=fetch.output, compute=params.compute, seed=0)
    cells = train_cooling.cells(params)
    run_cells(cells, output=train_cooling.output, compute=params.compute, seed=0)

assert exit_code(work) == 0
"""
# The two processes run this last, because starting them again would take seconds.
FAILS = """
from softmax_temperature.runner import distributed
from tests.runner import toy

def fail(job, number):
    if not distributed.is_follower():
        raise ValueError("network must have no batch norm")
    distributed.agreed(None)  # Waits for process 0, as within a training.

toy.count = fail
sys.exit(exit_code(lambda: toy.run(1, 2)))
"""


def small_params() -> dict[str, Any]:
    """Profile smoke with two short training runs of a network without batch norm."""
    content = profile("smoke").model_dump(mode="json")
    content["compute"] |= {
        "engine": "serial",
        "device": "cpu",
        "checkpoint_seconds": 0.0,
    }
    content["networks"]["vgg-tiny"]["arguments"]["batch_norm"] = False
    paper = content["cooling"]
    paper["recipe"] |= {"epochs": 2, "lr": 0.01}
    few = {"schedules": ["none"], "arms": ["none", "last_layer"], "seeds": 1}
    paper["experiments"] = {"digits-vgg": paper["experiments"]["digits-vgg"] | few}
    return content


def run(program: str, folder: Path, *, count: int) -> tuple[int, str]:
    """Run a program with torchrun in `count` processes; return exit code and error
    output.
    """
    folder.mkdir(exist_ok=True)
    # Without the garbage collector, libraries are imported a quarter faster.
    (folder / "program.py").write_text(f"import gc\n\ngc.disable()\n{program}")
    together = ["torch.distributed.run", "--standalone", f"--nproc-per-node={count}"]
    words = ["python", "-m", *together, "program.py"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run(
        words,
        cwd=folder,
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    return done.returncode, done.stderr


class Ended(NamedTuple):
    """The outcome of two processes, and the folder with all results.

    Attributes:
        folder: The folder with the results of one process in `1`, and of two in `2`.
        code: The exit code of the two processes.
        said: What the two processes wrote to standard error.
    """

    folder: Path
    code: int
    said: str


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """The outcome of two processes that make all training runs and then run `FAILS`.

    Before that, one process makes the same training runs, for comparison.
    """
    folder = tmp_path_factory.mktemp("trained")
    work = TRAININGS + STAGE
    (folder / "params.json").write_text(json.dumps(small_params()))
    (folder / "1").mkdir()
    # This process has already imported torch, and starting another takes seconds.
    with chdir(folder / "1"):
        exec(compile(work, "program.py", "exec"), {"__name__": "__main__"})  # noqa: S102
    # Preparing the digits anew would import scikit-learn in both processes.
    prepared = "data/prepared"
    shutil.copytree(folder / "1" / prepared, folder / "2" / prepared)
    return Ended(folder, *run(work + FAILS, folder / "2", count=2))


@pytest.fixture(scope="module")
def trained(ended: Ended) -> Path:
    """A folder with the results of all training runs in one process and in two."""
    assert "counts: 1 of 2 cells failed" in ended.said, ended.said
    return ended.folder


def end(folder: Path, count: int, name: str, rank: int = 0) -> dict[str, Tensor]:
    return load_file(folder / str(count) / str(rank) / name / "end.safetensors")


@pytest.mark.parametrize("name", ["mean", "sum"])
def test_weights_are_those_of_one_process(trained: Path, name: str) -> None:
    one, two = (end(trained, count, name) for count in (1, 2))
    assert one.keys() == two.keys()
    for key, value in one.items():
        torch.testing.assert_close(two[key], value, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("count", [1, 2])
def test_all_processes_end_with_the_same_bits_and_what_process_0_saved_resumes_all(
    trained: Path, count: int
) -> None:
    for rank in range(count):
        whole, *same = (
            end(trained, count, *which)
            for which in (("mean", 0), ("mean", rank), ("resumed", rank))
        )
        assert all(
            torch.equal(value, each[key])
            for each in same
            for key, value in whole.items()
        )


def test_settings_that_would_train_differently_in_two_processes_are_refused(
    trained: Path,
) -> None:
    assert json.loads((trained / "1/0/refused.json").read_text()) == {}
    for rank in "01":
        refused = json.loads((trained / "2" / rank / "refused.json").read_text())
        assert "no batch norm" in refused["batch norm"]
        assert (
            "no frozen batch norm (as in correlated pairs) to be trained by 2 "
            "processes" in refused["pair"]
        )
        assert (
            refused["odd"] == "batch_size must be a multiple of the 2 processes, got 9"
        )


def numbers(value: Any) -> list[float]:
    """All numbers in a JSON value, in the order in which they occur."""
    if isinstance(value, dict | list):
        return [
            number
            for item in (value.values() if isinstance(value, dict) else value)
            for number in numbers(item)
        ]
    return [] if isinstance(value, str) or value is None else [float(value)]


def test_a_stage_under_torchrun_makes_what_it_makes_alone(trained: Path) -> None:
    for arm in ("none", "last_layer"):
        one, two = (
            trained / count / "data/cooling/training/digits-vgg/none" / arm / "0"
            for count in "12"
        )
        weights = load_file(one / "weights.safetensors")
        for key, value in load_file(two / "weights.safetensors").items():
            torch.testing.assert_close(value, weights[key], rtol=1e-3, atol=1e-4)
        for name in ("history", "norms", "temperatures", "record"):
            seen = (
                numbers(json.loads((folder / f"{name}.json").read_text()))
                for folder in (one, two)
            )
            assert next(seen) == pytest.approx(next(seen), rel=1e-3, abs=1e-4), name


def test_a_cell_that_fails_in_one_process_ends_all(ended: Ended) -> None:
    assert ended.code != 0
    assert "error: counts: 1 of 2 cells failed" in ended.said
    said = "n-1: ValueError: network must have no batch norm (trace: "
    assert said in ended.said


def test_processes_wait_for_each_other_as_long_as_is_declared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    joined: list[object] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(
        torch.distributed,
        "init_process_group",
        lambda *_, timeout: joined.append(timeout),
    )
    distributed.join_group.__wrapped__()  # Bypasses the cache.
    assert joined == [distributed._PATIENCE]


HANG = """
import time
from datetime import timedelta
from softmax_temperature.runner import distributed

distributed._PATIENCE = timedelta(seconds=3)
assert distributed.agreed("begun") == "begun"
# Process 0 hangs, and the other process waits for it.
time.sleep(0 if distributed.is_follower() else 600)
distributed.agreed("never")
"""


@pytest.mark.slow
def test_a_process_that_hangs_ends_the_run(tmp_path: Path) -> None:
    code, said = run(HANG, tmp_path, count=2)
    assert code != 0
    assert "imed out" in said
