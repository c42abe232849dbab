"""Where data come from: built in, an archive in data.root, or torchvision; otherwise one error says what to do."""

import re
from pathlib import Path

import numpy as np

from softmax_temperature.data.archives import JsonlArchive, NpzArchive
from softmax_temperature.data.catalogue import BY_HAND, CATALOGUE
from softmax_temperature.data.class_folders import ClassFolders, has_class_folders
from softmax_temperature.data.glyphs import is_glyphs, read_glyphs
from softmax_temperature.data.phrases import PHRASES, read_phrases
from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.data.torchvision_sets import find_torchvision_set, is_torchvision_set
from softmax_temperature.runner.errors import InputError, nearest

DIGITS = "digits"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_EXAMPLES = ("glyphs-10", "glyphs-100", "glyphs-1000", "glyphs-pretrain-100")


def is_built_in(name: str) -> bool:
    """Whether a data set needs nothing in data.root; nothing there can change what it is, either."""
    return name in {DIGITS, PHRASES} or is_glyphs(name)


def find_archive(name: str, *, root: Path) -> NpzArchive | JsonlArchive | ClassFolders | None:
    """The user's archive: `NAME.npz`, or `NAME.jsonl`, or class folders below `NAME`, in this order."""
    if is_built_in(name) or not _NAME.fullmatch(name):
        return None
    for kind, path in ((NpzArchive, root / f"{name}.npz"), (JsonlArchive, root / f"{name}.jsonl")):
        if path.is_file():
            return kind(path)
    return ClassFolders(root, name) if has_class_folders(root, name) else None


def check_known(name: str, *, root: Path) -> None:
    """Refuse, with the nearest valid name, one that is neither built in, in the catalogue, nor in data.root."""
    in_root = find_archive(name, root=root) or (_NAME.fullmatch(name) and (root / name).is_dir())
    if is_built_in(name) or name in CATALOGUE or name in BY_HAND or in_root:
        return
    archives = [path.stem for ending in ("npz", "jsonl") for path in root.glob(f"*.{ending}")]
    valid = {*CATALOGUE, *_EXAMPLES, *archives}
    raise InputError(f"unknown data set {name!r}", where="datasets", remedy=nearest(name.lower(), valid))


def find_dataset(name: str, *, root: Path, download: bool, seed: int) -> RawDataset:
    """Find a data set in `root` (data.root), or let torchvision download it; `seed` draws glyphs and phrases.

    An unknown name, missing data, and data that are not of the right form raise InputError.
    """
    check_known(name, root=root)
    if name == DIGITS:
        return _read_digits()
    if is_glyphs(name):
        return read_glyphs(name, seed=seed)
    if name == PHRASES:
        return read_phrases(seed=seed)
    if archive := find_archive(name, root=root):
        return archive.read()
    if is_torchvision_set(name) and (found := find_torchvision_set(name, root=root, download=download)):
        return found
    raise _missing(name, root)


def _read_digits() -> RawDataset:
    """The 1,797 real images of 8 x 8 grey pixels that scikit-learn ships: one part of the original, undivided."""
    from sklearn.datasets import load_digits  # It imports scipy.stats and pandas: a second.

    images, labels = load_digits(return_X_y=True)
    levels = images.reshape(-1, 8, 8, 1).astype(np.int64)  # From 0 to 16: the dark points of a 4 x 4 block.
    part = RawPart(((levels * 255 + 8) // 16).astype(np.uint8), labels.astype(np.int64))
    return RawDataset(DIGITS, tuple("0123456789"), part, None, {"how": "shipped with scikit-learn"})


def _missing(name: str, root: Path) -> InputError:
    entry, folder = CATALOGUE.get(name), root / name
    if entry and entry.keys:
        expected = f"{folder}.jsonl (one JSON object per line: {entry.keys})"
    else:
        expected = f"{folder}.npz (x_train, y_train, x_test, y_test), or class folders {folder}/train/CLASS/ and "
        expected += f"{folder}/test/CLASS/, or {folder}/all/CLASS/ to be split"
    remedy = "Put one of them there; `make data` lists what a profile needs."
    if name in BY_HAND:
        remedy = BY_HAND[name].format(folder=folder)
        remedy += f" ({entry.classes:,} classes; licence: {entry.licence}.)" if entry else ""
    elif is_torchvision_set(name):
        remedy = "Put one of them there, or set data.download: true to let torchvision download it."
    return InputError(f"not found in {root}, expected {expected}", where=f"data set {name}", remedy=remedy)
