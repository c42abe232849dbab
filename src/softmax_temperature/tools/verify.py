"""Whether every artifact and checkpoint of the project still has the bytes that were written."""

from typing import NamedTuple

from softmax_temperature.runner.artifacts import MANIFEST, ArtifactError, find_artifacts, open_artifact, set_aside
from softmax_temperature.runner.cells import CHECKPOINT, DATA, WORK
from softmax_temperature.runner.checkpoints import whole_content


class Verified(NamedTuple):
    """What was compared: folders with a manifest, checkpoints, and one line for each file that is not as written."""

    artifacts: int
    checkpoints: int
    problems: list[str]


def verify() -> Verified:
    """Compare every artifact with its manifest, and every checkpoint with its digest, in the current project.

    What is damaged below data/ is set aside as `*.damaged`, so that nothing reads it and `dvc repro` makes it again.
    Results are in Git, and DVC's cache and lock are DVC's business: `git status`, `dvc status`, `dvc checkout`.
    """
    folders, checkpoints, problems = find_artifacts(DATA), sorted(WORK.rglob(CHECKPOINT)), []
    for folder in folders:
        try:
            lines = open_artifact(folder).problems()
            unreadable = False
        except ArtifactError as error:
            lines, unreadable = [f"{error.where}: {error.what}"], True
        # No stage declares what lies in the work folder: without its manifest the cell is run again.
        if unreadable or (lines and WORK in folder.parents):
            set_aside(folder / MANIFEST)
        problems += lines
    problems += [f"{path}: damaged (its own sha256 differs)" for path in checkpoints if whole_content(path) is None]
    return Verified(len(folders), len(checkpoints), problems)
