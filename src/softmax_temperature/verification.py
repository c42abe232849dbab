"""Whether what lies below data/ and results/ is what was written there."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from softmax_temperature.artifacts import ArtifactError, find_artifacts, open_artifact
from softmax_temperature.progress import counting
from softmax_temperature.results import RESULTS

LOCK = "dvc.lock"
REPORT = "report"  # A stage whose results Git ignores: a checkout has them once they are rebuilt.


@dataclass(frozen=True)
class Verified:
    """What was compared.

    Attributes:
        artifacts: how many folders with a manifest.
        results: how many files and folders of results that `dvc.lock` records.
        problems: a line for each file that is missing, damaged or not listed.
    """

    artifacts: int
    results: int
    problems: tuple[str, ...]


def verify(root: Path = Path()) -> Verified:
    """Compare every artifact below data/ and results/ with its manifest, and results with the digests in `dvc.lock`.

    Results have no manifests: they are small files in Git, and `dvc.lock` records those of the profile that was run
    last.

    Args:
        root: of the project.
    """
    folders = [folder for name in ("data", RESULTS) for folder in find_artifacts(root / name)]
    recorded = _recorded(root)
    problems: list[str] = []
    with counting("artifacts", len(folders) + len(recorded)) as advance:
        for folder in folders:
            problems += _problems(folder)
            advance(1)
        for path, md5 in recorded.items():
            if (found := _md5(root / path)) != md5:
                problems.append(f"{path}: {'missing' if found is None else f'not as {LOCK} records it'}")
            advance(1)
    return Verified(len(folders), len(recorded), tuple(problems))


def _problems(folder: Path) -> list[str]:
    try:
        return open_artifact(folder).problems()
    except ArtifactError as error:
        return [f"{error.where}: {error.what}"]


def _recorded(root: Path) -> dict[str, str]:
    """The digests of the results that stages wrote."""
    lock = root / LOCK
    if not lock.is_file():
        return {}
    stages: dict[str, Any] = YAML(typ="safe").load(lock)["stages"]
    outs = [
        out
        for name, stage in stages.items()
        for out in stage.get("outs", ())
        if name != REPORT or (root / out["path"]).exists()
    ]
    return {out["path"]: out["md5"] for out in outs if Path(out["path"]).is_relative_to(RESULTS)}


def _md5(path: Path) -> str | None:
    """The digest as DVC makes it, of a file, or of the list of a folder's files; None if there is neither."""
    if path.is_file():
        with path.open("rb") as file:
            return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
    if not path.is_dir():
        return None
    files = sorted(file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file())
    listing = [{"md5": _md5(path / name), "relpath": name} for name in files]
    return hashlib.md5(json.dumps(listing, sort_keys=True).encode(), usedforsecurity=False).hexdigest() + ".dir"
