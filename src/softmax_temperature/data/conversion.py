"""Conversion of published archives into the file formats that we read in data.root.

Archives are read as streams; only the needed files are unpacked. The only pickles that
are loaded are those of ImageNet at 64 × 64 pixels, and they may hold only numbers,
texts and arrays.
"""

import json
import pickle
import shutil
import tarfile
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path, PurePosixPath
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray
from PIL import Image

from softmax_temperature.runner.artifacts import atomic_file, atomic_folder
from softmax_temperature.runner.errors import InputError, disk_faults, nearest

SIDE = 64
"""Height and width of the images of downsampled ImageNet, in pixels."""
_CLASSES = {"neg": 0, "pos": 1}
_PARTS = {"training": "train", "validation": "test"}
_NOISE = ("gaussian_noise.npy", "labels.npy")
# Every fifth file of a group is a test file; the focal paper has 3,999 test files among
# 19,997.
_TEST_EVERY = 5
# The functions that the pickle of an array may call, in NumPy 1 and 2.
_ARRAY_PARTS = {
    ("numpy", "dtype"),
    ("numpy", "ndarray"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
    ("numpy.core.numeric", "_frombuffer"),
    ("numpy._core.numeric", "_frombuffer"),
    ("_codecs", "encode"),
}


class Member(NamedTuple):
    """A file in an archive: its folders, its name and its content."""

    folders: tuple[str, ...]
    name: str
    read: Callable[[], IO[bytes]]


class Conversion(NamedTuple):
    """The conversion of published archives into a data set.

    Attributes:
        write: Writes the data set, given the files of the archives and the target's
            path without its ending; returns the number of samples of each part (for
            CIFAR-10-C, the number of files of each name).
        archives: The published names of the archives.
    """

    write: Callable[[Iterable[Member], Path], Counter[str]]
    archives: tuple[str, ...]


def convert(name: str, archives: Sequence[Path], root: Path) -> dict[str, int]:
    """Write a data set into data.root from its published archives.

    Args:
        name: The data set, a key of `CONVERSIONS`.
        archives: The data set's tar or zip files.
        root: The folder to write into, data.root.

    Returns:
        The counts that `Conversion.write` returns.

    Raises:
        InputError: If the name is unknown, an archive is missing or damaged or does not
            have the form of the published one, or the disk is full. The data set is
            then not written.
    """
    if name not in CONVERSIONS:
        raise InputError(
            f"no conversion for {name!r}",
            where="NAME",
            remedy=nearest(name, CONVERSIONS),
        )
    conversion = CONVERSIONS[name]
    where = ", ".join(map(str, archives))
    remedy = f"Give {' '.join(conversion.archives)}, as published."
    try:
        with disk_faults(root):
            counts = conversion.write(_members(archives), root / name)
    # Damaged archives raise these errors; damaged pickles also raise the last three.
    except (
        OSError,
        EOFError,
        ValueError,
        KeyError,
        tarfile.TarError,
        zipfile.BadZipFile,
        pickle.UnpicklingError,
        AttributeError,
        IndexError,
    ) as error:
        raise InputError(
            f"is not the published archive ({type(error).__name__}: {error})",
            where=where,
            remedy=remedy,
        ) from error
    return dict(counts)


def _members(archives: Sequence[Path]) -> Iterator[Member]:
    """Yield the files in all archives.

    Each file must be read before the next one is requested.
    """
    for path in archives:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                for info in archive.infolist():
                    if not info.is_dir():
                        yield _member(info.filename, partial(archive.open, info))
            continue
        with tarfile.open(path) as tar:
            for item in tar:
                if item.isfile():
                    yield _member(item.name, partial(_extracted, tar, item))


def _member(path: str, read: Callable[[], IO[bytes]]) -> Member:
    parts = PurePosixPath(path).parts
    return Member(parts[:-1], parts[-1], read)


def _extracted(tar: tarfile.TarFile, item: tarfile.TarInfo) -> IO[bytes]:
    content = tar.extractfile(item)
    if content is None:
        raise ValueError(f"{item.name} is not a regular file")
    return content


def _require(counts: Counter[str], *parts: str) -> None:
    """Raise ValueError unless the count of each of `parts` is positive."""
    missing = [part for part in parts if not counts[part]]
    if missing:
        raise ValueError(f"it has no files of the part {missing[0]}")


def _write_lines(target: Path, rows: Iterable[dict[str, Any]]) -> Counter[str]:
    """Write `rows` as one JSON object per line; return each split's number of lines."""
    counts: Counter[str] = Counter()
    lines = []
    for row in rows:
        lines.append(json.dumps(row, ensure_ascii=False) + "\n")
        counts[row["split"]] += 1
    _require(counts, "train", "test")
    with atomic_file(target.with_name(f"{target.name}.jsonl")) as file:
        file.writelines(line.encode() for line in lines)
    return counts


def _imdb(members: Iterable[Member], target: Path) -> Counter[str]:
    """Write IMDB, from aclImdb/{train,test}/{neg,pos}/ID_RATING.txt.

    The reviews are sorted by part, class and ID.
    """
    reviews = []
    for folders, name, read in members:
        if len(folders) != 3 or folders[2] not in _CLASSES:
            continue
        number = int(name.partition("_")[0])
        text = read().read().decode()
        reviews.append((folders[1], _CLASSES[folders[2]], number, text))
    reviews.sort(key=lambda review: (review[0] != "train", review[1:3]))
    return _write_lines(
        target,
        (
            {"split": split, "label": label, "text": text}
            for split, label, _, text in reviews
        ),
    )


def _newsgroups(members: Iterable[Member], target: Path) -> Counter[str]:
    """Write 20 Newsgroups, divided by date.

    The texts are in 20news-bydate-{train,test}/GROUP/NUMBER.
    """
    return _write_lines(
        target,
        (
            {"split": part.rpartition("-")[2], "label": group, "text": text}
            for part, group, _, text in _documents(members)
        ),
    )


def _all_newsgroups(members: Iterable[Member], target: Path) -> Counter[str]:
    """Write the undivided 20 Newsgroups, from 20_newsgroups/GROUP/NUMBER.

    Every fifth file of a group, in the order of the file names, is a test file.
    """
    seen: Counter[str] = Counter()
    rows = []
    for _, group, _, text in _documents(members):
        seen[group] += 1
        split = "train" if seen[group] % _TEST_EVERY else "test"
        rows.append({"split": split, "label": group, "text": text})
    return _write_lines(target, rows)


def _documents(members: Iterable[Member]) -> list[tuple[str, str, str, str]]:
    """List each document's part, group, file name and text without headers, sorted."""
    documents = []
    for folders, name, read in members:
        if len(folders) < 2:
            continue
        content = read().read().decode("latin-1").replace("\r\n", "\n")
        text = content.partition("\n\n")[2]
        documents.append((folders[-2], folders[-1], name, text))
    return sorted(documents)


def _sst_trees(members: Iterable[Member], target: Path) -> Counter[str]:
    """Write the Stanford Sentiment Treebank, from trees/{train,dev,test}.txt."""
    lines = {}
    for folders, name, read in members:
        if folders[-1:] == ("trees",):
            split = name.removesuffix(".txt")
            lines[split] = read().read().decode().splitlines()
    return _write_lines(
        target,
        (
            {"split": split, "tree": tree}
            for split in ("train", "dev", "test")
            for tree in lines[split]
        ),
    )


def _ade20k(members: Iterable[Member], target: Path) -> Counter[str]:
    """Write ADE20K, from {images,annotations}/{training,validation}/STEM."""
    counts: Counter[str] = Counter()
    with atomic_folder(target) as new:
        for folders, name, read in members:
            kind, part = folders[-2:] if len(folders) > 1 else ("", "")
            if part not in _PARTS:
                continue
            if kind == "images":
                counts[_PARTS[part]] += 1
                with _created(new, "images", part, name).open("wb") as file:
                    shutil.copyfileobj(read(), file)
            elif kind == "annotations":
                with Image.open(BytesIO(read().read()), formats=("PNG",)) as image:
                    labels = np.asarray(image)
                # In the archive 0 means void. Subtracting 1 wraps 0 around to 255,
                # which means void here.
                shifted = Image.fromarray(labels.astype(np.uint8) - np.uint8(1))
                shifted.save(_created(new, "labels", part, name))
        _require(counts, "train", "test")
    return counts


def _created(folder: Path, kind: str, part: str, name: str) -> Path:
    path = folder / kind / _PARTS[part] / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def _cifar10_c(members: Iterable[Member], target: Path) -> Counter[str]:
    """Write the images with Gaussian noise and the labels of CIFAR-10-C."""
    counts: Counter[str] = Counter()
    with atomic_folder(target) as new:
        for _, name, read in members:
            if name in _NOISE:
                counts[name] += 1
                with (new / name).open("wb") as file:
                    shutil.copyfileobj(read(), file)
        _require(counts, *_NOISE)
    return counts


def _imagenet64(members: Iterable[Member], target: Path) -> Counter[str]:
    """Write ImageNet at 64 × 64, from train_data_batch_1 to 10 and val_data.

    These files are pickles or npz archives. The images of each part are first written
    to a temporary file, because together they take 16 GB.
    """
    counts: Counter[str] = Counter()
    labels: dict[str, list[NDArray[np.int64]]] = {"train": [], "test": []}
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        for _, name, read in members:
            if not name.startswith(("train_data_batch_", "val_data")):
                continue
            part = "train" if name.startswith("train") else "test"
            batch = _batch(name, read)
            images = np.asarray(batch["data"], dtype=np.uint8)
            images = images.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
            with Path(folder, part).open("ab") as file:
                file.write(np.ascontiguousarray(images).data)
            # Subtract 1, because the archives number classes from 1.
            labels[part].append(np.asarray(batch["labels"], dtype=np.int64) - 1)
            counts[part] += len(images)
        _require(counts, "train", "test")
        with atomic_file(target.with_name(f"{target.name}.npz")) as file:
            _write_npz(file, Path(folder), labels, counts)
    return counts


def _write_npz(
    file: IO[bytes],
    folder: Path,
    labels: dict[str, list[NDArray[np.int64]]],
    counts: Counter[str],
) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for part, numbers in labels.items():
            header = {
                "descr": "|u1",
                "fortran_order": False,
                "shape": (counts[part], SIDE, SIDE, 3),
            }
            with archive.open(f"x_{part}.npy", "w", force_zip64=True) as entry:
                npy.write_array_header_2_0(entry, header)
                with (folder / part).open("rb") as pixels:
                    shutil.copyfileobj(pixels, entry)
            with archive.open(f"y_{part}.npy", "w") as entry:
                npy.write_array(entry, np.concatenate(numbers), allow_pickle=False)


def _batch(name: str, read: Callable[[], IO[bytes]]) -> Any:
    if name.endswith(".npz"):
        return np.load(BytesIO(read().read()), allow_pickle=False)
    return _ArrayUnpickler(read(), encoding="latin1").load()


class _ArrayUnpickler(pickle.Unpickler):
    """Reads numbers, texts, arrays and containers of them; refuses any other object."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ARRAY_PARTS:
            raise pickle.UnpicklingError(f"it calls {module}.{name}")
        return super().find_class(module, name)


CONVERSIONS = {
    "imdb": Conversion(_imdb, ("aclImdb_v1.tar.gz",)),
    "newsgroups20": Conversion(_newsgroups, ("20news-bydate.tar.gz",)),
    "newsgroups20_all": Conversion(_all_newsgroups, ("20news-19997.tar.gz",)),
    "sst_trees": Conversion(_sst_trees, ("trainDevTestTrees_PTB.zip",)),
    "ade20k": Conversion(_ade20k, ("ADEChallengeData2016.zip",)),
    "imagenet64": Conversion(
        _imagenet64,
        (
            "Imagenet64_train_part1.zip",
            "Imagenet64_train_part2.zip",
            "Imagenet64_val.zip",
        ),
    ),
    "CIFAR-10-C": Conversion(_cifar10_c, ("CIFAR-10-C.tar",)),
}
"""The conversions from published archives, keyed by the name of the data set."""
