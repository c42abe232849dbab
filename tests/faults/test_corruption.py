"""Every file that the pipeline leaves, damaged in every way, is found and named by `verify` and made again.

The kinds of files are not listed here: they are what a cold run leaves. A new stage or a new file is damaged too.
"""

from __future__ import annotations

import random
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from softmax_temperature.tools.verification import verify

from softmax_temperature.runner.artifacts import DAMAGED, find_artifacts
from softmax_temperature.runner.reading import read_yaml
from tests.faults import tiny, toy
from tests.faults.damage import DAMAGES, damage
from tests.faults.tiny import Cold

TIMES = ("environment.json", "timing.json", "holder")
"""What differs between two runs."""
NO_ARTIFACTS = ("lock", "holder", "progress", "error.txt")
"""What a cell leaves in its folder below data/work that nothing reads: a lock is empty, the others are for people."""


@pytest.fixture(scope="module")
def cold(tmp_path_factory: pytest.TempPathFactory) -> Cold:
    return tiny.cold_run(tmp_path_factory.getbasetemp())


@pytest.fixture
def project(cold: Cold, tmp_path: Path) -> Path:
    """A copy of it, in which a file has one name."""
    shutil.copytree(cold.folder, tmp_path / "copy")
    return tmp_path / "copy"


def damageable(cold: Cold) -> set[Path]:
    """Without what is DVC's own business, and what means nothing; `dvc.lock` has tests of its own."""
    return {
        path
        for path in cold.left
        if not path.is_relative_to(".dvc/tmp")
        and path != Path("dvc.lock")
        and not (path.is_relative_to("data/work") and path.name in NO_ARTIFACTS)
        and (cold.folder / path).stat().st_size
    }


def beside_results(path: Path) -> bool:
    """Whether it is one of the files that are no outputs, since they say how long a run took."""
    return len(path.parts) == 3 and path.parts[0] == "results"


def rounds(folder: Path, paths: set[Path], generator: random.Random) -> Iterator[list[Path]]:
    """All files, one of each artifact at a time, since a damaged manifest hides what else is damaged in it.

    In the same way environment.json hides the params.yaml beside it.
    """
    groups = defaultdict(list)
    places = [place.relative_to(folder) for place in find_artifacts(folder)]
    for path in sorted(paths):
        alone = path.parent if beside_results(path) else path
        owner = next((place for place in places if place in path.parents), alone)
        groups[owner].append(path)
    for group in groups.values():
        generator.shuffle(group)
    while any(groups.values()):
        yield [group.pop() for group in groups.values() if group]


def restore(project: Path, contents: dict[Path, bytes]) -> None:
    for path in list(project.rglob(f"*{DAMAGED}")):
        path.replace(path.with_name(path.name.removesuffix(DAMAGED)))
    for path, content in contents.items():
        (project / path).unlink()
        (project / path).write_bytes(content)


def undiscovered(project: Path, paths: list[Path], ways: list[str], seed: int) -> list[Path]:
    """Which of some damaged files `verify` does not name; afterwards they are whole again.

    Args:
        project: whose files.
        paths: of the files, damaged all at once.
        ways: each in turn.
        seed: of where in the file.
    """
    contents = {path: (project / path).read_bytes() for path in paths}
    for number, path in enumerate(paths):
        damage(project / path, ways[number % len(ways)], seed, silently=True)
    said = verify(project).problems
    restore(project, contents)
    return unnamed(paths, said)


def unnamed(paths: list[Path], said: tuple[str, ...]) -> list[Path]:
    """Files that no line is about; one about the folder of results that a file lies in will do."""
    places = [line.partition(": ")[0] for line in said]
    return [
        path
        for path in paths
        if not any(place.endswith(path.as_posix()) or Path(place) in path.parents for place in places)
    ]


def test_the_cold_run_is_whole_and_has_cells_of_every_stage(cold: Cold) -> None:
    outputs = [
        path for stage in read_yaml(cold.folder / "dvc.yaml")["stages"].values() for path in map(_path, stage["outs"])
    ]
    with_cells = {
        path.partition("/$")[0] for path in outputs if not path.startswith(("results/", "data/code", "data/shown/"))
    }
    assert len(with_cells) > 10
    assert {path for path in with_cells if not find_artifacts(cold.folder / path)} == set()
    assert verify(cold.folder).problems == ()


def _path(output: str | dict[str, object]) -> str:
    return output if isinstance(output, str) else next(iter(output))


def test_every_file_is_found_when_it_is_damaged(cold: Cold, project: Path) -> None:
    paths = damageable(cold)
    assert len(paths) > 500
    for chosen in rounds(cold.folder, paths, random.Random(0)):  # noqa: S311  # no secret
        assert undiscovered(project, chosen, list(DAMAGES), seed=0) == []
    assert verify(project).problems == ()


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(1, 11))
def test_every_file_is_found_when_it_is_damaged_in_every_way(
    cold: Cold, project: Path, seed: int, record_property: Callable[[str, object], None]
) -> None:
    for chosen in rounds(cold.folder, damageable(cold), random.Random(seed)):  # noqa: S311  # no secret
        for how in DAMAGES:
            assert undiscovered(project, chosen, [how], seed) == []
    record_property("damaged_files_found", len(damageable(cold)) * len(DAMAGES))


def mended(cold: Cold, project: Path, paths: list[Path], how: str, run: Callable[[], None]) -> None:
    """Damage files, do what `verify` says, and compare what the next run leaves with what the cold run left."""
    for path in paths:
        damage(project / path, how, seed=0, silently=True)
    assert unnamed(paths, verify(project).problems) == []
    for path in paths:
        if path.name == "environment.json":
            (project / path).unlink()
    run()
    assert verify(project).problems == ()
    for path in sorted(cold.left):
        if path.name not in TIMES and not path.is_relative_to(".dvc/tmp"):
            assert (project / path).read_bytes() == (cold.folder / path).read_bytes(), path


def test_a_damaged_file_of_some_stages_is_made_again_by_their_programs(cold: Cold, project: Path) -> None:
    places = ("data/focal/linear", "data/work/focal/linear", "results/smoke/cooling")
    paths = {path for path in damageable(cold) if any(path.is_relative_to(place) for place in places)}
    chosen = next(rounds(cold.folder, paths, random.Random(0)))  # noqa: S311  # no secret
    assert {place for place in places if any(path.is_relative_to(place) for path in chosen)} == set(places)
    mended(cold, project, chosen, "flip", lambda: tiny.run(project, "focal-linear", "collect-cooling"))


@pytest.mark.soak
@pytest.mark.timeout(3 * 3600)
@pytest.mark.parametrize("how", DAMAGES)
def test_every_file_is_made_again_by_the_next_dvc_repro(
    cold: Cold, project: Path, how: str, record_property: Callable[[str, object], None]
) -> None:
    for chosen in rounds(cold.folder, damageable(cold), random.Random(how)):  # noqa: S311  # no secret
        again = [f"collect-{paper}@{paper}" for paper in tiny.COLLECTED] * any(map(beside_results, chosen))

        def run(again: list[str] = again) -> None:
            toy.dvc(project, "repro", *cold.stages)
            if again:
                toy.dvc(project, "repro", "--force", "--single-item", *again)

        mended(cold, project, chosen, how, run)
    record_property("damaged_files_made_again", len(damageable(cold)))
