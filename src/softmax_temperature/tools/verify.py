"""Whether every artifact and checkpoint of the project still has the bytes that were written."""

from dataclasses import dataclass
from pathlib import Path

from softmax_temperature.runner.artifacts import MANIFEST, ArtifactError, find_artifacts, open_artifact, set_aside
from softmax_temperature.runner.cells import CHECKPOINT, DATA, WORK
from softmax_temperature.runner.checkpoints import whole_content


@dataclass(frozen=True)
class Verified:
    """What was compared: folders with a manifest, checkpoints, and one line for each file that is not as written."""

    artifacts: int
    checkpoints: int
    problems: tuple[str, ...]


def verify(root: Path = Path()) -> Verified:
    """Compare every artifact with its manifest, and every checkpoint with its digest.

    What is damaged below data/ is set aside as `*.damaged`, so that nothing reads it and `dvc repro` makes it again.
    Results are in Git, and DVC's cache and lock are DVC's business: `git status`, `dvc status`, `dvc checkout`.

    Args:
        root: the project.
    """
    folders = find_artifacts(root / DATA)
    checkpoints = sorted((root / WORK).rglob(CHECKPOINT))
    problems = [line for folder in folders for line in _artifact(folder, scratch=root / WORK in folder.parents)]
    problems += [f"{path}: damaged (its own sha256 differs)" for path in checkpoints if whole_content(path) is None]
    return Verified(len(folders), len(checkpoints), tuple(problems))


def _artifact(folder: Path, *, scratch: bool) -> list[str]:
    try:
        lines = open_artifact(folder).problems()
    except ArtifactError as error:
        set_aside(folder / MANIFEST)
        return [f"{error.where}: {error.what}"]
    if lines and scratch:  # No stage declares it: without its manifest the cell is run again.
        set_aside(folder / MANIFEST)
    return lines
