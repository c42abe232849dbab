"""Class folders: one folder for each class, image files directly in it; below `NAME/train` and `NAME/test`.

A data set without a split of its own lies in `NAME/all/CLASS` and is split when it is prepared.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from softmax_temperature.data.image_files import ENDINGS, is_image_name
from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.runner.artifacts import digest_of_file, digest_of_text
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

TRAIN, TEST, ALL = "train", "test", "all"

_READERS = 8  # Threads that wait for the disk.
_LAYOUT = "Each class needs a folder of its own with image files directly in it, in train as in test."


@dataclass(frozen=True)
class ClassFolders:
    """One folder `NAME` below data.root, divided into train and test, or holding `all`."""

    root: Path
    name: str

    @property
    def path(self) -> Path:
        """The data set's folder."""
        return self.root / self.name

    def digest(self) -> str:
        """One sha256 over the names and contents of all image files, wherever the folder stands."""
        files = [file for part in self._parts() for own in self._files(part).values() for file in own]
        with ThreadPoolExecutor(_READERS) as pool:
            digests = pool.map(digest_of_file, [self.root / file for file in files])
            return digest_of_text("".join(f"{sha}  {file}\n" for sha, file in zip(digests, files, strict=True)))

    def read(self) -> RawDataset:
        """List the files; they are read when the data set is prepared.

        Raises:
            InputError: a class is empty, a test class is unknown to train, there are fewer than two classes, or a
                link leads out of the data set's folder.
        """
        found = {part: self._files(part) for part in self._parts()}
        first, *others = found
        names = tuple(found[first])
        if len(names) < 2:
            refuse(self.path / first, f"has {len(names)} class folders", remedy=_LAYOUT)
        if unknown := [name for part in others for name in found[part] if name not in found[first]]:
            refuse(self.path / TEST / unknown[0], "a class that train does not have", remedy=_LAYOUT)
        parts = [part_of(names, files) for files in found.values()]
        source = {"how": "class folders in data.root", "folder": self.name}
        return RawDataset(self.name, names, parts[0], parts[1] if others else None, source)

    def _parts(self) -> tuple[str, ...]:
        present = [part for part in (TRAIN, TEST, ALL) if (self.path / part).is_dir()]
        if present not in ([TRAIN, TEST], [ALL]):
            remedy = f"Make {TRAIN} and {TEST}, or {ALL} for a data set that is to be split."
            refuse(self.path, f"holds only {' and '.join(present)}" if present else "holds no parts", remedy=remedy)
        return tuple(present)

    def _files(self, part: str) -> dict[str, list[str]]:
        return class_files(self.root, f"{self.name}/{part}", boundary=self.path)


def has_class_folders(root: Path, name: str) -> bool:
    """Whether `NAME` below a folder has at least one of the parts that class folders lie in."""
    return any((root / name / part).is_dir() for part in (TRAIN, TEST, ALL))


def class_files(
    root: Path, folder: str, *, boundary: Path, leave_out: Collection[str] = frozenset()
) -> dict[str, list[str]]:
    """The image files of each class folder, as paths below `root`; classes and files sorted.

    Hidden entries, files without an image's ending and folders within a class are passed over.

    Args:
        root: what paths are relative to.
        folder: a path below root that holds the class folders.
        boundary: no link may lead out of this folder (which may itself be a link).
        leave_out: folders that are no classes.

    Raises:
        InputError: a class has no image, a link leads outside, or a file has a name that cannot be listed.
    """
    names = class_names(root / folder, boundary=boundary, leave_out=leave_out)
    return {name: images_of_class(root, f"{folder}/{name}", boundary=boundary) for name in names}


def class_names(folder: Path, *, boundary: Path, leave_out: Collection[str] = frozenset()) -> list[str]:
    """The names of the class folders in a folder, sorted; hidden ones are passed over.

    Args:
        folder: what holds them.
        boundary: no link may lead out of this folder (which may itself be a link).
        leave_out: folders that are no classes.

    Raises:
        InputError: a link leads outside, or the folder cannot be listed.
    """
    _check_inside(folder, boundary)
    return [entry.name for entry in _entries(folder, boundary) if entry.is_dir() and entry.name not in leave_out]


def images_of_class(root: Path, folder: str, *, boundary: Path) -> list[str]:
    """The image files of one class, as paths below `root`, sorted; arguments and errors as of `class_files`."""
    images = [file.name for file in _entries(root / folder, boundary) if is_image_name(file.name)]
    files = [_listable(root, f"{folder}/{name}") for name in images]
    if not files:
        refuse(root / folder, f"no image files (endings: {' '.join(sorted(ENDINGS))})", remedy=_LAYOUT)
    return files


def part_of(names: Sequence[str], files: Mapping[str, Sequence[str]]) -> RawPart:
    """A part of the given classes, class by class; a class may be absent."""
    counts = [len(files.get(name, ())) for name in names]
    paths = tuple(file for name in names for file in files.get(name, ()))
    return RawPart(paths, np.repeat(np.arange(len(names)), counts))


def refuse(path: Path, what: str, *, remedy: str) -> NoReturn:
    """Say what is wrong with a folder or file of a data set."""
    raise InputError(what, where=str(path), remedy=remedy)


def _entries(folder: Path, boundary: Path) -> list[os.DirEntry[str]]:
    """Visible entries in the order of their names, none of them leading outside."""
    try:
        with os.scandir(folder) as entries:
            visible = [entry for entry in entries if not entry.name.startswith(".")]
    except OSError as error:
        refuse(folder, f"cannot be listed ({error.strerror})", remedy="Make it readable.")
    for entry in visible:
        if entry.is_symlink():
            _check_inside(Path(entry.path), boundary)
    return sorted(visible, key=lambda entry: entry.name)


def _check_inside(path: Path, boundary: Path) -> None:
    target = path.resolve()
    if not target.is_relative_to(boundary.resolve()):
        refuse(path, f"a link that leads out of {boundary}", remedy="Put the files themselves there.")
    if not target.exists():
        refuse(path, "a link to nothing", remedy="Put the file itself there.")


def _listable(root: Path, path: str) -> str:
    """The path, unless a list of lines in UTF-8 could not hold it."""
    text = path.encode("utf-8", "replace").decode()
    if text != path or any(character in path for character in "\n\r\\"):
        what = "a file name with a line break, a backslash or broken text"
        refuse(root / Path(text).parent, f"{what} ({path!a})", remedy="Rename it.")
    return path
