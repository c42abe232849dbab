"""Whenever a writer dies, a reader finds the old or the new; what it had begun is cleared away by the next one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.runner import artifacts
from softmax_temperature.runner.artifacts import atomic_file, new_artifact, open_artifact, write_json, write_text
from softmax_temperature.runner.cells import Cell, Job, run_cells
from tests.serial import SERIAL

PROGRAM = Path(__file__).with_name("crash_at_each_step.py")
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}


def deaths(how: str, folder: Path) -> list[dict[str, Any]]:
    """What a writer left that died before each of its steps."""
    command = [sys.executable, str(PROGRAM), how, str(folder)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["end"] == "new", "a write that nothing interrupts goes through"
    return list(told["deaths"])


@pytest.mark.parametrize(("how", "name"), [("file", "file"), ("artifact", "artifact"), ("checkpoint", "checkpoint.pt")])
def test_a_writer_that_dies_before_any_step_leaves_the_old_or_the_new(how: str, name: str, tmp_path: Path) -> None:
    told = deaths(how, tmp_path)
    steps = [death["step"] for death in told]
    assert {"open", "fcntl.flock", "write", "half of the write", "flush", "fsync", "os.chmod", "os.rename"} <= set(
        steps
    )
    assert steps[-1] != "os.rename", "the folder's list of names is synced after the last rename"
    found = [death["found"] for death in told]
    first = found.index("new")
    assert found == ["old"] * first + ["new"] * (len(found) - first)
    assert steps[first - 1] == ("_exchange" if how == "artifact" else "os.rename"), "one step makes the new visible"
    assert all(death["after"] == "new" and death["left"] == [name] for death in told)


def test_where_folders_cannot_change_places_one_may_be_absent_but_never_half_there(tmp_path: Path) -> None:
    told = deaths("moved-artifact", tmp_path)
    found = [death["found"] for death in told]
    assert list(dict.fromkeys(found)) == ["old", "absent", "new"]
    assert found.count("absent") == 1
    assert all(death["after"] == "new" and death["left"] == ["artifact"] for death in told)


class Disk:
    """What would be left after a power cut: the bytes and names that were synced."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.synced: dict[int, bytes | set[str]] = {}
        self.early: list[Path] = []
        sync, replace, exchange = os.fsync, os.replace, artifacts._exchange

        def fsync(descriptor: int) -> None:
            sync(descriptor)
            path = Path(f"/proc/self/fd/{descriptor}").resolve()
            self.synced[path.stat().st_ino] = self.now(path)

        def move(source: Path, target: Path) -> None:
            self.early += self.unsynced(Path(source))
            replace(source, target)

        def swap(source: Path, target: Path) -> bool:
            self.early += self.unsynced(source)
            return exchange(source, target)

        patch.setattr(os, "fsync", fsync)
        patch.setattr(os, "replace", move)
        patch.setattr(artifacts, "_exchange", swap)

    @staticmethod
    def now(path: Path) -> bytes | set[str]:
        return {each.name for each in path.iterdir()} if path.is_dir() else path.read_bytes()

    def unsynced(self, path: Path) -> list[Path]:
        """What is not on the disk as it is now, of a file, or of a folder and all in it."""
        return [each for each in [path, *path.rglob("*")] if self.synced.get(each.stat().st_ino) != self.now(each)]


def test_nothing_gets_its_name_before_it_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs /proc/self/fd, to know which file is synced")
    place = tmp_path / "artifact"
    for value in (1, 2):
        disk = Disk(monkeypatch)
        with new_artifact(place, kind="numbers", about={}) as output:
            (output / "deep").mkdir()
            (output / "deep" / "plain").write_text(f"{value}")
            write_json(output / "value.json", value)
        assert disk.early == []
        assert disk.unsynced(place) == []
        assert disk.synced[tmp_path.stat().st_ino] >= {"artifact"}
        write_text(tmp_path / "file", f"{value}")
        assert disk.early == []
        assert disk.unsynced(tmp_path / "file") == []
        assert disk.synced[tmp_path.stat().st_ino] == {"artifact", "file"}


def write_number(job: Job, *, number: int) -> None:
    (job.output / "deep").mkdir()
    (job.output / "deep" / "plain").write_text(f"{number}")


@pytest.mark.parametrize("links", [True, False])
def test_nothing_is_published_before_it_is_on_the_disk(
    links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("needs /proc/self/fd, to know which file is synced")
    if not links:
        monkeypatch.setattr(os, "link", refuse)
    monkeypatch.chdir(tmp_path)
    disk, output = Disk(monkeypatch), Path("data/numbers")
    for numbers in ([1, 2], [2, 3]):
        cells = [Cell(f"n-{number}", write_number, {"number": number}) for number in numbers]
        run_cells(cells, output=output, compute=SERIAL, seed=0)
        assert disk.early == []
        assert disk.unsynced(output) == []
        assert "numbers" in disk.synced[Path("data").stat().st_ino]


def test_what_a_living_writer_builds_is_not_cleared_away(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from softmax_temperature.runner.artifacts import atomic_file\n"
        "with atomic_file(Path('file')) as file:\n"
        "    file.write(b'slow'); print('begun', flush=True); sys.stdin.readline()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=ENVIRONMENT, **pipes) as slow:
        assert slow.stdout is not None
        assert slow.stdout.readline() == "begun\n"
        write_text(tmp_path / "file", "fast")
        assert (tmp_path / "file").read_text() == "fast"
        slow.communicate("go on\n")
    assert slow.returncode == 0
    assert (tmp_path / "file").read_text() == "slow"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_readers_beside_two_writers_see_whole_files_only(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from softmax_temperature.runner.artifacts import write_text\n"
        "for number in range(40): write_text(Path('file'), sys.argv[1] * 50_000)"
    )
    write_text(tmp_path / "file", "0" * 50_000)
    writers = [subprocess.Popen([sys.executable, "-c", code, one], cwd=tmp_path, env=ENVIRONMENT) for one in "12"]
    seen = set()
    while any(writer.poll() is None for writer in writers):
        seen.add((tmp_path / "file").read_text())
    assert [writer.returncode for writer in writers] == [0, 0]
    assert seen <= {one * 50_000 for one in "012"}
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_error_in_the_block_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    write_text(tmp_path / "file", "old")
    with pytest.raises(ZeroDivisionError), atomic_file(tmp_path / "file") as file:
        file.write(b"ne" * (1 // 0))
    assert (tmp_path / "file").read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_another_files_leftovers_are_not_ones_own(tmp_path: Path) -> None:
    others = [tmp_path / name for name in (".file.yaml", ".files.abcdefgh.unfinished", "file.x.unfinished")]
    for path in others:
        path.write_text("")
    mine = tmp_path / ".file.abcdefgh.unfinished"
    mine.write_text("begun")
    write_text(tmp_path / "file", "new")
    assert not mine.exists()
    assert all(path.exists() for path in others)


def test_a_damaged_file_is_set_aside_only_while_its_manifest_stands(tmp_path: Path) -> None:
    with new_artifact(tmp_path / "a", kind="numbers", about={}) as output:
        write_json(output / "value.json", 1)
    before = open_artifact(tmp_path / "a")
    with new_artifact(tmp_path / "a", kind="numbers", about={}) as output:
        write_json(output / "value.json", 2)
    with pytest.raises(artifacts.ArtifactError, match=r"value\.json: damaged"):
        before.path("value.json")
    assert open_artifact(tmp_path / "a").json("value.json") == 2, "what replaced it meanwhile is whole and stays"
