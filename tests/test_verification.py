"""Every damaged file is found, by manifest or by dvc.lock, and a checkout that was not run has nothing to find."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from softmax_temperature.artifacts import new_artifact, write_json
from softmax_temperature.verification import Verified, verify


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
        "    - path: data/a\n      md5: other\n  other:\n    cmd: y\n"
    )
    return tmp_path


def test_whole_files_are_no_problem(project: Path) -> None:
    assert verify(project) == Verified(artifacts=2, results=2, problems=())


def test_a_checkout_that_was_not_run(tmp_path: Path) -> None:
    assert verify(tmp_path) == Verified(artifacts=0, results=0, problems=())


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("data/a/one.json", "data/a/one.json: missing or damaged"),
        ("data/a/manifest.json", "data/a/manifest.json: the manifest is damaged"),
        ("results/mini/paper/b/one.json", "results/mini/paper/b/one.json: missing or damaged"),
        ("results/mini/paper/tables/a.csv", "results/mini/paper/tables: not as dvc.lock records it"),
        ("results/mini/paper/claims.json", "results/mini/paper/claims.json: not as dvc.lock records it"),
    ],
)
def test_one_flipped_bit_is_found_and_named(project: Path, path: str, says: str) -> None:
    content = bytearray((project / path).read_bytes())
    content[0] ^= 1
    (project / path).write_bytes(content)
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
    assert verify(project) == Verified(artifacts=2, results=2, problems=())
    page.write_text("<p>")
    assert verify(project) == Verified(artifacts=2, results=3, problems=())
    page.write_text("<b>")
    assert verify(project).problems == ("results/mini/index.html: not as dvc.lock records it",)


def test_the_committed_results_are_as_the_lock_records_them(project_root: Path, tmp_path: Path) -> None:
    for name in ("results", "dvc.lock"):
        (tmp_path / name).symlink_to(project_root / name)
    found = verify(tmp_path)
    assert found.results > 0
    assert found.problems == ()
