"""A fresh clone resumes a run; each checkout and experiment runs its own code.

The tests use real repositories with the stages `inputs` and `fetch`, and a local
remote. The installed package is another checkout's, which prepares more sentences.
Edits to a user's file are noticed; moving the file to another folder is not a change.

Each program that `dvc repro` starts imports torch for seconds. Where it does not matter
which process runs a stage, the tests run it themselves.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import chdir
from pathlib import Path

import pytest
from PIL import Image
from ruamel.yaml import YAML

from softmax_temperature.data import phrases
from softmax_temperature.params import Params, read_yaml
from softmax_temperature.stages.fetch import fetch
from softmax_temperature.tools import project as planning
from softmax_temperature.tools.inputs import write_inputs
from tests.conftest import ROOT
from tests.pipeline import whole_runs
from tests.profiles import profile

pytestmark = pytest.mark.usefixtures("own_programs")
SECONDS = 300
NAMES = ["digits", "sentences", "leaves"]
PLAN = "from softmax_temperature.tools.cli import main; main()"


def run(folder: Path, *command: str, code: int = 0) -> str:
    """Run a command in a folder and return its output."""
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def environment() -> dict[str, str]:
    """The environment of a user who installed the package of another checkout."""
    return os.environ | {
        "PYTHONPATH": str(ROOT / "src"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@b.c",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@b.c",
    }


def dvc(folder: Path, *words: str, code: int = 0) -> str:
    return run(folder, "dvc", *words, code=code)


def git(folder: Path, *words: str) -> str:
    return run(folder, "git", *words)


def commit(folder: Path) -> None:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", "State")


def plan_of(folder: Path) -> str:
    command = f"import sys; sys.path.insert(0, 'src'); {PLAN}"
    return run(folder, "python", "-c", command, "plan")


def prepared_sentences(folder: Path) -> int:
    """Number of prepared training and validation sentences."""
    card = json.loads((folder / "data/prepared/sentences/card.json").read_text())
    return int(card["splits"]["train"]["size"] + card["splits"]["validation"]["size"])


def write_code(folder: Path, sentences: int) -> None:
    """Change the folder's package so that it prepares this number of sentences."""
    module = folder / "src/softmax_temperature/data/phrases.py"
    text, count = re.subn(
        r"^TRAIN = \d+$", f"TRAIN = {sentences}", module.read_text(), flags=re.MULTILINE
    )
    assert count == 1
    module.write_text(text)


def write_leaf(folder: Path, leaf: str, number: int, pixel: int) -> None:
    path = folder / "leaves" / "all" / leaf / f"{number}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("L", (8, 8), pixel).save(path)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = make_repository(tmp_path / "project")
    write_code(folder, 60)
    commit(folder)
    return folder


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A committed project whose stages have run; tests may add commits and branches.

    This process has run the stages. The project's code is that of the installed
    package.
    """
    folder = make_repository(tmp_path_factory.mktemp("finished") / "project")
    params = parameters(NAMES, folder.parent / "disk")
    with chdir(folder):
        write_inputs(params)
        whole_runs.run(params, fetch)
    dvc(folder, "commit", "--quiet", "--force")
    commit(folder)
    return folder


def make_repository(folder: Path) -> Path:
    """Make a committed project that prepares digits, phrases and a folder of images."""
    folder.mkdir()
    for leaf in ("oak", "elm"):
        for number in range(12):
            write_leaf(folder.parent / "disk", leaf, number, number)
    # Copy the bytecode too; otherwise Python would compile the modules again.
    for name in ("src", "pipeline"):
        shutil.copytree(ROOT / name, folder / name)
    graph = read_yaml(ROOT / "dvc.yaml")
    stages = {name: graph["stages"][name] for name in ("inputs", "fetch")}
    YAML().dump({"stages": stages}, folder / "dvc.yaml")
    write_params(folder, NAMES, folder.parent / "disk")
    (folder / ".gitignore").write_text("/data\n__pycache__/\n")
    (folder / ".dvcignore").write_text("__pycache__/\n")
    git(folder, "init", "--quiet")
    dvc(folder, "init", "--quiet")
    commit(folder)
    return folder


def parameters(names: list[str], disk: Path) -> Params:
    """Parameters with these data sets, whose files are on a disk."""
    smoke = profile("smoke")
    # Data sets that only left-out papers name are not prepared. No paper names
    # `sentences`, so it is prepared.
    source = {"sentences": {"source": "phrases"}}
    vgg = smoke.cooling.model_dump()["experiments"]["digits-vgg"]
    changes = {
        "data/root": str(disk),
        "datasets": {name: source.get(name, {}) for name in names},
        "papers": ["cooling"],
        "compute/engine": "serial",
        "cooling/experiments": {"digits": vgg},
    }
    return whole_runs.changed(smoke, changes)


def write_params(folder: Path, names: list[str], disk: Path) -> None:
    """Write parameters with these data sets, whose files are on a disk."""
    content = parameters(names, disk).model_dump(mode="json")
    YAML().dump(content, folder / "params.yaml")


def test_a_pulled_run_continues_in_a_fresh_clone_with_the_clones_code(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dvc(finished, "remote", "add", "--default", "here", str(tmp_path / "remote"))
    commit(finished)
    dvc(finished, "push")
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", str(finished), str(clone))
    dvc(clone, "pull")
    # Nothing is to run again, even if the same files have moved to another folder.
    disk = tmp_path / "other disk"
    shutil.copytree(finished.parent / "disk", disk)
    write_params(clone, NAMES, disk)
    with chdir(clone):
        assert write_inputs(parameters(NAMES, disk)) == []
    assert "up to date" in dvc(clone, "status", "fetch")
    # One cell is new, and one reads an image that was replaced.
    names = [*NAMES, "glyphs-30"]
    write_params(clone, names, disk)
    write_leaf(disk, "oak", 3, 200)
    # Planning requires the clone's package, which is still a copy of the imported one.
    monkeypatch.setattr(planning, "_require_package_of_this_folder", lambda: None)
    with chdir(clone):
        plans = planning.plan(parameters(names, disk))
    [stage] = [each for each in plans if each.cells]
    assert sorted(stage.to_run) == ["glyphs-30", "leaves"]
    # Both stages run the clone's code. No cell depends on this module.
    with (clone / "src/softmax_temperature/tools/programs.py").open("a") as module:
        module.write('\nprint("the code of the clone")\n')
    said = dvc(clone, "repro")
    assert said.count("the code of the clone\n") == 2
    assert "changed: leaves\n" in said
    assert "prepared: 2 of 4 cells to run" in said


@pytest.mark.slow
def test_a_worktree_runs_its_own_code(finished: Path, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    git(finished, "worktree", "add", "--quiet", "-b", "other", str(tree))
    write_code(tree, 90)
    dvc(tree, "repro")
    assert prepared_sentences(tree) == 90
    assert "3 cells up to date" in plan_of(tree)
    assert prepared_sentences(finished) == phrases.TRAIN


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["temp", "queue"])
def test_an_experiment_runs_the_code_of_its_commit(repository: Path, kind: str) -> None:
    dvc(repository, "repro")
    commit(repository)
    before = (repository / "params.yaml").read_text()
    change = ["--set-param", "seed=7", "--name", "seven"]
    if kind == "temp":
        dvc(repository, "exp", "run", "--temp", *change)
    else:
        dvc(repository, "exp", "run", "--queue", *change)
        dvc(repository, "exp", "run", "--run-all")
    assert (repository / "params.yaml").read_text() == before
    dvc(repository, "exp", "apply", "seven")
    changed = git(repository, "diff", "--unified=0", "params.yaml").splitlines()
    assert [line for line in changed if line.startswith("+seed")] == ["+seed: 7"]
    assert len([line for line in changed if line.startswith("+")]) == 2
    assert prepared_sentences(repository) == 60
    assert "3 cells up to date" in plan_of(repository)


def begin_repro(folder: Path) -> "subprocess.Popen[str]":
    """Start `dvc repro`, and return once its stage has written the file `started`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "dvc", "repro"],
        cwd=folder,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + SECONDS
    while not (folder / "started").exists():
        assert time.monotonic() < until, "the stage did not start"
        time.sleep(0.1)
    return process


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new project with a single stage, which waits until a file `go` exists."""
    folder = tmp_path_factory.mktemp("waiting")
    command = "touch started; until test -e go; do sleep 0.1; done; echo 1 > made"
    YAML().dump(
        {"stages": {"wait": {"cmd": command, "outs": ["made"]}}}, folder / "dvc.yaml"
    )
    dvc(folder, "init", "--no-scm", "--quiet")
    return folder


@pytest.fixture
def waiting(project: Path, tmp_path: Path) -> Path:
    """A copy of the new project."""
    return Path(shutil.copytree(project, tmp_path / "waiting"))


def test_a_second_repro_ends_at_once_and_names_the_first(waiting: Path) -> None:
    first = begin_repro(waiting)
    try:
        said = dvc(waiting, "repro", code=255)
        assert "is busy, it is being blocked by" in said
        assert f"(PID {first.pid})" in said
    finally:
        (waiting / "go").touch()
    assert first.wait(SECONDS) == 0
    assert "didn't change" in dvc(waiting, "repro")


def test_a_killed_repro_leaves_no_lock_behind(waiting: Path) -> None:
    first = begin_repro(waiting)
    os.killpg(first.pid, signal.SIGKILL)
    assert first.wait(SECONDS) == -signal.SIGKILL
    (waiting / "go").touch()
    assert "Running stage 'wait'" in dvc(waiting, "repro")
    assert (waiting / "made").read_text() == "1\n"
