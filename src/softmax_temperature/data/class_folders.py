"""Class folders: one folder for each class, image files directly in it; below `NAME/train` and `NAME/test`.

A data set without a split of its own is in `NAME/all/CLASS` and is split when it is prepared; one that has nothing but
`NAME/test/CLASS` can be an out-of-distribution or a shifted set.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from softmax_temperature.data.image_files import ENDINGS, image_files
from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.runner.artifacts import digest_of_file, digest_of_text
from softmax_temperature.runner.errors import InputError

_PARTS = ("train", "test", "all")
_LAYOUT = "Make train and test, or all, of a folder for each class with image files directly in it."


@dataclass(frozen=True)
class ClassFolders:
    """One folder `NAME` below data.root, divided into train and test, or holding one of test and `all`."""

    root: Path
    name: str

    def digest(self) -> str:
        """One sha256 over the names and contents of all image files, wherever the folder is."""
        return digest_of_files(self.root, [file for part in self._parts() for own in part.values() for file in own])

    def read(self) -> RawDataset:
        """List the files, which are read when the data set is prepared."""
        train, test = self._parts()
        names = tuple(train or test)
        if len(names) < 2:
            raise InputError(f"has {len(names)} class folders", where=str(self.root / self.name), remedy=_LAYOUT)
        if unknown := [name for name in test if name not in names]:
            where = str(self.root / self.name / "test" / unknown[0])
            raise InputError("a class that train does not have", where=where, remedy=_LAYOUT)
        source = {"how": "class folders in data.root", "folder": self.name}
        return RawDataset(self.name, names, part_of(names, train), part_of(names, test) if test else None, source)

    def _parts(self) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """The files to train on (or all) and to test on, by class; either may be missing."""
        present = [part for part in _PARTS if (self.root / self.name / part).is_dir()]
        if present not in (["train", "test"], ["all"], ["test"]):
            raise InputError(f"holds {' and '.join(present)}", where=str(self.root / self.name), remedy=_LAYOUT)
        found = {part: class_files(self.root, f"{self.name}/{part}") for part in present}
        return found.get("train") or found.get("all", {}), found.get("test", {})


def digest_of_files(root: Path, files: Sequence[str]) -> str:
    """One sha256 over the names and contents of files below `root`."""
    with ThreadPoolExecutor() as pool:
        digests = pool.map(digest_of_file, [root / file for file in files])
        return digest_of_text("".join(f"{sha}  {file}\n" for sha, file in zip(digests, files, strict=True)))


def has_class_folders(root: Path, name: str) -> bool:
    """Whether `NAME` below a folder has at least one of the parts that hold class folders."""
    return any((root / name / part).is_dir() for part in _PARTS)


def class_files(root: Path, folder: str, *, leave_out: str | None = None) -> dict[str, list[str]]:
    """The image files of each class folder in `folder`, as paths below `root`; classes and files sorted."""
    found = {}
    for place in sorted(path for path in (root / folder).iterdir() if path.is_dir()):
        if place.name.startswith(".") or place.name == leave_out:
            continue
        found[place.name] = [f"{folder}/{place.name}/{file.name}" for file in image_files(place)]
        if not found[place.name]:
            what = f"no image files (endings: {' '.join(sorted(ENDINGS))})"
            raise InputError(what, where=str(place), remedy=_LAYOUT)
    return found


def part_of(names: Sequence[str], files: Mapping[str, Sequence[str]]) -> RawPart:
    """A part of the given classes, class by class; a class may be absent."""
    paths = tuple(file for name in names for file in files.get(name, ()))
    return RawPart(paths, np.repeat(np.arange(len(names)), [len(files.get(name, ())) for name in names]))
