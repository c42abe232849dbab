"""Data sets that torchvision unpacked are found offline, complete and upright."""

import hashlib
import struct
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock
from urllib.error import URLError

import numpy as np
import pytest
import scipy.io
from PIL import Image
from torchvision import datasets

from softmax_temperature.data import torchvision_sets
from softmax_temperature.data.raw import RawDataset
from softmax_temperature.data.torchvision_sets import find_torchvision_set
from softmax_temperature.runner.errors import InputError

IMAGES = np.random.default_rng(0).integers(0, 256, (20, 28, 28), dtype=np.uint8)


def found(name: str, root: Path) -> RawDataset:
    raw = find_torchvision_set(name, root=root, download=False)
    assert raw is not None
    return raw


def write_mnist(
    root: Path,
    kind: str,
    labels: np.ndarray,
    prefixes: tuple[str, str] = ("train", "t10k"),
) -> None:
    """Write files in MNIST's format: type and rank, then the sizes, then the bytes."""
    (root / kind / "raw").mkdir(parents=True, exist_ok=True)
    for prefix in prefixes:
        for what, values in (("images-idx3", IMAGES), ("labels-idx1", labels)):
            header = struct.pack(
                f">I{values.ndim}I", 0x0800 + values.ndim, *values.shape
            )
            (root / kind / "raw" / f"{prefix}-{what}-ubyte").write_bytes(
                header + values.astype(np.uint8).tobytes()
            )


def test_mnist_is_read_and_emnist_is_upright_and_numbered_from_zero(
    tmp_path: Path,
) -> None:
    write_mnist(tmp_path, "MNIST", np.arange(20) % 10)
    raw = found("mnist", tmp_path)
    assert np.array_equal(np.asarray(raw.train.samples)[..., 0], IMAGES)
    assert (len(raw.class_names), raw.train.labels.tolist()) == (
        10,
        [*range(10), *range(10)],
    )
    assert raw.source == {"how": "torchvision.datasets.MNIST"}
    labels = np.arange(20) % 4 + 1
    write_mnist(
        tmp_path, "EMNIST", labels, ("emnist-letters-train", "emnist-letters-test")
    )
    raw = found("emnist_letters", tmp_path)
    assert np.array_equal(np.asarray(raw.train.samples)[0, ..., 0], IMAGES[0].T)
    assert raw.class_names == ("a", "b", "c", "d")
    assert raw.train.labels.tolist() == (labels - 1).tolist()


def test_svhn_is_read_with_channels_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3, 20), dtype=np.uint8)
    entries = {}
    for split in ("train", "test"):
        path = tmp_path / f"{split}_32x32.mat"
        scipy.io.savemat(
            path, {"X": pixels, "y": (np.arange(20) % 10 + 1)[:, None]}
        )  # Label 10 means the digit 0.
        entries[split] = [
            "",
            path.name,
            hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest(),
        ]
    monkeypatch.setattr(datasets.SVHN, "split_list", entries)
    raw = found("svhn", tmp_path)
    assert np.array_equal(raw.train.samples, pixels.transpose(3, 0, 1, 2))
    assert raw.train.labels[:11].tolist() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1]
    assert raw.class_names == tuple("0123456789")


def write_images(
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    folder: Path,
    files: list[str],
    images: int,
) -> None:
    for file in files:
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(IMAGES[0]).save(folder / file)
    form = replace(torchvision_sets._FILES[name], images=images)
    monkeypatch.setitem(torchvision_sets._FILES, name, form)


def test_textures_are_divided_by_partition_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [
        f"{label}/{label}_{n}.jpg" for label in ("banded", "dotted") for n in range(3)
    ]
    write_images(monkeypatch, "dtd", tmp_path / "dtd/dtd/images", files, 6)
    (tmp_path / "dtd/dtd/labels").mkdir()
    (tmp_path / "dtd/dtd/labels/test1.txt").write_text(
        "banded/banded_1.jpg\ndotted/dotted_2.jpg\n"
    )
    raw = found("dtd", tmp_path)
    assert raw.class_names == ("banded", "dotted")
    assert raw.test is not None
    assert raw.test.samples == (
        "dtd/dtd/images/banded/banded_1.jpg",
        "dtd/dtd/images/dotted/dotted_2.jpg",
    )
    assert (raw.test.labels.tolist(), raw.train.labels.tolist()) == (
        [0, 1],
        [0, 0, 1, 1],
    )


@pytest.mark.parametrize(
    ("number", "left_out"), [(101, "BACKGROUND_Google"), (256, "257.clutter")]
)
def test_caltech_lacks_its_background_class_and_a_split(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, left_out: str
) -> None:
    name, folder = f"caltech{number}", f"caltech{number}/{number}_ObjectCategories"
    files = [
        f"{label}/image_{n}.jpg"
        for label in ("001.ant", "002.bass", left_out)
        for n in range(2)
    ]
    write_images(monkeypatch, name, tmp_path / folder, files, 4)
    raw = found(name, tmp_path)
    assert (raw.class_names, raw.test) == (("001.ant", "002.bass"), None)
    assert raw.train.samples[0] == f"{folder}/001.ant/image_0.jpg"
    write_images(monkeypatch, name, tmp_path / folder, [], 8677)
    with pytest.raises(
        InputError, match=rf"data set {name} .*: has 4 images, expected 8,677"
    ):
        found(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "kind"), [("mnist", "MNIST"), ("caltech101", "Caltech101")]
)
def test_a_failed_download_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, kind: str
) -> None:
    monkeypatch.setattr(
        getattr(datasets, kind),
        "download",
        Mock(side_effect=URLError("no route to host")),
    )
    with pytest.raises(
        InputError, match=f"data set {name}: the download failed .*put {name}.npz into"
    ):
        find_torchvision_set(name, root=tmp_path / "raw", download=True)
