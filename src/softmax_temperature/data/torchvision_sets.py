"""The data sets that torchvision knows: found where it keeps them below data.root, or downloaded by it.

Small images come as arrays. Sets of larger images stay the files that torchvision unpacked, listed from its folders;
their number is compared with the published one, because torchvision takes any such folder for a complete one.
"""

from __future__ import annotations

import tarfile
import zipfile
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from softmax_temperature.data.class_folders import class_files, part_of
from softmax_temperature.data.downloads import Expected, download
from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.data.torchvision_archives import archives_of, refuse_hostile_tar
from softmax_temperature.runner.errors import InputError, disk_faults

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

Files = dict[str, list[str]]
"""Class name to image files, as paths below data.root."""

_DAMAGED = (OSError, ValueError, TypeError, LookupError, AssertionError, EOFError, RuntimeError)
_FOLDER = "Remove the folder and download it again."
_ABSENT = "not found"  # What torchvision says of files that are not there, or have another MD5.
_NOT_DOWNLOADED = (*_DAMAGED, zipfile.BadZipFile, tarfile.TarError)


@dataclass(frozen=True)
class _ArraySet:
    """Small images: the class in torchvision.datasets, and what selects its train and its test part."""

    kind: str
    train: Mapping[str, Any]
    test: Mapping[str, Any]

    def find(self, name: str, root: Path) -> RawDataset | None:
        try:
            found = [_construct(self.kind, root, **selection) for selection in (self.train, self.test)]
            train, test = (_pixels_and_labels(self.kind, part) for part in found)
        except _DAMAGED as error:
            if isinstance(error, RuntimeError) and _ABSENT in str(error):
                return None
            _refuse(f"{name} in {root}", f"torchvision cannot read its files ({error})")
        names = [str(label) for label in getattr(found[0], "classes", range(10))]
        used = np.unique(train[1])  # EMNIST Letters numbers its classes from 1.
        if used[0] < 0 or used[-1] >= len(names) or not np.isin(test[1], used).all():
            _refuse(f"{name} in {root}", "the labels are not those of its classes")
        return RawDataset(
            name,
            class_names=tuple(names[label] for label in used),
            train=RawPart(train[0], np.searchsorted(used, train[1])),
            test=RawPart(test[0], np.searchsorted(used, test[1])),
            source=_source(self.kind),
        )

    def download(self, root: Path) -> None:
        for selection in (self.train, self.test):
            _construct(self.kind, root, download=True, **selection)


@dataclass(frozen=True)
class _FileSet:
    """Larger images.

    Attributes:
        kind: the class in torchvision.datasets.
        folder: what it unpacks.
        images: how many that should be.
        list_parts: lists those for training, and those for testing if it has such a part.
        unpack: whether it takes an archive that is there for an unpacked one, and leaves the unpacking to us.
    """

    kind: str
    folder: str
    images: int
    list_parts: Callable[[Path], tuple[Files, Files | None]]
    unpack: bool = False

    def find(self, name: str, root: Path) -> RawDataset | None:
        if not (root / self.folder).is_dir():
            return None
        try:
            train, test = self.list_parts(root)
        except _DAMAGED as error:
            _refuse(str(root / self.folder), f"is not complete ({error})", _FOLDER)
        found = sum(len(files) for part in (train, test or {}) for files in part.values())
        if not found:  # The folder holds archives, or parts of them.
            return None
        if found != self.images:
            _refuse(str(root / self.folder), f"{found:,} images, {self.images:,} expected", _FOLDER)
        names = tuple(sorted(train))
        test_part = None if test is None else part_of(names, test)
        return RawDataset(name, names, part_of(names, train), test_part, _source(self.kind))

    def download(self, root: Path) -> None:
        if self.unpack:
            from torchvision.datasets.utils import extract_archive

            for archive in archives_of(self.kind):
                extract_archive(root / archive.path)
        else:
            _construct(self.kind, root, download=True)


def is_torchvision_set(name: str) -> bool:
    """Whether torchvision knows a data set of this name."""
    return name in _SETS


def find_torchvision_set(name: str, *, root: Path, download: bool) -> RawDataset | None:
    """A data set that torchvision has unpacked below `root`, after downloading it if that is allowed.

    Args:
        name: one that `is_torchvision_set` knows.
        root: torchvision's root folder, data.root.
        download: whether the network may be used.

    Returns:
        None when it is not there, or damaged, and may not be downloaded.

    Raises:
        InputError: the download failed, which leaves what has arrived for the next time; or what is there is
            incomplete.
    """
    known = _SETS[name]
    found = known.find(name, root)
    if found is None and download:
        _download(known, name, root)
        found = known.find(name, root)
    return found


def _download(known: _ArraySet | _FileSet, name: str, root: Path) -> None:
    try:
        for archive in archives_of(known.kind):
            download(archive.addresses, root / archive.path, Expected("md5", archive.md5))
            refuse_hostile_tar(root / archive.path)
        with disk_faults(root):
            known.download(root)
    except _NOT_DOWNLOADED as error:
        remedy = f"Try again, or put {name}.npz into {root} by hand and set data.download: false."
        raise InputError(f"the download failed ({error})", where=f"data set {name}", remedy=remedy) from error


def _construct(kind: str, root: Path, **selection: Any) -> Any:
    # CIFAR comes as pickles; torchvision opens them only when their MD5 is the one it knows.
    from torchvision import datasets

    return getattr(datasets, kind)(root, **selection)


def _pixels_and_labels(kind: str, part: Any) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The arrays of one of torchvision's data sets: (n, height, width, channels) and (n,).

    Raises:
        ValueError: the images are not pixels, or not as many as the labels.
    """
    images = np.asarray(part.data)
    labels = np.asarray(part.labels if kind == "SVHN" else part.targets, dtype=np.int64)
    if kind == "SVHN":
        images = images.transpose(0, 2, 3, 1)
    if kind == "EMNIST":
        images = images.transpose(0, 2, 1)  # Its files hold every character mirrored at the diagonal.
    if images.dtype != np.uint8 or images.ndim not in (3, 4) or labels.shape != images.shape[:1] or not labels.size:
        raise ValueError(f"images are {images.dtype} of shape {images.shape}, labels of shape {labels.shape}")
    return images if images.ndim == 4 else images[..., None], labels


def _refuse(where: str, what: str, remedy: str = "Remove the files and download them again.") -> NoReturn:
    raise InputError(what, where=where, remedy=remedy)


def _source(kind: str) -> dict[str, Any]:
    return {"how": f"torchvision.datasets.{kind}"}


def _textures(root: Path) -> tuple[Files, Files]:
    """Partition 1 of DTD: its train and validation parts together, and its test part."""
    listed = class_files(root, "dtd/dtd/images", boundary=root / "dtd")
    lines = (root / "dtd/dtd/labels/test1.txt").read_text(encoding="utf-8").split()
    for_test = {f"dtd/dtd/images/{line}" for line in lines}
    train = {name: [file for file in files if file not in for_test] for name, files in listed.items()}
    test = {name: [file for file in files if file in for_test] for name, files in listed.items()}
    return train, test


def _undivided(root: Path, *, folder: str, leave_out: str) -> tuple[Files, None]:
    return class_files(root, folder, boundary=root / folder, leave_out={leave_out}), None


def _omniglot(root: Path) -> tuple[Files, None]:
    """All 1,623 characters: of both halves, and of every alphabet."""
    base = root / "omniglot-py"
    characters: Files = {}
    for alphabet in sorted(path for path in base.glob("images_*/*") if path.is_dir()):
        own = class_files(root, alphabet.relative_to(root).as_posix(), boundary=base)
        prefix = alphabet.relative_to(base).as_posix()
        characters |= {f"{prefix}/{character}": files for character, files in own.items()}
    return characters, None


def _split_by_flag(kind: str, **selection: Any) -> _ArraySet:
    return _ArraySet(kind, {"train": True, **selection}, {"train": False, **selection})


_SETS: Mapping[str, _ArraySet | _FileSet] = MappingProxyType(
    {
        "mnist": _split_by_flag("MNIST"),
        "fashion_mnist": _split_by_flag("FashionMNIST"),
        "kmnist": _split_by_flag("KMNIST"),
        "emnist_letters": _split_by_flag("EMNIST", split="letters"),
        "emnist_balanced": _split_by_flag("EMNIST", split="balanced"),
        "emnist_digits": _split_by_flag("EMNIST", split="digits"),
        "emnist_byclass": _split_by_flag("EMNIST", split="byclass"),
        "cifar10": _split_by_flag("CIFAR10"),
        "cifar100": _split_by_flag("CIFAR100"),
        "svhn": _ArraySet("SVHN", {"split": "train"}, {"split": "test"}),
        "dtd": _FileSet("DTD", "dtd/dtd/images", 5640, _textures),
        "caltech101": _FileSet(
            "Caltech101",
            "caltech101/101_ObjectCategories",
            8677,
            partial(_undivided, folder="caltech101/101_ObjectCategories", leave_out="BACKGROUND_Google"),
        ),
        "caltech256": _FileSet(
            "Caltech256",
            "caltech256/256_ObjectCategories",
            29780,
            partial(_undivided, folder="caltech256/256_ObjectCategories", leave_out="257.clutter"),
        ),
        "omniglot": _FileSet("Omniglot", "omniglot-py", 32460, _omniglot, unpack=True),
    }
)
