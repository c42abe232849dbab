"""Where data come from: built in, an archive in data.root, or torchvision; otherwise
one error says what to do.

Of what torchvision knows, small images come as arrays. Sets of larger images stay the
files that torchvision unpacked; their number is compared with the published one,
because torchvision takes any such folder for a complete one.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.data.archives import JsonlArchive, NpzArchive
from softmax_temperature.data.catalogue import BY_HAND, CATALOGUE
from softmax_temperature.data.glyphs import IS_GLYPHS, read_glyphs
from softmax_temperature.data.image_files import (
    ClassFolders,
    class_files,
    has_class_folders,
    part_of,
)
from softmax_temperature.data.phrases import PHRASES, read_phrases
from softmax_temperature.data.splits import RawDataset, RawPart
from softmax_temperature.runner.errors import InputError, nearest

DIGITS = "digits"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
Files = dict[str, list[str]]  # Class name to image files, as paths below data.root.
_EXAMPLES = ("glyphs-10", "glyphs-100", "glyphs-1000", "glyphs-pretrain-100")


def is_built_in(name: str) -> bool:
    """Whether a data set needs nothing in data.root; nothing there can change what it
    is, either.
    """
    return name in {DIGITS, PHRASES} or IS_GLYPHS.fullmatch(name) is not None


def find_archive(
    name: str, *, root: Path
) -> NpzArchive | JsonlArchive | ClassFolders | None:
    """The user's archive: `NAME.npz`, or `NAME.jsonl`, or class folders below `NAME`,
    in this order.
    """
    if is_built_in(name) or not _NAME.fullmatch(name):
        return None
    for kind, path in (
        (NpzArchive, root / f"{name}.npz"),
        (JsonlArchive, root / f"{name}.jsonl"),
    ):
        if path.is_file():
            return kind(path)
    return ClassFolders(root, name) if has_class_folders(root, name) else None


def check_known(name: str, *, root: Path) -> None:
    """Refuse, with the nearest valid name, one that is neither built in, in the
    catalogue, nor in data.root.
    """
    in_root = find_archive(name, root=root) or (
        _NAME.fullmatch(name) and (root / name).is_dir()
    )
    if is_built_in(name) or name in CATALOGUE or name in BY_HAND or in_root:
        return
    archives = [
        path.stem for ending in ("npz", "jsonl") for path in root.glob(f"*.{ending}")
    ]
    valid = {*CATALOGUE, *_EXAMPLES, *archives}
    raise InputError(
        f"unknown data set {name!r}",
        where="datasets",
        remedy=nearest(name.lower(), valid),
    )


def find_dataset(name: str, *, root: Path, download: bool, seed: int) -> RawDataset:
    """Find a data set in `root` (data.root), or let torchvision download it; `seed`
    draws glyphs and phrases.
    """
    check_known(name, root=root)
    if name == DIGITS:
        return _read_digits()
    if IS_GLYPHS.fullmatch(name):
        return read_glyphs(name, seed=seed)
    if name == PHRASES:
        return read_phrases(seed=seed)
    if archive := find_archive(name, root=root):
        return archive.read()
    if name in {*_ARRAYS, *_FILES} and (
        found := find_torchvision_set(name, root=root, download=download)
    ):
        return found
    raise _missing(name, root)


def _read_digits() -> RawDataset:
    """The 1,797 real images of 8 x 8 grey pixels that scikit-learn ships: one part of
    the original, undivided.
    """
    from sklearn.datasets import (
        load_digits,
    )  # It imports scipy.stats and pandas: a second.

    images, labels = load_digits(return_X_y=True)
    levels = images.reshape(-1, 8, 8, 1).astype(
        np.int64
    )  # From 0 to 16: the dark points of a 4 x 4 block.
    part = RawPart(((levels * 255 + 8) // 16).astype(np.uint8), labels.astype(np.int64))
    return RawDataset(
        DIGITS, tuple("0123456789"), part, None, {"how": "shipped with scikit-learn"}
    )


def _missing(name: str, root: Path) -> InputError:
    entry, folder = CATALOGUE.get(name), root / name
    expected = f"{folder}.npz (x_train, y_train, x_test, y_test), or class folders {folder}/train/CLASS/ and "
    expected += f"{folder}/test/CLASS/, or {folder}/all/CLASS/ to be split"
    if entry and entry.keys:
        expected = f"{folder}.jsonl (one JSON object per line: {entry.keys})"
    remedy = "Put one of them there; `make data` lists what a profile needs."
    if name in BY_HAND:
        remedy = BY_HAND[name].format(folder=folder)
        remedy += (
            f" ({entry.classes:,} classes; licence: {entry.licence}.)" if entry else ""
        )
    elif name in {*_ARRAYS, *_FILES}:
        remedy = "Put one of them there, or set data.download: true to let torchvision download it."
    return InputError(
        f"not found in {root}, expected {expected}",
        where=f"data set {name}",
        remedy=remedy,
    )


def find_torchvision_set(name: str, *, root: Path, download: bool) -> RawDataset | None:
    """A data set that torchvision has unpacked below `root`; None when it is not there
    and may not be downloaded.
    """
    load = _load_arrays if name in _ARRAYS else _load_files
    try:
        return load(name, root, download=False)
    except (
        OSError,
        RuntimeError,
    ):  # What torchvision raises for files that are missing or have another MD5.
        if not download:
            return None
    try:
        return load(name, root, download=True)
    except (OSError, RuntimeError, ValueError) as error:
        remedy = f"Try again, or put {name}.npz into {root} by hand and set data.download: false."
        raise InputError(
            f"the download failed ({error})", where=f"data set {name}", remedy=remedy
        ) from error


def _library(kind: str) -> Any:
    from torchvision import datasets  # It imports torch's compiler: two seconds.

    return getattr(datasets, kind)


def _load_arrays(name: str, root: Path, *, download: bool) -> RawDataset:
    # CIFAR comes as pickles; torchvision opens them only when their MD5 is the one it
    # knows.
    kind, options = _ARRAYS[name]
    key, values = (
        ("split", ("train", "test")) if kind == "SVHN" else ("train", (True, False))
    )
    found = [
        _library(kind)(root, download=download, **options, **{key: value})
        for value in values
    ]
    names = [str(label) for label in getattr(found[0], "classes", range(10))]
    (images, labels), test = (_arrays(kind, part) for part in found)
    used = np.unique(labels)  # EMNIST Letters numbers its classes from 1.
    parts = (
        RawPart(images, np.searchsorted(used, labels)),
        RawPart(test[0], np.searchsorted(used, test[1])),
    )
    return RawDataset(
        name,
        tuple(names[label] for label in used),
        *parts,
        {"how": f"torchvision.datasets.{kind}"},
    )


def _arrays(kind: str, part: Any) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    images = np.asarray(part.data)
    if kind == "SVHN":
        return images.transpose(0, 2, 3, 1), np.asarray(part.labels, dtype=np.int64)
    if kind == "EMNIST":
        images = images.transpose(
            0, 2, 1
        )  # Its files hold every character mirrored at the diagonal.
    return images if images.ndim == 4 else images[..., None], np.asarray(
        part.targets, dtype=np.int64
    )


def _load_files(name: str, root: Path, *, download: bool) -> RawDataset:
    kind, images, list_parts = _FILES[name]
    if download:
        _library(kind)(root, download=True)
    train, test = list_parts(root)
    names = tuple(sorted(train))
    parts = part_of(names, train), part_of(names, test) if test else None
    found = sum(len(part.labels) for part in parts if part)
    if found != images:
        remedy = "Remove torchvision's folder and download it again."
        raise InputError(
            f"{found:,} images, {images:,} expected",
            where=f"data set {name} in {root}",
            remedy=remedy,
        )
    return RawDataset(name, names, *parts, {"how": f"torchvision.datasets.{kind}"})


def _textures(root: Path) -> tuple[Files, Files]:
    """Partition 1 of DTD: its train and validation parts together, and its test part."""
    lines = (root / "dtd/dtd/labels/test1.txt").read_text(encoding="utf-8").split()
    for_test = {f"dtd/dtd/images/{line}" for line in lines}
    listed = class_files(root, "dtd/dtd/images")
    train, test = (
        {
            name: [file for file in files if (file in for_test) == wanted]
            for name, files in listed.items()
        }
        for wanted in (False, True)
    )
    return train, test


def _omniglot(root: Path) -> tuple[Files, None]:
    """All 1,623 characters: of both halves, and of every alphabet."""
    halves = [
        root / "omniglot-py" / half
        for half in ("images_background", "images_evaluation")
    ]
    names = [
        f"{half.name}/{path.name}"
        for half in halves
        for path in sorted(half.iterdir())
        if path.is_dir()
    ]
    found = {name: class_files(root, f"omniglot-py/{name}") for name in names}
    return {
        f"{name}/{letter}": own
        for name, files in found.items()
        for letter, own in files.items()
    }, None


def _caltech(folder: str, leave_out: str) -> Callable[[Path], tuple[Files, None]]:
    return lambda root: (class_files(root, folder, leave_out=leave_out), None)


# The class in torchvision.datasets, and its options beside the part.
_ARRAYS: dict[str, tuple[str, dict[str, str]]] = {
    **{
        kind.lower(): (kind, {})
        for kind in ("MNIST", "KMNIST", "CIFAR10", "CIFAR100", "SVHN")
    },
    "fashion_mnist": ("FashionMNIST", {}),
    **{
        f"emnist_{kind}": ("EMNIST", {"split": kind})
        for kind in ("letters", "balanced", "digits", "byclass")
    },
}
# The class, the number of images, and what lists the train and test parts.
_FILES: dict[str, tuple[str, int, Callable[[Path], tuple[Files, Files | None]]]] = {
    "dtd": ("DTD", 5640, _textures),
    "caltech101": (
        "Caltech101",
        8677,
        _caltech("caltech101/101_ObjectCategories", "BACKGROUND_Google"),
    ),
    "caltech256": (
        "Caltech256",
        29780,
        _caltech("caltech256/256_ObjectCategories", "257.clutter"),
    ),
    "omniglot": ("Omniglot", 32460, _omniglot),
}
