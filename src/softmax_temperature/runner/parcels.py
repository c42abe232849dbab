"""Folders as values that travel between machines: file names to bytes, mapped from disk rather than read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.runner.artifacts import ArtifactError, atomic_file, open_artifact, replace_folder
from softmax_temperature.runner.unfinished import unfinished_folder

Parcel = Mapping[str, NDArray[np.uint8]]
"""Paths relative to a folder, as POSIX writes them, to what the files hold."""


def packed(folder: Path) -> Parcel:
    """All files of a folder; none where there is no such folder."""
    return {path.relative_to(folder).as_posix(): _bytes_of(path) for path in _files(folder.rglob("*"))}


def packed_beside(place: Path, *, leave: frozenset[str]) -> Parcel:
    """The files that lie beside a place, without hidden ones and those named in `leave`."""
    files = _files(place.parent.glob("*"))
    return {path.name: _bytes_of(path) for path in files if path.name[0] != "." and path.name not in leave}


def unpack(parcel: Parcel, folder: Path) -> None:
    """Write the files of a parcel into a folder, each one whole or not at all."""
    for name, content in parcel.items():
        with atomic_file(folder / name) as file:
            file.write(content.data)


def unpack_artifact(parcel: Parcel, place: Path, *, fingerprint: str) -> None:
    """Put an artifact that has travelled to its place, if it is what was sent for.

    Args:
        parcel: its files.
        place: where it shall stand; nothing changes there unless all is well.
        fingerprint: what its manifest has to name.

    Raises:
        ArtifactError: it is not complete, a file's sha256 is not the manifest's, or it is of another fingerprint.
    """
    with unfinished_folder(place) as folder:
        unpack(parcel, folder)
        check_arrival(folder, fingerprint=fingerprint)
        replace_folder(folder, place)


def check_arrival(folder: Path, *, fingerprint: str) -> None:
    """Refuse an artifact that another machine made, unless every byte is as its manifest says.

    Raises:
        ArtifactError: see `unpack_artifact`.
    """
    artifact = open_artifact(folder)
    problems = artifact.problems()
    if artifact.about.get("fingerprint") != fingerprint:
        problems.append(f"{folder}: made for another fingerprint")
    if problems:
        raise ArtifactError(f"arrived damaged ({problems[0]})", where=str(folder), remedy="Run the stage again.")


def _files(paths: Iterable[Path]) -> list[Path]:
    return sorted(path for path in paths if path.is_file())


def _bytes_of(path: Path) -> NDArray[np.uint8]:
    """A file's bytes, which are read when somebody looks at them; an empty file cannot be mapped."""
    return np.asarray(np.memmap(path, np.uint8, mode="r")) if path.stat().st_size else np.empty(0, np.uint8)
