"""Data sets that torchvision can download.

Small images are read as arrays. Larger images stay in torchvision's unpacked files. The
number of these files is compared with the published number of images, because
torchvision accepts incomplete folders.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.data.class_folders import Files, class_files, part_of
from softmax_temperature.data.image_files import digest_of_files
from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.runner.errors import InputError


@dataclass(frozen=True)
class _Arrays:
    """A data set of small images.

    Attributes:
        kind: The class in torchvision.datasets.
        files: Pattern of the files below data.root that torchvision reads.
        options: Arguments of the class, except the argument for the part.
        part_argument: Name of the argument for the part.
        parts: The values of that argument for the train and the test part.
    """

    kind: str
    files: str
    options: dict[str, str] = field(default_factory=dict)
    part_argument: str = "train"
    parts: tuple[Any, Any] = (True, False)


class _Listing(NamedTuple):
    """The training and test files by class; if `test` is None, `train` is divided."""

    train: Files
    test: Files | None


@dataclass(frozen=True)
class _Files:
    """A data set of image files.

    Attributes:
        kind: The class in torchvision.datasets.
        folder: The folder below data.root that torchvision unpacks into.
        images: The published number of images.
        list_files: Lists the files below data.root.
    """

    kind: str
    folder: str
    images: int
    list_files: Callable[[Path], _Listing]


def torchvision_names() -> frozenset[str]:
    """Return the names of the data sets that this module can get from torchvision."""
    return frozenset({*_ARRAYS, *_FILES})


def find_torchvision_set(name: str, *, root: Path, download: bool) -> RawDataset | None:
    """Read a data set that torchvision has unpacked below `root`, or download it.

    Returns:
        The data set; None if files are missing or damaged and `download` is false.

    Raises:
        InputError: If the download fails, or the number of image files is wrong.
    """
    try:
        return _load(name, root, download=False)
    except (OSError, RuntimeError):
        # The files are missing or have a different MD5: torchvision raises these errors
        # in both cases.
        if not download:
            return None
    began_with_nothing = not has_files(name, root=root)
    try:
        return _load(name, root, download=True)
    except (OSError, RuntimeError, ValueError) as error:
        if began_with_nothing:
            # Remove the downloaded files, because an incomplete data set would later
            # pass for a complete one.
            _remove_files(name, root)
        raise InputError(
            f"the download failed ({error})",
            where=f"data set {name}",
            remedy=(
                f"Try again, or put {name}.npz into {root} by hand and set "
                "data.download: false."
            ),
        ) from error


def _remove_files(name: str, root: Path) -> None:
    if name in _FILES:
        shutil.rmtree(root / _FILES[name].folder, ignore_errors=True)
        return
    for path in root.glob(_ARRAYS[name].files):
        path.unlink(missing_ok=True)


def has_files(name: str, *, root: Path) -> bool:
    """Whether a file of a data set, or the folder of its files, exists."""
    if name in _ARRAYS:
        return any(root.glob(_ARRAYS[name].files))
    return (root / _FILES[name].folder).is_dir()


def torchvision_digest(name: str, *, root: Path) -> str | None:
    """Compute one sha256 over the files of a data set.

    Returns None if no files exist, or if a folder or a list of image files is missing.

    Raises:
        InputError: If a file cannot be read.
    """
    try:
        files = _files_of(name, root)
    except OSError:
        return None
    return digest_of_files(root, files) if files else None


def _files_of(name: str, root: Path) -> list[str]:
    """List the files of a data set, as paths below data.root.

    Raises:
        OSError: If a folder or a list of image files is missing.
    """
    if name in _ARRAYS:
        paths = sorted(root.glob(_ARRAYS[name].files))
        return [path.relative_to(root).as_posix() for path in paths if path.is_file()]
    form = _FILES[name]
    if not (root / form.folder).is_dir():
        return []
    listing = form.list_files(root)
    parts = [listing.train, listing.test or {}]
    return [file for part in parts for files in part.values() for file in files]


def _load(name: str, root: Path, *, download: bool) -> RawDataset:
    if name in _ARRAYS:
        return _load_arrays(name, root, download=download)
    return _load_files(name, root, download=download)


def _library(kind: str) -> Any:
    # Imported here because the import also loads torch's compiler, which takes two
    # seconds.
    from torchvision import datasets

    return getattr(datasets, kind)


def _load_arrays(name: str, root: Path, *, download: bool) -> RawDataset:
    # CIFAR's files are pickles; they are safe here, because torchvision opens a pickle
    # only if it has the expected MD5.
    form = _ARRAYS[name]
    load = _library(form.kind)
    train, test = [
        load(root, download=download, **form.options, **{form.part_argument: part})
        for part in form.parts
    ]
    train_labels = _labels(form.kind, train)
    # Renumber the classes, because EMNIST Letters numbers them from 1.
    numbers = np.unique(train_labels)
    names = getattr(train, "classes", range(10))
    return RawDataset(
        name,
        tuple(str(names[number]) for number in numbers),
        train=RawPart(
            _images(form.kind, train), np.searchsorted(numbers, train_labels)
        ),
        test=RawPart(
            _images(form.kind, test),
            np.searchsorted(numbers, _labels(form.kind, test)),
        ),
        source={"how": f"torchvision.datasets.{form.kind}"},
    )


def _images(kind: str, part: Any) -> NDArray[np.uint8]:
    """Return the images of a part, (n, height, width, channels)."""
    images = np.asarray(part.data)
    if kind == "SVHN":  # (n, channels, height, width)
        return images.transpose(0, 2, 3, 1)
    if kind == "EMNIST":
        # Swap rows and columns, because EMNIST's files hold every character mirrored
        # about the diagonal.
        images = images.transpose(0, 2, 1)
    return images if images.ndim == 4 else images[..., None]


def _labels(kind: str, part: Any) -> NDArray[np.int64]:
    labels = part.labels if kind == "SVHN" else part.targets
    return np.asarray(labels, dtype=np.int64)


def _load_files(name: str, root: Path, *, download: bool) -> RawDataset:
    form = _FILES[name]
    if download:
        _library(form.kind)(root, download=True)
    if not (root / form.folder).is_dir():
        raise FileNotFoundError(root / form.folder)
    listing = form.list_files(root)
    names = tuple(sorted(listing.train))
    train = part_of(names, listing.train)
    test = part_of(names, listing.test) if listing.test else None
    images = len(train.labels)
    if test is not None:
        images += len(test.labels)
    if images != form.images:
        raise InputError(
            f"has {images:,} images, expected {form.images:,}",
            where=f"data set {name} in {root}",
            remedy="Remove torchvision's folder and download it again.",
        )
    source = {"how": f"torchvision.datasets.{form.kind}"}
    return RawDataset(name, names, train, test, source)


def _list_dtd(root: Path) -> _Listing:
    """List the files of DTD's partition 1, with train and validation parts joined."""
    lines = (root / "dtd/dtd/labels/test1.txt").read_text(encoding="utf-8").split()
    for_test = {f"dtd/dtd/images/{line}" for line in lines}
    train: Files = {}
    test: Files = {}
    for name, files in class_files(root, "dtd/dtd/images").items():
        train[name] = [file for file in files if file not in for_test]
        test[name] = [file for file in files if file in for_test]
    return _Listing(train, test)


def _list_omniglot(root: Path) -> _Listing:
    """List the files of all 1,623 characters of Omniglot, from both of its halves."""
    train: Files = {}
    for half in ("images_background", "images_evaluation"):
        folder = root / "omniglot-py" / half
        alphabets = sorted(path for path in folder.iterdir() if path.is_dir())
        for alphabet in alphabets:
            name = f"{half}/{alphabet.name}"
            letters = class_files(root, f"omniglot-py/{name}")
            train |= {f"{name}/{letter}": files for letter, files in letters.items()}
    return _Listing(train, None)


def _list_caltech101(root: Path) -> _Listing:
    folder = "caltech101/101_ObjectCategories"
    return _Listing(class_files(root, folder, leave_out="BACKGROUND_Google"), None)


def _list_caltech256(root: Path) -> _Listing:
    folder = "caltech256/256_ObjectCategories"
    return _Listing(class_files(root, folder, leave_out="257.clutter"), None)


def _emnist(split: str) -> _Arrays:
    return _Arrays("EMNIST", f"EMNIST/raw/emnist-{split}-*-ubyte", {"split": split})


_ARRAYS = {
    "mnist": _Arrays("MNIST", "MNIST/raw/*-ubyte"),
    "kmnist": _Arrays("KMNIST", "KMNIST/raw/*-ubyte"),
    "cifar10": _Arrays("CIFAR10", "cifar-10-batches-py/*"),
    "cifar100": _Arrays("CIFAR100", "cifar-100-python/*"),
    "svhn": _Arrays(
        "SVHN", "t*_32x32.mat", part_argument="split", parts=("train", "test")
    ),
    "fashion_mnist": _Arrays("FashionMNIST", "FashionMNIST/raw/*-ubyte"),
    "emnist_letters": _emnist("letters"),
    "emnist_balanced": _emnist("balanced"),
    "emnist_digits": _emnist("digits"),
    "emnist_byclass": _emnist("byclass"),
}
_FILES = {
    "dtd": _Files("DTD", "dtd/dtd", images=5640, list_files=_list_dtd),
    "caltech101": _Files(
        "Caltech101",
        "caltech101/101_ObjectCategories",
        images=8677,
        list_files=_list_caltech101,
    ),
    "caltech256": _Files(
        "Caltech256",
        "caltech256/256_ObjectCategories",
        images=29780,
        list_files=_list_caltech256,
    ),
    "omniglot": _Files(
        "Omniglot", "omniglot-py", images=32460, list_files=_list_omniglot
    ),
}
