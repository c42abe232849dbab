"""Sources of data sets: built in, an archive in data.root, or torchvision.

If a data set has none of these sources, the error says which file to put where.
"""

import re
from difflib import get_close_matches
from pathlib import Path

import numpy as np

from softmax_temperature.data.archives import JsonlArchive, NpzArchive
from softmax_temperature.data.catalogue import BY_HAND, CATALOGUE
from softmax_temperature.data.class_folders import ClassFolders, has_class_folders
from softmax_temperature.data.glyphs import IS_GLYPHS, read_glyphs
from softmax_temperature.data.phrases import PHRASES, read_phrases
from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.data.torchvision_sets import (
    find_torchvision_set,
    has_files,
    torchvision_digest,
    torchvision_names,
)
from softmax_temperature.runner.errors import (
    InputError,
    MissingInput,
    NotDownloadedError,
)

DIGITS = "digits"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_SPELT_ALIKE = 0.8
_EXAMPLES = ("glyphs-10", "glyphs-100", "glyphs-1000", "glyphs-pretrain-100")


def is_built_in(name: str) -> bool:
    """Whether a data set is built in, which means that data.root is not used."""
    return name in {DIGITS, PHRASES} or IS_GLYPHS.fullmatch(name) is not None


def find_archive(
    name: str, *, root: Path
) -> NpzArchive | JsonlArchive | ClassFolders | None:
    """Find the user's archive in `root`: `NAME.npz`, `NAME.jsonl` or class folders.

    The result is the first of the three that exists. It is None if there is no archive,
    or if the data set is built in.
    """
    if is_built_in(name) or not _NAME.fullmatch(name):
        return None
    arrays = root / f"{name}.npz"
    if arrays.is_file():
        return NpzArchive(arrays)
    texts = root / f"{name}.jsonl"
    if texts.is_file():
        return JsonlArchive(texts)
    if has_class_folders(root, name):
        return ClassFolders(root, name)
    return None


def source_digest(name: str, *, root: Path) -> str | None:
    """Compute one sha256 over the files in `root` that a data set is read from.

    Returns None if the data set is built in or missing.

    Raises:
        InputError: If class folders have a wrong form, or a file cannot be read.
    """
    archive = find_archive(name, root=root)
    if archive:
        return archive.digest()
    if name in torchvision_names():
        return torchvision_digest(name, root=root)
    return None


def require_dataset(name: str, *, root: Path) -> None:
    """Raise MissingInput unless a data set exists.

    The error is a NotDownloadedError if torchvision can download the data set. The
    function looks for files but does not read them.

    Raises:
        InputError: If `name` is not a valid name of a data set.
    """
    if is_built_in(name) or find_archive(name, root=root):
        return
    if name in torchvision_names() and has_files(name, root=root):
        return
    raise missing_dataset(name, root)


def find_dataset(name: str, *, root: Path, download: bool, seed: int) -> RawDataset:
    """Read a data set, which torchvision first downloads if necessary and permitted.

    Args:
        name: The name of the data set.
        root: The folder with the user's data (the parameter `data.root`).
        download: Whether torchvision may download missing files.
        seed: The seed of glyphs and phrases.

    Raises:
        MissingInput: If the data set is neither built in nor in `root`, and was not
            downloaded.
        InputError: If the data set is damaged, its download fails, or `name` is not a
            valid name of a data set.
    """
    if name == DIGITS:
        return _read_digits()
    if IS_GLYPHS.fullmatch(name):
        return read_glyphs(name, seed=seed)
    if name == PHRASES:
        return read_phrases(seed=seed)
    if archive := find_archive(name, root=root):
        return archive.read()
    if name in torchvision_names():
        dataset = find_torchvision_set(name, root=root, download=download)
        if dataset is not None:
            return dataset
    raise missing_dataset(name, root)


def _read_digits() -> RawDataset:
    """Read scikit-learn's 1,797 handwritten digits of 8×8 grey pixels, undivided."""
    # Imported here because the import also loads scipy.stats and pandas, which takes a
    # second.
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    # A pixel's value is the number of dark points in a 4×4 block, from 0 to 16.
    levels = images.reshape(-1, 8, 8, 1).astype(np.int64)
    pixels = ((levels * 255 + 8) // 16).astype(np.uint8)
    return RawDataset(
        DIGITS,
        tuple("0123456789"),
        train=RawPart(pixels, labels.astype(np.int64)),
        test=None,
        source={"how": "shipped with scikit-learn"},
    )


def missing_dataset(name: str, root: Path) -> InputError:
    """Make the error for a missing data set, or for a name that no data set can have.

    If a data set is missing, the error names the files to provide.
    """
    if not _NAME.fullmatch(name):
        return InputError(
            f"{name!r} is not a valid name of a data set",
            where="datasets",
            remedy="Use letters, digits, - and _.",
        )
    what = f"not found in {root}, expected {_expected_files(name, root)}"
    for path in (root / f"{name}.npz", root / f"{name}.jsonl", root / name):
        if path.is_symlink() and not path.exists():
            what = f"{path} is a link to a file or folder that does not exist"
    downloadable = name in torchvision_names() and name not in BY_HAND
    kind = NotDownloadedError if downloadable else MissingInput
    return kind(what, where=f"data set {name}", remedy=_remedy_for_missing(name, root))


def _expected_files(name: str, root: Path) -> str:
    folder = root / name
    arrays = (
        f"{folder}.npz (x_train, y_train, x_test, y_test), or class folders "
        f"{folder}/train/CLASS/ and {folder}/test/CLASS/, or {folder}/all/CLASS/ to be "
        "split"
    )
    entry = CATALOGUE.get(name)
    if entry is None and name not in BY_HAND:
        return f"{arrays}, or texts in {folder}.jsonl"
    if entry and entry.keys:
        return f"{folder}.jsonl (one JSON object per line: {entry.keys})"
    return arrays


def _remedy_for_missing(name: str, root: Path) -> str:
    entry = CATALOGUE.get(name)
    if name in BY_HAND:
        remedy = BY_HAND[name].format(folder=root / name)
        if entry is None:
            return remedy
        return f"{remedy} ({entry.classes:,} classes; licence: {entry.licence}.)"
    if name in torchvision_names():
        return (
            "Put one of them there, or set data.download: true to let torchvision "
            "download it."
        )
    if entry is None:
        known = [*CATALOGUE, DIGITS, PHRASES, *_EXAMPLES]
        close = get_close_matches(name.lower(), known, n=1, cutoff=_SPELT_ALIKE)
        # Do not suggest a known name that `name` extends, because `name` is then
        # probably the user's own data set.
        if close and not name.startswith(close[0]):
            return f"Put one of them there, or write {close[0]!r}."
    return "Put one of them there; `make data` lists what a profile needs."
