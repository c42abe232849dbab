"""Data sets below data.root, in every form that a user may bring, and word vectors."""

from __future__ import annotations

import io
import json
import struct
import tarfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from PIL import Image
from softmax_temperature.data.jsonl_texts import JsonlTexts
from softmax_temperature.data.parallel_texts import ParallelTexts
from softmax_temperature.data.torchvision_archives import refuse_hostile_tar

from softmax_temperature.data import torchvision_sets
from softmax_temperature.data.gaussian_noise import ARCHIVE, read_archive
from softmax_temperature.data.image_files import inspect_image, read_image
from softmax_temperature.data.npz_archives import NpzArchive
from softmax_temperature.data.segmentation import Form, SegmentationFolder
from softmax_temperature.data.sources import find_archive
from softmax_temperature.data.torchvision_sets import find_torchvision_set
from softmax_temperature.data.trees import parse_tree
from softmax_temperature.data.word_vectors import read_word_vectors
from softmax_temperature.runner.artifacts import digest_of_file
from tests.faults.mutations import exchanged
from tests.faults.readers.arrays import npy, npz, zipped
from tests.faults.readers.reader import Reader

SIDE = 16
TREE = "(3 (2 the) (4 (3 good) (2 one)))"


def pixels(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def arrays() -> dict[str, Any]:
    labels = np.arange(6) % 3
    return {"x_train": pixels(6, 4, 4, 3), "y_train": labels, "x_test": pixels(6, 4, 4, 3), "y_test": labels}


def read_npz(folder: Path, content: bytes) -> None:
    (folder / "birds.npz").write_bytes(content)
    NpzArchive(folder, "birds").read()


def read_member(name: str, folder: Path, content: bytes) -> None:
    members = {f"{key}.npy": npy(array) for key, array in named_arrays().items()}
    read_npz(folder, zipped(members | {f"{name}.npy": content}))


def named_arrays() -> dict[str, Any]:
    return arrays() | {"class_names": np.array(["crow", "wren", "owl"])}


def rows(*, trees: bool = False) -> list[dict[str, Any]]:
    texts = [(split, label) for split in ("train", "dev", "test") for label in (0, 1, 0, 1)]
    if trees:
        return [{"split": split, "tree": TREE if label else TREE.replace("3", "1", 1)} for split, label in texts]
    return [{"split": split, "label": label, "text": f"word {split} ü"} for split, label in texts]


def lines(values: list[Any]) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def read_jsonl(folder: Path, content: bytes) -> None:
    """Through every text: they are read again from their places when the data set is stored."""
    (folder / "talk.jsonl").write_bytes(content)
    archive = find_archive("talk", root=folder)
    assert archive is not None
    found = archive.read()
    assert not isinstance(archive, JsonlTexts) or len(found.train.labels)  # type: ignore[union-attr]
    for part in (found.train, found.test):
        if part is not None:
            for text in part.texts.read(range(len(part.labels))):  # type: ignore[union-attr]
                text.encode()


def read_rows(folder: Path, content: Any) -> None:
    read_jsonl(folder, lines(content if isinstance(content, list) else [content]))


def read_parallel(folder: Path, content: bytes) -> None:
    (folder / "pairs").mkdir()
    for name in ("train.en", "train.de"):
        (folder / "pairs" / name).write_bytes(content if name == "train.en" else b"ein Satz\nnoch einer\n")
    ParallelTexts(folder, "pairs", ("en", "de")).read("train")


def image(kind: str, mode: str = "RGB", **options: Any) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels(SIDE, SIDE, 3)).convert(mode).save(stream, kind, **options)
    return stream.getvalue()


def images() -> list[bytes]:
    kinds = ("BMP", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
    return [image(kind) for kind in kinds] + [
        image("PNG", "P"),
        image("PNG", "LA"),
        image("JPEG", "L", progressive=True),
    ]


def read_pixels(folder: Path, content: bytes) -> None:
    """By the name of another type, as it may be in a folder of downloads."""
    path = folder / "a.png"
    path.write_bytes(content)
    inspect_image(path, size_limit=8)
    read_image(path, sha256=digest_of_file(path), channels=3, size_limit=8)


def read_label_map(folder: Path, content: bytes) -> None:
    for kind, ending, its_content in (("images", "bmp", image("BMP")), ("labels", "png", content)):
        place = folder / "scenes" / kind / "train"
        place.mkdir(parents=True)
        (place / f"a.{ending}").write_bytes(its_content)
    SegmentationFolder(folder, "scenes").read("train", Form(classes=256, void=255, crop=None, size=None))


def label_map() -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels(SIDE, SIDE)).save(stream, "PNG")
    return stream.getvalue()


def idx(values: np.ndarray) -> bytes:
    """The form of MNIST's files: a magic number of type and dimensions, the sizes, the bytes."""
    return struct.pack(f">I{values.ndim}I", 0x0800 + values.ndim, *values.shape) + values.astype(np.uint8).tobytes()


def read_idx(damaged: str, folder: Path, content: bytes) -> None:
    raw = folder / "MNIST" / "raw"
    raw.mkdir(parents=True)
    for part in ("train", "t10k"):
        (raw / f"{part}-images-idx3-ubyte").write_bytes(idx(pixels(20, 28, 28)))
        (raw / f"{part}-labels-idx1-ubyte").write_bytes(idx(np.arange(20) % 10))
    (raw / f"train-{damaged}-ubyte").write_bytes(content)
    find_torchvision_set("mnist", root=folder, download=False)


def read_list_of_textures(folder: Path, content: bytes) -> None:
    """As if DTD had two images."""
    for label in ("banded", "dotted"):
        place = folder / "dtd/dtd/images" / label
        place.mkdir(parents=True)
        (place / f"{label}_0.jpg").touch()
    (folder / "dtd/dtd/labels").mkdir()
    (folder / "dtd/dtd/labels/test1.txt").write_bytes(content)
    sets = torchvision_sets._SETS
    with patch.object(torchvision_sets, "_SETS", {**sets, "dtd": replace(sets["dtd"], images=2)}):  # type: ignore[type-var]
        find_torchvision_set("dtd", root=folder, download=False)


def tar_gz() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        for name in ("a/b.jpg", "a/c.jpg"):
            member = tarfile.TarInfo(name)
            member.size = 3
            tar.addfile(member, io.BytesIO(b"abc"))
    return stream.getvalue()


def read_fetched(folder: Path, content: bytes) -> None:
    """On a Python whose tarfile does not refuse hostile members itself."""
    (folder / "a.tar.gz").write_bytes(content)
    with pytest.MonkeyPatch.context() as patched:
        patched.delattr(tarfile, "data_filter", raising=False)
        refuse_hostile_tar(folder / "a.tar.gz")


def read_noise(folder: Path, content: bytes) -> None:
    """As if there were one image for each severity."""
    place = folder / ARCHIVE
    place.mkdir()
    (place / "gaussian_noise.npy").write_bytes(content)
    np.save(place / "labels.npy", np.zeros(5, dtype=np.int64))
    with patch("softmax_temperature.data.gaussian_noise._PER_SEVERITY", 1):
        read_archive(folder, torch.tensor([0]), torch.tensor([0]))


def read_vectors(folder: Path, content: bytes) -> None:
    (folder / "vectors.txt").write_bytes(content)
    read_word_vectors(folder / "vectors.txt", ["the", "cat"], width=3)


JSONL = ("text_lines.text_lines", "datasets.jsonl_rows.record_of")
TEXTS, TREES = (*JSONL, "datasets.jsonl_texts.TextsOfFile.read"), (*JSONL, "datasets.jsonl_trees.TreesOfFile.read")
IMAGES = ("datasets.image_files._content", "datasets.image_files._opened")
NPZ = ("array_files.numpy_files.NpzFile.__init__",)

READERS = {
    "data set npz": Reader(NPZ, lambda: [npz(arrays()), npz(named_arrays(), compressed=True)], read_npz),
    "data set images": Reader(NPZ, lambda: [npy(arrays()["x_train"])], partial(read_member, "x_train")),
    "data set labels": Reader(NPZ, lambda: [npy(arrays()["y_train"])], partial(read_member, "y_train")),
    "data set names": Reader(NPZ, lambda: [npy(named_arrays()["class_names"])], partial(read_member, "class_names")),
    "texts": Reader(TEXTS, lambda: [lines(rows())], read_jsonl),
    "text rows": Reader(TEXTS, lambda: [rows()], read_rows, exchanged),
    "trees": Reader(TREES, lambda: [lines(rows(trees=True))], read_jsonl),
    "tree": Reader(
        (),
        lambda: [TREE.encode()],
        lambda _, content: parse_tree(content.decode(errors="replace")),
        errors=(ValueError,),
    ),
    "parallel texts": Reader(("text_lines.text_lines",), lambda: ["a sentence\nanother ü\n".encode()], read_parallel),
    "images": Reader(IMAGES, images, read_pixels),
    "label map": Reader(("datasets.segmentation_folders._read_labels",), lambda: [label_map()], read_label_map),
    "MNIST's images": Reader((), lambda: [idx(pixels(20, 28, 28))], partial(read_idx, "images-idx3")),
    "MNIST's labels": Reader((), lambda: [idx(np.arange(20) % 10)], partial(read_idx, "labels-idx1")),
    "noise": Reader(("datasets.gaussian_noise._rows",), lambda: [npy(pixels(5, 32, 32, 3))], read_noise),
    "list of textures": Reader(
        ("datasets.torchvision_sets._textures",), lambda: [b"banded/banded_0.jpg\n"], read_list_of_textures
    ),
    "fetched archive": Reader(
        ("datasets.torchvision_archives.refuse_hostile_tar",),
        lambda: [tar_gz()],
        read_fetched,
        errors=torchvision_sets._NOT_DOWNLOADED,
    ),
    "word vectors": Reader(
        ("text_lines.text_lines",), lambda: [b"the 1 2.5 -3e-2\ncat 0 0 1\n. . . 1 2 3\n"], read_vectors
    ),
}
