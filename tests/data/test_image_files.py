"""Image files of every kind come out as grey or RGB bytes; class folders are listed in
one order everywhere.
"""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from softmax_temperature.data.image_files import ClassFolders, inspect_image, read_image
from softmax_temperature.data.splits import SPLITS, RawDataset
from softmax_temperature.runner.errors import InputError

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 9, 3), dtype=np.uint8)


def read(path: Path, channels: int = 3, size_limit: int | None = None) -> np.ndarray:
    sha256, size = inspect_image(path, size_limit=size_limit)
    image = read_image(path, sha256=sha256, channels=channels, size_limit=size_limit)
    assert (image.dtype, image.shape) == (np.uint8, (channels, *size[:2]))
    return image


@pytest.mark.parametrize(
    ("mode", "name", "grey"),
    [
        *(
            ("L", "a.png", True),
            ("1", "a.png", True),
            ("LA", "a.png", True),
            ("L", "a.jpg", True),
        ),
        *(
            ("P", "a.png", False),
            ("RGBA", "a.png", False),
            ("CMYK", "a.jpg", False),
            ("RGB", "a.webp", False),
        ),
    ],
)
def test_any_mode_becomes_grey_or_rgb(
    tmp_path: Path, mode: str, name: str, grey: bool
) -> None:
    Image.fromarray(PIXELS).convert(mode).save(tmp_path / name)
    assert inspect_image(tmp_path / name, size_limit=None)[1] == (
        6,
        9,
        1 if grey else 3,
    )
    for channels in (1, 3):
        assert read(tmp_path / name, channels).shape == (channels, 6, 9)


@pytest.mark.parametrize("name", ["a.png", "a.jpg"])
def test_a_large_file_is_read_at_the_size_that_was_recorded(
    tmp_path: Path, name: str
) -> None:
    slope = np.linspace(0, 255, 800).astype(np.uint8)
    Image.fromarray(np.broadcast_to(slope, (600, 800))).convert("RGB").save(
        tmp_path / name, quality=95
    )
    image = read(tmp_path / name, size_limit=60)
    assert image.shape == (3, 60, 80)
    assert np.abs(image[0, 30].astype(int) - slope.reshape(80, 10).mean(1)).max() <= 6


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.webp"])
@pytest.mark.parametrize("part", [0.0, 0.9])
def test_a_truncated_file_is_refused_by_name(
    tmp_path: Path, name: str, part: float
) -> None:
    Image.fromarray(np.tile(PIXELS, (10, 10, 1))).save(tmp_path / name)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: int(part * len(content))])
    with pytest.raises(InputError, match=f"{name}: not a readable image"):
        read(tmp_path / name)


def listed(folder: Path) -> RawDataset:
    return ClassFolders(folder.parent, folder.name).read()


def test_files_are_listed_class_by_class_and_other_files_are_skipped(
    write_folders: Any,
) -> None:
    folder = write_folders()
    (folder / "train" / "README.txt").write_text("a file beside the classes")
    (folder / "train" / "crow" / "Thumbs.db").write_text("not an image")
    (folder / "train" / ".cache").mkdir()
    (folder / "train" / "crow" / ".0.png").write_text("hidden")
    raw = listed(folder)
    names = [f"crow/{number}" for number in range(4)] + [
        f"wren/{number}" for number in range(3)
    ]
    assert raw.train.samples == tuple(f"birds/train/{name}.png" for name in names)
    assert (raw.class_names, raw.train.labels.tolist()) == (
        ("crow", "wren"),
        [0, 0, 0, 0, 1, 1, 1],
    )
    assert raw.test is not None
    assert raw.test.labels.tolist() == [0, 0, 1]


def test_an_undivided_data_set_has_no_test_part_and_test_images_alone_no_train_part(
    write_folders: Any, prepare_data: Any
) -> None:
    undivided = listed(write_folders("undivided", all={"crow": 4, "wren": 4}))
    assert (undivided.test, len(undivided.train.labels)) == (None, 8)
    data = prepare_data(listed(write_folders(test={"crow": 2, "wren": 3})))
    assert [len(data.labels(split)) for split in SPLITS] == [0, 0, 5]
    assert sum(len(batch) for batch in data.batches("test", 2)) == 5
    with pytest.raises(InputError, match="has test images only and no train split"):
        next(data.batches("train", 2))


def test_the_digest_sees_content_and_names_but_not_the_place(
    write_folders: Any, tmp_path: Path
) -> None:
    folder = write_folders()
    shutil.copytree(folder, tmp_path / "elsewhere" / "birds")
    before = ClassFolders(tmp_path, "birds").digest()
    assert ClassFolders(tmp_path / "elsewhere", "birds").digest() == before
    (folder / "train" / "crow" / "0.png").rename(folder / "train" / "crow" / "9.png")
    renamed = ClassFolders(tmp_path, "birds").digest()
    (folder / "train" / "crow" / "9.png").write_bytes(b"other")
    assert len({before, renamed, ClassFolders(tmp_path, "birds").digest()}) == 3


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        (
            {"all": {"crow": 3, "tit": 0}},
            r"all/tit: no image files \(endings: \.bmp .*a folder for each class",
        ),
        (
            {"train": {"crow": 1, "wren": 1}, "test": {"tit": 1}},
            "birds/test/tit: a class that train does not have",
        ),
        ({"all": {"crow": 3}}, "birds: has 1 class folders"),
        (
            {"train": {"crow": 3, "wren": 1}},
            "birds: holds train. Make train and test, or all",
        ),
        (
            {"train": {"crow": 1}, "all": {"crow": 1}},
            "birds: holds train and all. Make",
        ),
    ],
)
def test_a_fault_is_named_with_its_folder(
    write_folders: Any, parts: Any, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        listed(write_folders(**parts))
