"""Images in class folders below data.root.

Class folders, with image files directly in them, are below `NAME/train` and
`NAME/test`; or below `NAME/all`, which is split when the data set is prepared; or below
`NAME/test` alone, for an out-of-distribution or shifted set.
"""

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from softmax_temperature.data.image_files import (
    ENDINGS,
    OTHER_ENDINGS,
    check_name_and_link,
    digest_of_files,
    image_files,
    listed,
)
from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.runner.errors import InputError

Files = dict[str, list[str]]
"""The image files of each class, as paths below the root folder."""

_PARTS = ("train", "test", "all")
_LAYOUTS = (["train", "test"], ["all"], ["test"])
_REMEDY = (
    "Make train and test, or all, of a folder for each class with image files directly "
    "in it."
)


@dataclass(frozen=True)
class ClassFolders:
    """The folder `name` below `root`, with images in class folders."""

    root: Path
    name: str

    @property
    def folder(self) -> Path:
        """The path of the folder."""
        return self.root / self.name

    def digest(self) -> str:
        """Compute one sha256 of the names and contents of all image files used.

        The digest does not depend on the location of the folder.
        """
        return digest_of_files(self.root, _all_files(self._parts()))

    def read(self) -> RawDataset:
        """List the files, which are read when the data set is prepared.

        Raises:
            InputError: If the folders do not have the layout that this module's
                docstring describes, there are fewer than two classes, `test` has a
                class that `train` lacks, or a file or folder cannot be used.
        """
        parts = self._parts()
        train = parts.get("train") or parts.get("all", {})
        test = parts.get("test", {})
        names = tuple(train or test)
        if len(names) < 2:
            raise InputError(
                f"needs at least 2 class folders, has {len(names)}",
                where=str(self.folder),
                remedy=_REMEDY,
            )
        unknown = [name for name in test if name not in names]
        if unknown:
            raise InputError(
                "train has no class of this name",
                where=str(self.folder / "test" / unknown[0]),
                remedy=_REMEDY,
            )
        return RawDataset(
            self.name,
            names,
            train=part_of(names, train),
            test=part_of(names, test) if test else None,
            source=self._source(parts),
        )

    def _source(self, parts: Mapping[str, Files]) -> dict[str, Any]:
        source: dict[str, Any] = {
            "how": "class folders in data.root",
            "folder": self.name,
        }
        left_out = _images_left_out(self.folder, parts)
        if left_out:
            source["images_left_out"] = left_out
        return source

    def _parts(self) -> dict[str, Files]:
        """List the image files of each existing part."""
        present = [part for part in _PARTS if (self.folder / part).is_dir()]
        if present not in _LAYOUTS:
            raise InputError(
                f"holds {' and '.join(present)}",
                where=str(self.folder),
                remedy=_REMEDY,
            )
        return {part: class_files(self.root, f"{self.name}/{part}") for part in present}


def _all_files(parts: Mapping[str, Files]) -> list[str]:
    return [
        file for part in parts.values() for files in part.values() for file in files
    ]


def _images_left_out(folder: Path, parts: Mapping[str, Files]) -> dict[str, int]:
    """Count the unused image files below `folder`, by the reason for leaving them out.

    Hidden files and folders are not counted.
    """
    counts: Counter[str] = Counter()
    visited: set[Path] = set()
    for place, subfolders, names in os.walk(folder, followlinks=True):
        resolved = Path(place).resolve()
        if resolved in visited:  # A link leads back here, and may form a loop.
            subfolders.clear()
            continue
        visited.add(resolved)
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        steps = Path(place).relative_to(folder).parts
        for name in names:
            ending = Path(name).suffix.lower()
            if name.startswith(".") or ending not in ENDINGS | OTHER_ENDINGS:
                continue
            reason = _reason_to_leave_out(steps, ending, parts)
            if reason is not None:
                counts[reason] += 1
    return dict(counts)


def _reason_to_leave_out(
    steps: Sequence[str], ending: str, parts: Mapping[str, Files]
) -> str | None:
    """Return why an image file is unused, or None if it is used.

    `steps` are the names in the path from the data set's folder to the file's folder.
    """
    if steps and steps[0] not in parts:
        # Escape the name, because a folder's name may hold any bytes, but the data
        # set's card can hold only text.
        name = steps[0].encode(errors="backslashreplace").decode()
        return f"in {name}/"
    if len(steps) < 2:
        return "beside the class folders"
    if len(steps) > 2:
        return "in folders below a class"
    if ending not in ENDINGS:
        return f"*{ending}"
    return None


def has_class_folders(root: Path, name: str) -> bool:
    """Whether `NAME` below `root` has a folder train, test or all."""
    return any((root / name / part).is_dir() for part in _PARTS)


def class_files(root: Path, folder: str, *, leave_out: str | None = None) -> Files:
    """List the image files of each class folder in `folder`, with classes sorted.

    Args:
        root: The folder that the paths are relative to.
        folder: Path below `root` of the folder that holds class folders.
        leave_out: The name of a folder that is not a class.

    Raises:
        InputError: If a class has no image files, or a file cannot be used.
    """
    files: Files = {}
    for place in listed(root / folder):
        if place.name.startswith(".") or place.name == leave_out:
            continue
        check_name_and_link(place)
        if not place.is_dir():
            continue
        names = [path.name for path in image_files(place)]
        if not names:
            endings = " ".join(sorted(ENDINGS))
            raise InputError(
                f"no image files (endings: {endings})",
                where=str(place),
                remedy=_REMEDY,
            )
        files[place.name] = [f"{folder}/{place.name}/{name}" for name in names]
    return files


def part_of(names: Sequence[str], files: Mapping[str, Sequence[str]]) -> RawPart:
    """Make a part of the `files` of the classes `names`; a class may have no files."""
    files_by_class = [files.get(name, ()) for name in names]
    paths = tuple(path for class_paths in files_by_class for path in class_paths)
    counts = [len(class_paths) for class_paths in files_by_class]
    return RawPart(paths, np.repeat(np.arange(len(names)), counts))
