"""DVC restores a damaged object of its cache and believes a file whose time is as before; the project does neither."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from softmax_temperature.tools.dvc_records import recorded_outputs
from softmax_temperature.tools.verification import verify

from softmax_temperature.runner.artifacts import DAMAGED
from tests.faults import toy
from tests.faults.damage import DAMAGES, damage


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project whose pipeline has run."""
    folder = toy.make(tmp_path_factory.mktemp("toy") / "a project")
    said = toy.dvc(folder, "repro")
    assert said.count("RUN ") == 3
    assert verify(folder).problems == ()
    return folder


@pytest.fixture
def project(finished: Path, tmp_path: Path) -> Path:
    """A copy of it, with the permissions that DVC gave its objects."""
    shutil.copytree(finished, tmp_path / "copy", symlinks=True)
    return tmp_path / "copy"


def objects(project: Path) -> list[Path]:
    found = [path for path in (project / ".dvc/cache/files/md5").rglob("*") if path.is_file()]
    assert {path.suffix for path in found} == {"", ".dir"}
    assert all(path.stat().st_mode & 0o777 == 0o444 for path in found), "which DVC takes for: compared and whole"
    return found


def whole(project: Path) -> dict[str, bytes]:
    return {path: content for path, content in toy.contents(project).items() if not path.endswith(DAMAGED)}


@pytest.mark.parametrize("ways", [list(DAMAGES), *(pytest.param([how], marks=pytest.mark.soak) for how in DAMAGES)])
def test_a_damaged_cache_reaches_no_result_and_is_mended(project: Path, finished: Path, ways: list[str]) -> None:
    damaged = objects(project)
    for number, path in enumerate(damaged):
        damage(path, ways[number % len(ways)], seed=0, silently=True)
    shutil.rmtree(project / "data")
    assert "RUN make_numbers.py" in toy.dvc(project, "repro"), "DVC alone would have taken them from its cache"
    made = {path: content for path, content in whole(finished).items() if ".dvc" not in path}
    assert {path: content for path, content in whole(project).items() if ".dvc" not in path} == made
    assert sorted(line.partition(": ")[0] for line in verify(project).problems) == sorted(map(str, damaged))
    toy.dvc(project, "repro")
    assert whole(project) == whole(finished)
    assert verify(project).problems == ()


def test_what_dvc_checkout_restores_damaged_is_named_when_it_is_read(project: Path, finished: Path) -> None:
    (found,) = [
        path for path in objects(project) if path.read_bytes() == (project / "data/numbers/some.json").read_bytes()
    ]
    damage(found, "flip", seed=1)
    shutil.rmtree(project / "data/numbers")
    toy.dvc(project, "checkout")
    assert (project / "data/numbers/some.json").read_bytes() != (finished / "data/numbers/some.json").read_bytes()
    (project / "make_squares.py").write_text((project / "make_squares.py").read_text() + "# changed\n")
    done = toy.run(project, "dvc", "repro")
    assert done.returncode != 0
    assert "error: data/numbers/some.json: damaged (its sha256 is not the recorded one)" in done.stderr
    assert "RUN make_numbers.py" in toy.dvc(project, "repro"), (
        "what was found damaged is set aside: DVC sees that it is gone"
    )
    assert verify(project).problems == (f"{found}: damaged (its name is not its digest)",)


def test_silent_damage_is_found_by_verify_and_mended_by_the_next_run(project: Path, finished: Path) -> None:
    names = ("data/numbers/more/others.json", "data/squares/manifest.json", "results/toy/tables/squares.csv")
    toy.dvc(project, "status")  # Now DVC knows the copy's files by their times.
    for name in names:
        damage(project / name, "flip", seed=2, silently=True)
    assert "up to date" in toy.dvc(project, "repro"), "DVC alone sees nothing"
    assert len(verify(project).problems) == len(names)
    toy.dvc(project, "repro")
    assert whole(project) == whole(finished)
    assert verify(project).problems == ()


def damage_lock(project: Path, finished: Path, how: str, seed: int) -> None:
    """Damage `dvc.lock`: DVC writes it again, or refuses it, and then `verify` has said what to do."""
    lock = project / "dvc.lock"
    damage(lock, how, seed)
    named = [line for line in verify(project).problems if "Restore it from Git, or remove it" in line]
    done = toy.run(project, "dvc", "repro")
    if done.returncode != 0:
        assert named, done.stderr
        lock.unlink()
        toy.dvc(project, "repro")
    outputs = recorded_outputs(finished)
    assert {stage: found for stage, found in recorded_outputs(project).items() if stage in outputs} == outputs
    made, expected = whole(project), whole(finished)
    assert {path: content for path, content in made.items() if path in expected} == expected
    # A lock whose version is damaged passes for one of an older DVC, whose cache keeps the same objects elsewhere.
    assert all(path.startswith(".dvc/cache/") for path in made.keys() - expected.keys())


@pytest.mark.parametrize("how", DAMAGES)
def test_a_damaged_lock_is_written_again_or_named(project: Path, finished: Path, how: str) -> None:
    damage_lock(project, finished, how, seed=0)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("how", ["flip", "truncate"])
def test_a_damaged_lock_is_written_again_or_named_wherever_it_is_damaged(
    project: Path, finished: Path, how: str, record_property: Callable[[str, object], None]
) -> None:
    for seed in range(1, 101):
        damage_lock(project, finished, how, seed)
        shutil.copy(finished / "dvc.lock", project)
    record_property("damaged_locks", 100)
