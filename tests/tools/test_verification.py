"""Every damaged file is found, by manifest, by dvc.lock or by its own digest; a checkout that was not run has none."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from softmax_temperature.papers.shared.results import write_contents
from softmax_temperature.runner.artifacts import new_artifact, write_json, write_sealed
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.progress import counting
from softmax_temperature.tools import verification
from softmax_temperature.tools.verification import Verified, verify


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """An artifact below data/, another below results/, and results that a lock records."""
    for place in ("data/a", "results/mini/paper/b"):
        with new_artifact(tmp_path / place, kind="numbers", about={}) as output:
            write_json(output / "one.json", 1)
    tables = tmp_path / "results/mini/paper/tables"
    tables.mkdir()
    (tables / "b.csv").write_text("b")
    (tables / "a.csv").write_text("a")
    (tmp_path / "results/mini/paper/claims.json").write_text("[]")
    listing = [{"md5": hashlib.md5(name.encode()).hexdigest(), "relpath": f"{name}.csv"} for name in "ab"]  # noqa: S324
    folder = hashlib.md5(json.dumps(listing).encode()).hexdigest()  # noqa: S324
    file = hashlib.md5(b"[]").hexdigest()  # noqa: S324
    (tmp_path / "dvc.lock").write_text(
        "schema: '2.0'\nstages:\n  collect:\n    cmd: x\n    outs:\n"
        f"    - path: results/mini/paper/tables\n      md5: {folder}.dir\n"
        f"    - path: results/mini/paper/claims.json\n      md5: {file}\n"
        f"    - path: data/a\n      md5: {'f' * 32}\n  other:\n    cmd: y\n"
    )
    return tmp_path


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[0] ^= 1
    path.write_bytes(content)


def record(project: Path, path: str, md5: str) -> None:
    """Add an output to the lock."""
    lock = project / "dvc.lock"
    lock.write_text(f"{lock.read_text()}    outs:\n    - path: {path}\n      md5: {md5}\n")


def cached(project: Path, content: bytes, ending: str = "") -> Path:
    """An object of DVC's cache."""
    md5 = hashlib.md5(content).hexdigest()  # noqa: S324
    path = project / ".dvc/cache/files/md5" / md5[:2] / (md5[2:] + ending)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def test_whole_files_are_no_problem(project: Path) -> None:
    assert verify(project) == Verified(artifacts=2, results=2, objects=0, problems=())


def test_a_checkout_that_was_not_run(tmp_path: Path) -> None:
    assert verify(tmp_path) == Verified(artifacts=0, results=0, objects=0, problems=())


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("data/a/one.json", "data/a/one.json: damaged"),
        ("data/a/manifest.json", "data/a/manifest.json: damaged"),
        ("results/mini/paper/b/one.json", "results/mini/paper/b/one.json: damaged"),
        ("results/mini/paper/tables/a.csv", "results/mini/paper/tables: not as dvc.lock records it"),
        ("results/mini/paper/claims.json", "results/mini/paper/claims.json: not as dvc.lock records it"),
    ],
)
def test_one_flipped_bit_is_found_and_named(project: Path, path: str, says: str) -> None:
    flip(project / path)
    (problem,) = verify(project).problems
    assert says in problem


def test_a_result_that_is_gone_or_too_many_is_named(project: Path) -> None:
    (project / "results/mini/paper/claims.json").unlink()
    (project / "results/mini/paper/tables/c.csv").write_text("c")
    (project / "data/a/more.json").write_text("1")
    assert sorted(problem.partition(": ")[2] for problem in verify(project).problems) == [
        "missing",
        "not as dvc.lock records it",
        "not in the manifest",
    ]


def test_the_report_counts_once_it_is_there(project: Path) -> None:
    page = project / "results/mini/index.html"
    recorded = hashlib.md5(b"<p>").hexdigest()  # noqa: S324
    with (project / "dvc.lock").open("a") as lock:
        lock.write(f"  report:\n    cmd: z\n    outs:\n    - path: results/mini/index.html\n      md5: {recorded}\n")
    assert verify(project) == Verified(artifacts=2, results=2, objects=0, problems=())
    page.write_text("<p>")
    assert verify(project) == Verified(artifacts=2, results=3, objects=0, problems=())
    page.write_text("<b>")
    assert verify(project).problems == ("results/mini/index.html: not as dvc.lock records it",)


def test_what_is_damaged_is_set_aside_and_missing_from_then_on(project: Path) -> None:
    flip(project / "data/a/one.json")
    assert len(verify(project).problems) == 1
    assert (project / "data/a/one.json.damaged").read_bytes() == b"0\n"
    (problem,) = verify(project).problems
    assert problem.endswith("data/a/one.json: missing")


def test_results_stay_and_get_a_new_time_so_that_dvc_compares_them(project: Path) -> None:
    path = project / "results/mini/paper/claims.json"
    before = path.stat().st_mtime_ns - 10**9
    path.write_text("[1]")
    os.utime(path, ns=(before, before))
    assert verify(project).problems == ("results/mini/paper/claims.json: not as dvc.lock records it",)
    assert path.read_text() == "[1]"
    assert path.stat().st_mtime_ns > before


def test_a_damaged_result_is_named_where_the_notebook_listed_it(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    write_contents(Path("results/mini/paper"), Path("data/shown/paper"))
    Path("results/mini/paper/tables/a.csv").write_text("c")
    Path("results/mini/paper/tables/b.csv").unlink()
    Path("results/mini/paper/tables/c.csv").write_text("c")
    tables = "results/mini/paper/tables"
    assert verify().problems == (f"{tables}/a.csv: damaged", f"{tables}/b.csv: missing", f"{tables}/c.csv: not listed")


def test_an_artifact_that_is_gone_is_named_where_dvc_listed_it(project: Path) -> None:
    names = ("a/manifest.json", "a/one.json")
    listing = [{"md5": "0" * 32, "relpath": name} for name in names]
    listed = cached(project, json.dumps(listing).encode(), ".dir")
    with new_artifact(project / "data/numbers/b", kind="numbers", about={}) as output:
        write_json(output / "one.json", 1)
    record(project, "data/numbers", listed.parent.name + listed.name)
    assert verify(project).problems == tuple(f"data/numbers/{name}: missing" for name in names)
    (project / "data/numbers/b/manifest.json").unlink()
    (project / "data/numbers/c.json").write_text("1")
    found = verify(project).problems
    assert "data/numbers/b/one.json: not listed" in found
    assert "data/numbers/c.json: not listed" in found


def test_a_file_that_belongs_to_no_artifact_is_named(project: Path) -> None:
    record(project, "data", "0" * 32 + ".dir")
    (project / "data/lost.json").write_text("1")
    assert verify(project).problems == ("data/lost.json: belongs to no artifact",)


@pytest.mark.parametrize("ending", ["", ".dir"])
def test_an_object_of_the_cache_that_is_not_what_it_is_called_is_set_aside(project: Path, ending: str) -> None:
    whole, damaged = cached(project, b"whole"), cached(project, b"[]", ending)
    (whole.parent / ".begun.tmp").write_text("what DVC was copying when it was killed")
    flip(damaged)
    found = verify(project)
    assert found.objects == 2
    assert found.problems == (f"{damaged}: damaged (its name is not its digest)",)
    assert not damaged.exists()
    assert whole.exists()
    assert verify(project) == Verified(artifacts=2, results=2, objects=1, problems=())


def test_the_cache_is_looked_for_where_the_settings_say(project: Path, tmp_path: Path) -> None:
    (project / ".dvc").mkdir()
    (project / ".dvc/config").write_text("[cache]\n    dir = ../elsewhere\n")
    cached(project, b"whole").parents[3].rename(tmp_path / "elsewhere")
    assert verify(project).objects == 1


@pytest.mark.parametrize("content", ["", '{"a": ', "[]"])
def test_locks_of_dvc_that_it_cannot_read_are_set_aside(project: Path, content: str) -> None:
    locks = project / ".dvc/tmp/rwlock"
    locks.parent.mkdir(parents=True)
    locks.write_text("{}")
    assert verify(project).problems == ()
    locks.write_text(content)
    assert verify(project).problems == (f"{locks}: damaged (not as DVC writes it)",)
    assert verify(project).problems == ()


def test_a_damaged_timing_or_checkpoint_is_set_aside(project: Path) -> None:
    from softmax_temperature.runner.checkpoints import save_checkpoint

    work = project / "data/work/stage/cell/0"
    write_sealed(work / "timing.json", {"seconds": 1})
    save_checkpoint(work / "checkpoint.pt", {"epoch": 1})
    assert verify(project).problems == ()
    for name in ("timing.json", "checkpoint.pt"):
        flip(work / name)
    assert [problem.partition(": ")[0] for problem in verify(project).problems] == [
        str(work / "timing.json"),
        str(work / "checkpoint.pt"),
    ]
    assert verify(project).problems == (), "work that is gone is done again, and no fault"


def test_what_a_run_removes_meanwhile_is_no_problem(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = project / "data/work/stage/cell/0"
    write_sealed(work / "timing.json", {"seconds": 1})
    (work / "checkpoint.pt").touch()

    def removing(name: str, total: int) -> AbstractContextManager[Callable[[int], None]]:
        for path in work.iterdir():
            path.unlink()
        return counting(name, total)

    monkeypatch.setattr(verification, "counting", removing)
    assert verify(project).problems == ()


def test_a_damaged_result_of_a_cell_counts_once_and_then_as_absent(project: Path) -> None:
    with new_artifact(project / "data/work/stage/cell/0/result", kind="numbers", about={}) as output:
        write_json(output / "one.json", 1)
    flip(project / "data/work/stage/cell/0/result/one.json")
    assert len(verify(project).problems) == 1
    assert verify(project).problems == ()


@pytest.mark.parametrize("content", ["[cache", "[cache]\n    dirr = x\n", "[cache]\n    type = 1\n"])
def test_settings_of_dvc_that_it_cannot_read_are_named(project: Path, content: str) -> None:
    (project / ".dvc").mkdir()
    (project / ".dvc/config").write_text(content)
    with pytest.raises(InputError, match=r"\.dvc: .*Restore the settings from Git"):
        verify(project)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "schema: '2.0'\nstagez: {}\n",
        "stages: [",
        "stages:\n  a:\n    outs: 3\n",
        "schema: '2.0'\nstages:\n  a:\n    cmd: b\n    outs:\n    - path: c\n",
        "schema: '2.0'\nstages:\n  a:\n    cmd: b\n    deps:\n    - path: c\n      md5: 123\n",
    ],
)
def test_a_damaged_lock_is_named_and_hides_nothing(project: Path, content: str) -> None:
    (project / "dvc.lock").write_text(content)
    flip(project / "data/a/one.json")
    lock, artifact = verify(project).problems
    assert "dvc.lock: not as DVC writes it" in lock
    assert "Restore it from Git, or remove it" in lock
    assert "data/a/one.json: damaged" in artifact


def test_the_committed_results_are_as_the_lock_records_them(project_root: Path, tmp_path: Path) -> None:
    for name in ("results", "dvc.lock"):
        (tmp_path / name).symlink_to(project_root / name)
    found = verify(tmp_path)
    assert found.results > 0
    assert found.problems == ()
