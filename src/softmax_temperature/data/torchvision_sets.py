"""The data sets that torchvision knows: found where it keeps them below data.root, or downloaded by it.

Small images come as arrays. Sets of larger images stay the files that torchvision unpacked, listed from its folders;
their number is compared with the published one, because torchvision takes any such folder for a complete one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from torchvision import datasets

from softmax_temperature.data.class_folders import class_files, part_of
from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.runner.errors import InputError

Files = dict[str, list[str]]
"""Class name to image files, as paths below data.root."""


class _ArraySet(NamedTuple):
    """Small images: the class in torchvision.datasets, and what selects its train and its test part."""

    kind: str
    train: dict[str, Any]
    test: dict[str, Any]

    def load(self, name: str, root: Path, *, download: bool) -> RawDataset:
        # CIFAR comes as pickles; torchvision opens them only when their MD5 is the one it knows.
        make = getattr(datasets, self.kind)
        found = [make(root, download=download, **selection) for selection in (self.train, self.test)]
        (train_images, train_labels), (test_images, test_labels) = (_arrays(self.kind, part) for part in found)
        names = [str(label) for label in getattr(found[0], "classes", range(10))]
        used = np.unique(train_labels)  # EMNIST Letters numbers its classes from 1.
        return RawDataset(
            name,
            class_names=tuple(names[label] for label in used),
            train=RawPart(train_images, np.searchsorted(used, train_labels)),
            test=RawPart(test_images, np.searchsorted(used, test_labels)),
            source={"how": f"torchvision.datasets.{self.kind}"},
        )


class _FileSet(NamedTuple):
    """Larger images: the class in torchvision.datasets, how many images, and what lists the train and test parts."""

    kind: str
    images: int
    list_parts: Callable[[Path], tuple[Files, Files | None]]

    def load(self, name: str, root: Path, *, download: bool) -> RawDataset:
        if download:
            getattr(datasets, self.kind)(root, download=True)
        train, test = self.list_parts(root)
        found = sum(len(files) for part in (train, test or {}) for files in part.values())
        if found != self.images:
            what = f"{found:,} images, {self.images:,} expected"
            remedy = "Remove torchvision's folder and download it again."
            raise InputError(what, where=f"data set {name} in {root}", remedy=remedy)
        names = tuple(sorted(train))
        test_part = None if test is None else part_of(names, test)
        return RawDataset(
            name, names, part_of(names, train), test_part, source={"how": f"torchvision.datasets.{self.kind}"}
        )


def is_torchvision_set(name: str) -> bool:
    """Whether torchvision knows a data set of this name."""
    return name in _SETS


def find_torchvision_set(name: str, *, root: Path, download: bool) -> RawDataset | None:
    """A data set that torchvision has unpacked below `root`, after downloading it if that is allowed.

    Returns:
        None when it is not there and may not be downloaded.

    Raises:
        InputError: the download failed, or what is there is incomplete.
    """
    try:
        return _SETS[name].load(name, root, download=False)
    except (OSError, RuntimeError):  # What torchvision raises for files that are missing or have another MD5.
        if not download:
            return None
    try:
        return _SETS[name].load(name, root, download=True)
    except (OSError, RuntimeError, ValueError) as error:
        remedy = f"Try again, or put {name}.npz into {root} by hand and set data.download: false."
        raise InputError(f"the download failed ({error})", where=f"data set {name}", remedy=remedy) from error


def _arrays(kind: str, part: Any) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Images (n, height, width, channels) and labels (n,) of one of torchvision's data sets."""
    images = np.asarray(part.data)
    if kind == "SVHN":
        return images.transpose(0, 2, 3, 1), np.asarray(part.labels, dtype=np.int64)
    if kind == "EMNIST":
        images = images.transpose(0, 2, 1)  # Its files hold every character mirrored at the diagonal.
    return images if images.ndim == 4 else images[..., None], np.asarray(part.targets, dtype=np.int64)


def _textures(root: Path) -> tuple[Files, Files]:
    """Partition 1 of DTD: its train and validation parts together, and its test part."""
    listed = class_files(root, "dtd/dtd/images")
    lines = (root / "dtd/dtd/labels/test1.txt").read_text(encoding="utf-8").split()
    for_test = {f"dtd/dtd/images/{line}" for line in lines}
    train = {name: [file for file in files if file not in for_test] for name, files in listed.items()}
    test = {name: [file for file in files if file in for_test] for name, files in listed.items()}
    return train, test


def _undivided(root: Path, *, folder: str, leave_out: str) -> tuple[Files, None]:
    return class_files(root, folder, leave_out={leave_out}), None


def _omniglot(root: Path) -> tuple[Files, None]:
    """All 1,623 characters: of both halves, and of every alphabet."""
    characters: Files = {}
    for half in ("images_background", "images_evaluation"):
        for alphabet in sorted((root / "omniglot-py" / half).iterdir()):
            files = class_files(root, f"omniglot-py/{half}/{alphabet.name}") if alphabet.is_dir() else {}
            characters |= {f"{half}/{alphabet.name}/{name}": own for name, own in files.items()}
    return characters, None


def _split_by_flag(kind: str, **selection: Any) -> _ArraySet:
    return _ArraySet(kind, {"train": True, **selection}, {"train": False, **selection})


def _caltech(kind: str, folder: str, images: int, leave_out: str) -> _FileSet:
    return _FileSet(kind, images, partial(_undivided, folder=folder, leave_out=leave_out))


_SETS: dict[str, _ArraySet | _FileSet] = {
    "mnist": _split_by_flag("MNIST"),
    "fashion_mnist": _split_by_flag("FashionMNIST"),
    "kmnist": _split_by_flag("KMNIST"),
    **{f"emnist_{kind}": _split_by_flag("EMNIST", split=kind) for kind in ("letters", "balanced", "digits", "byclass")},
    "cifar10": _split_by_flag("CIFAR10"),
    "cifar100": _split_by_flag("CIFAR100"),
    "svhn": _ArraySet("SVHN", {"split": "train"}, {"split": "test"}),
    "dtd": _FileSet("DTD", 5640, _textures),
    "caltech101": _caltech("Caltech101", "caltech101/101_ObjectCategories", 8677, "BACKGROUND_Google"),
    "caltech256": _caltech("Caltech256", "caltech256/256_ObjectCategories", 29780, "257.clutter"),
    "omniglot": _FileSet("Omniglot", 32460, _omniglot),
}
