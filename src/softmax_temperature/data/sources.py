"""Where data come from: built in, an archive in data.root, or torchvision; otherwise one error says what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from softmax_temperature.data.catalogue import CATALOGUE
from softmax_temperature.data.class_folders import ClassFolders, has_class_folders
from softmax_temperature.data.digits import DIGITS, read_digits
from softmax_temperature.data.glyphs import is_glyphs, read_glyphs
from softmax_temperature.data.jsonl_texts import JsonlTexts
from softmax_temperature.data.jsonl_trees import JsonlTrees, holds_trees
from softmax_temperature.data.npz_archives import NpzArchive
from softmax_temperature.data.phrases import PHRASES, read_phrases
from softmax_temperature.data.torchvision_sets import find_torchvision_set, is_torchvision_set
from softmax_temperature.runner.errors import InputError, nearest

if TYPE_CHECKING:
    from pathlib import Path

    from softmax_temperature.data.raw import RawDataset
    from softmax_temperature.data.raw_texts import RawTextSet

Archive = NpzArchive | ClassFolders | JsonlTexts | JsonlTrees

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_EXAMPLES = ("glyphs-10", "glyphs-100", "glyphs-1000", "glyphs-pretrain-100")


def find_archive(name: str, *, root: Path) -> Archive | None:
    """The user's archive of a data set: `NAME.npz`, or `NAME.jsonl`, or class folders below `NAME`, in this order.

    Built-in data sets have none: nothing in data.root can change what they are.
    """
    if _is_built_in(name) or not _NAME.fullmatch(name):
        return None
    if (root / f"{name}.npz").is_file():
        return NpzArchive(root, name)
    if (lines := root / f"{name}.jsonl").is_file():
        return JsonlTrees(root, name) if holds_trees(lines) else JsonlTexts(root, name)
    return ClassFolders(root, name) if has_class_folders(root, name) else None


def check_known(name: str, *, root: Path) -> None:
    """Refuse a name that is neither built in, nor in the catalogue, nor an archive in data.root.

    Raises:
        InputError: with the nearest valid name.
    """
    if _is_built_in(name) or name in CATALOGUE or find_archive(name, root=root):
        return
    if _NAME.fullmatch(name) and (root / name).is_dir():
        remedy = "Put class folders into train/ and test/ below it, or into all/ to be split."
        raise InputError("holds neither train and test, nor all", where=str(root / name), remedy=remedy)
    archives = [path.stem for ending in ("npz", "jsonl") for path in root.glob(f"*.{ending}")]
    valid = {*CATALOGUE, *_EXAMPLES, *archives}
    raise InputError(f"unknown data set {name!r}", where="datasets", remedy=nearest(name.lower(), valid))


def find_dataset(name: str, *, root: Path, download: bool, seed: int) -> RawDataset | RawTextSet:
    """Find a data set and check its form.

    Args:
        name: of the catalogue, "glyphs-N", or an archive's.
        root: the folder of the raw data (data.root).
        download: whether torchvision may use the network (data.download).
        seed: draws glyphs and phrases; nothing else depends on it here.

    Raises:
        InputError: the name is unknown, the data are not there, or they are not of the right form.
    """
    check_known(name, root=root)
    if name == DIGITS:
        return read_digits()
    if is_glyphs(name):
        return read_glyphs(name, seed=seed)
    if name == PHRASES:
        return read_phrases(seed=seed)
    if archive := find_archive(name, root=root):
        return archive.read()
    if is_torchvision_set(name) and (found := find_torchvision_set(name, root=root, download=download)):
        return found
    raise _missing(name, root)


def _is_built_in(name: str) -> bool:
    return name in {DIGITS, PHRASES} or is_glyphs(name)


def _missing(name: str, root: Path) -> InputError:
    entry, folder = CATALOGUE[name], root / name
    if entry.texts:
        expected = f"{folder}.jsonl (one JSON object a line: {'split, tree' if entry.trees else 'split, label, text'})"
    else:
        expected = f"{folder}.npz (x_train, y_train, x_test, y_test), or class folders {folder}/train/CLASS/ and "
        expected += f"{folder}/test/CLASS/, or {folder}/all/CLASS/ to be split"
    if entry.by_hand:
        remedy = f"{entry.by_hand.format(folder=folder)} ({entry.classes:,} classes; licence: {entry.licence}.)"
    else:
        remedy = "Put one of them there, or set data.download: true to let torchvision download it."
    return InputError(f"not found in {root}, expected {expected}", where=f"data set {name}", remedy=remedy)
