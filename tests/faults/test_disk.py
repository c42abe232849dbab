"""A disk that is full or read-only: one clear line, an exit code that says so, nothing lost; the next run completes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from softmax_temperature.tools.verification import verify

from softmax_temperature.params import Compute, validate
from softmax_temperature.runner.artifacts import find_artifacts, open_artifact, write_json
from softmax_temperature.runner.cells import Cell, Job, run_cells
from softmax_temperature.stages import fetch
from softmax_temperature.stages.programs import exit_code
from softmax_temperature.tools import cli
from tests.faults import toy, work
from tests.faults.limits import files_of_at_most

PAGE = os.sysconf("SC_PAGE_SIZE")
OUTPUT = Path("data/rows")
ROOT = Path(__file__).parents[2]


class Disk:
    """A file system of its own in memory."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mount(self, *options: str) -> None:
        flags = ",".join(["size=1m", *options])
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", flags, "tmpfs", str(self.path)], check=False)  # noqa: S607
        if done.returncode != 0:
            pytest.skip("needs the right to mount a file system")

    def remount(self, *options: str) -> None:
        flags = ",".join(["remount", *options])
        subprocess.run(["mount", "-o", flags, str(self.path)], check=True)  # noqa: S607

    def unmount(self) -> None:
        subprocess.run(["umount", "--lazy", str(self.path)], check=False, stderr=subprocess.DEVNULL)  # noqa: S607

    @contextmanager
    def only(self, pages: int) -> Iterator[None]:
        """Leave so many pages free while the block runs."""
        filler = self.path / "filler"
        filler.write_bytes(b"0" * (os.statvfs(self.path).f_bavail - pages) * PAGE)
        assert os.statvfs(self.path).f_bavail == pages
        try:
            yield
        finally:
            filler.unlink()


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """An empty one of 1 MiB, and the tests work there."""
    if shutil.which("mount") is None or os.geteuid() != 0:
        pytest.skip("needs the right to mount a file system")
    (tmp_path / "disk").mkdir()
    small = Disk(tmp_path / "disk")
    small.mount()
    monkeypatch.chdir(small.path)
    yield small
    monkeypatch.chdir(tmp_path)
    small.unmount()


def rows(job: Job, *, number: int) -> None:
    """Fill a tensor in three steps, with a checkpoint after each, and write it; say in a log where it began."""
    checkpointer = job.checkpointer()
    state = checkpointer.load() or {"rows": torch.zeros(0, PAGE // 4)}
    job.progress(len(state["rows"]), 3)
    while len(state["rows"]) < 3:
        state = {"rows": torch.cat([state["rows"], torch.full((1, PAGE // 4), float(number + len(state["rows"])))])}
        checkpointer.save_if_due(lambda: state)  # noqa: B023
    save_file(state, job.output / "rows.safetensors")
    write_json(job.output / "record.json", {"number": number})


def run_rows() -> int:
    """A stage of two cells; returns its exit code."""
    compute = Compute.model_validate(
        {
            "engine": "serial",
            "workers": 1,
            "threads_per_cell": 1,
            "device": "cpu",
            "checkpoint_seconds": 0,
            "ray_address": None,
            "gpus_per_cell": 0,
        }
    )
    cells = [Cell(f"n-{number}", rows, {"number": number}) for number in (1, 2)]
    return exit_code(lambda: run_cells(cells, output=OUTPUT, compute=compute, seed=0))


def check_rows() -> None:
    """Both results are there, and right."""
    assert verify().problems == ()
    assert [place.name for place in find_artifacts(OUTPUT)] == ["n-1", "n-2"]
    for number in (1, 2):
        found = open_artifact(OUTPUT / f"n-{number}").tensors("rows.safetensors")["rows"]
        assert torch.equal(found, torch.arange(number, number + 3.0)[:, None].expand(3, PAGE // 4))


def check_failure(code: int, said: str, reason: str) -> None:
    """Every line of an error says why, and there is one for each cell at most."""
    lines = [line for line in said.splitlines() if not line.startswith(("rows: 0/2", "rows: 1/2", "rows: 2/2"))]
    assert code in {1, 2}
    assert lines[0].startswith("error: ")
    assert len(lines) == 1 if code == 2 else len(lines) in {2, 3}
    assert all(reason in line for line in (lines if code == 2 else lines[1:]))
    assert all(not open_artifact(place).problems() for place in find_artifacts(Path("data")))


def test_however_full_the_disk_is_nothing_is_lost(disk: Disk, capsys: pytest.CaptureFixture[str]) -> None:
    codes = []
    for pages in range(100):
        with disk.only(pages):
            codes.append(run_rows())
            said = capsys.readouterr().err
            if codes[-1] == 0:
                break
            check_failure(codes[-1], said, "No space left on device")
        assert run_rows() == 0
        check_rows()
        capsys.readouterr()
        shutil.rmtree("data")
    check_rows()
    assert len(codes) > 10
    assert set(codes[:-1]) <= {1, 2}
    assert 1 in codes, "where a cell fails, the others are kept"


def test_however_few_files_the_disk_can_hold_nothing_is_lost(disk: Disk, capsys: pytest.CaptureFixture[str]) -> None:
    used = 1  # The root.
    codes = []
    for count in range(100):
        disk.remount(f"nr_inodes={used + count}" if count else f"nr_inodes={used}")
        codes.append(run_rows())
        said = capsys.readouterr().err
        if codes[-1] == 0:
            break
        check_failure(codes[-1], said, "No space left on device")
        disk.remount("nr_inodes=1000")
        assert run_rows() == 0
        check_rows()
        capsys.readouterr()
        shutil.rmtree("data")
    check_rows()
    assert len(codes) > 10


@pytest.mark.parametrize("size", [0, 2, 100, 1000, PAGE, 2 * PAGE, 3 * PAGE])
def test_files_that_may_not_grow_are_a_clear_error(
    size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with files_of_at_most(size):
        code = run_rows()
    check_failure(code, capsys.readouterr().err, "File too large")
    assert run_rows() == 0
    check_rows()


def test_a_read_only_disk_is_a_clear_error(disk: Disk, capsys: pytest.CaptureFixture[str]) -> None:
    disk.remount("ro")
    check_failure(run_rows(), capsys.readouterr().err, "Read-only file system")
    disk.remount("rw")
    assert run_rows() == 0
    check_rows()


def test_the_users_own_data_may_be_read_only(disk: Disk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images = np.random.default_rng(0).integers(0, 255, (40, 8, 8), dtype=np.uint8)
    np.savez("mine.npz", x_train=images, y_train=np.arange(40) % 4, x_test=images, y_test=np.arange(40) % 4)
    disk.remount("ro")
    monkeypatch.chdir(tmp_path)
    content = work.content("serial", 0)
    content["data"] |= {"root": str(disk.path), "download": True}
    content["datasets"]["mine"] = {}
    params = validate(content, where="test")
    output = fetch.OUTPUT / "mine"
    run_cells(fetch.cells(params, "mine"), output=output, compute=params.compute, seed=0)
    assert open_artifact(output).problems() == []


def test_a_folder_without_the_right_to_write_is_a_clear_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.chmod(0o555)
    if os.access(tmp_path, os.W_OK):
        pytest.skip("needs a user whom permissions hold back")
    check_failure(run_rows(), capsys.readouterr().err, "Permission denied")
    tmp_path.chmod(0o755)
    assert run_rows() == 0
    check_rows()


def command(*words: str) -> int:
    """The exit code of the command `softmax-temperature`."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["softmax-temperature", *words])
        with pytest.raises(SystemExit) as caught:
            cli.main()
    return int(caught.value.code or 0)


@pytest.fixture
def read_only(disk: Disk) -> Disk:
    """A disk that was written and now cannot be: a damaged result, profiles, logits, a README."""
    assert run_rows() == 0
    path = OUTPUT / "n-1" / "record.json"
    path.write_text("{}")
    paper = "results/mini/classifier_temperature"
    disk.remount("size=16m")
    for name in ("profiles", paper):
        shutil.copytree(ROOT / name, name)
    shutil.copy(ROOT / "results/mini/params.yaml", "results/mini")
    shutil.copy(ROOT / "dvc.yaml", ".")
    Path("README.md").write_text("<!-- scorecard -->\n<!-- /scorecard -->\n")
    labels = torch.arange(60) % 3
    save_file({"logits": 2 * torch.eye(3)[labels], "labels": labels}, "logits.safetensors")
    disk.remount("ro")
    return disk


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (("profile", "smoke"), "params.yaml"),
        (("scorecard", "--write", "README.md"), "README.md"),
        (("calibrate", "logits.safetensors", "--bootstrap", "0"), "logits-calibration"),
        (("fit-heuristic", "results/mini", "--output", "heuristic.json"), "heuristic.json"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
@pytest.mark.usefixtures("read_only")
def test_commands_that_write_say_so_in_one_line(
    words: tuple[str, ...], where: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert command(*words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert f"{where}: cannot write (Read-only file system)" in line


@pytest.mark.usefixtures("read_only")
def test_verify_needs_no_right_to_write(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in range(2):
        assert command("verify") == 1
        assert "data/rows/n-1/record.json: damaged" in capsys.readouterr().out


@pytest.mark.parametrize("pages", [2, *(pytest.param(pages, marks=pytest.mark.soak) for pages in range(3, 16))])
def test_after_dvc_repro_on_a_full_disk_the_next_one_completes(disk: Disk, pages: int) -> None:
    project = toy.make(Path("project").absolute())
    with disk.only(pages):
        done = toy.run(project, "dvc", "repro")
    assert done.returncode != 0
    assert "No space left on device" in done.stdout + done.stderr
    # DVC writes its lock and its notes of who is at work in place: a full disk may have cut them short.
    for line in verify(project).problems:
        if "Restore it from Git, or remove it" in line:
            (project / "dvc.lock").unlink()
        else:
            assert ".dvc/tmp/rwlock: damaged" in line
    toy.dvc(project, "repro")
    assert verify(project).problems == ()
    assert len(find_artifacts(project / "data")) == 2
