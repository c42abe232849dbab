"""Copies of this project in which DVC can run."""

from __future__ import annotations

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = (".dvc", "data/published", "notebooks", "pipeline", "profiles", "src")
FILES = (".dvcignore", "benchmarks/results.json", "data/.gitignore", "dvc.yaml")


def copy_project(folder: Path) -> Path:
    """What Git holds of the project but its results, in a new folder without Git; `params.yaml` is the caller's."""
    skip = shutil.ignore_patterns("__pycache__", "*.egg-info", "cache", "tmp", "config.local")
    for name in FOLDERS:
        shutil.copytree(ROOT / name, folder / name, ignore=skip)
    for name in FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / ".dvc/config.local").write_text("[core]\n    no_scm = true\n")
    return folder
