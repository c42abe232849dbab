"""Whether what lies below data/ and results/ and in DVC's cache is what was written there.

What is damaged is set aside, so that nothing can read it and the next `dvc repro` makes it again. Results stay where
they are, because they are in Git; DVC is made to compare them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from softmax_temperature.papers.shared.results import RESULTS, SHOWN, read_contents
from softmax_temperature.runner.artifacts import (
    MANIFEST,
    ArtifactError,
    digest_of_file,
    find_artifacts,
    open_artifact,
    read_sealed,
    set_aside,
)
from softmax_temperature.runner.cells import TIMING, WORK
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.jobs import CHECKPOINT
from softmax_temperature.runner.progress import counting
from softmax_temperature.tools import dvc_records
from softmax_temperature.tools.recorded_output import Listing, output_problems

REPORT = "report"  # A stage whose results Git ignores: a checkout has them once they are rebuilt.


@dataclass(frozen=True)
class Verified:
    """What was compared.

    Attributes:
        artifacts: how many folders with a manifest.
        results: how many files and folders of results that `dvc.lock` records.
        objects: how many files in DVC's cache.
        problems: a line for each file that is missing, damaged or not listed.
    """

    artifacts: int
    results: int
    objects: int
    problems: tuple[str, ...]


def verify(root: Path = Path()) -> Verified:
    """Compare artifacts with their manifests, other outputs with `dvc.lock`, and DVC's objects with their names.

    Results of the profile that was run last are in `dvc.lock`. Checkpoints, timings, and what stands beside the results
    carry digests of their own.

    Args:
        root: of the project.

    Raises:
        InputError: DVC cannot read its settings.
    """
    cache = dvc_records.cache_folder(root)
    objects = dvc_records.cached_objects(cache) if cache else []
    folders = [folder for name in ("data", RESULTS) for folder in find_artifacts(root / name)]
    outputs, problems = _recorded(root)
    shown = _shown(root)
    checks: list[Callable[[], list[str]]] = [
        # First, because what has been set aside would be missing.
        *(
            partial(output_problems, root, path, md5, _listing(path, md5, cache, shown))
            for path, md5 in outputs.items()
        ),
        *(partial(_artifact, folder, scratch=root / WORK in folder.parents) for folder in folders),
        *(partial(_timing, path) for path in sorted((root / WORK).rglob(TIMING))),
        *(partial(_checkpoint, path) for path in sorted((root / WORK).rglob(CHECKPOINT))),
        *(partial(_object, path) for path in objects),
        partial(_locks, root),
    ]
    with counting("files and folders", len(checks)) as advance:
        for check in checks:
            with suppress(FileNotFoundError):  # A run that goes on meanwhile has removed it, as a finished checkpoint.
                problems += check()
            advance(1)
    results = sum(Path(path).is_relative_to(RESULTS) for path in outputs)
    return Verified(len(folders), results, len(objects), tuple(problems))


def _recorded(root: Path) -> tuple[dict[str, str], list[str]]:
    """The outputs that should be there, path to MD5: all results, and what was made or pulled of the data."""
    try:
        stages = dvc_records.recorded_outputs(root)
    except InputError as error:
        return {}, [str(error)]
    return dict(_expected(root, stages)), []


def _expected(root: Path, stages: dict[str, dict[str, str]]) -> Iterator[tuple[str, str]]:
    for stage, outputs in stages.items():
        for path, md5 in outputs.items():
            if (Path(path).is_relative_to(RESULTS) and stage != REPORT) or (root / path).exists():
                yield path, md5


def _shown(root: Path) -> dict[str, str]:
    """The sha256 of every file of results that a notebook has shown."""
    return {place: digest for path in (root / SHOWN).glob("*") for place, digest in read_contents(path).items()}


def _listing(path: str, md5: str, cache: Path | None, shown: dict[str, str]) -> Listing | None:
    """What a folder should hold: as DVC lists it, otherwise as the notebook's stage did."""
    listed = dvc_records.listed_files(cache, md5)
    if listed is not None:
        return Listing(listed, dvc_records.md5_of)
    inside = {place.removeprefix(f"{path}/"): one for place, one in shown.items() if place.startswith(f"{path}/")}
    return Listing(inside, digest_of_file) if inside else None


def _artifact(folder: Path, *, scratch: bool) -> list[str]:
    try:
        lines = open_artifact(folder).problems()
    except ArtifactError as error:
        set_aside(folder / MANIFEST)
        return [f"{error.where}: {error.what}"]
    if lines and scratch:
        # DVC does not know it: a result that is not one any more is made again when its stage asks for it.
        set_aside(folder / MANIFEST)
    return lines


def _timing(path: Path) -> list[str]:
    try:
        read_sealed(path)
    except ArtifactError as error:
        set_aside(path)
        return [f"{error.where}: {error.what}"]
    return []


def _checkpoint(path: Path) -> list[str]:
    from softmax_temperature.runner.checkpoints import is_whole  # Imports torch, and most projects have none.

    if is_whole(path):
        return []
    set_aside(path)
    return [f"{path}: damaged (its own sha256 differs)"]


def _object(path: Path) -> list[str]:
    if dvc_records.is_whole(path):
        return []
    set_aside(path)
    return [f"{path}: damaged (its name is not its digest)"]


def _locks(root: Path) -> list[str]:
    if dvc_records.has_whole_locks(root):
        return []
    set_aside(root / dvc_records.LOCKS)
    return [f"{root / dvc_records.LOCKS}: damaged (not as DVC writes it)"]
