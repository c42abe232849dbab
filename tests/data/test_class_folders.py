"""Class folders are listed in one order everywhere and say what is missing."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.data.class_folders import ClassFolders
from softmax_temperature.data.raw import RawDataset
from softmax_temperature.data.splits import SPLITS
from softmax_temperature.runner.errors import InputError


def read(folder: Path) -> RawDataset:
    return ClassFolders(folder.parent, folder.name).read()


def test_files_are_listed_class_by_class_and_other_files_are_skipped(write_folders: Any) -> None:
    folder = write_folders()
    (folder / "train" / "README.txt").write_text("a file beside the classes")
    (folder / "train" / "crow" / "Thumbs.db").write_text("not an image")
    (folder / "train" / ".cache").mkdir()
    (folder / "train" / "crow" / ".0.png").write_text("hidden")
    raw = read(folder)
    names = [f"crow/{number}" for number in range(4)] + [f"wren/{number}" for number in range(3)]
    assert raw.train.samples == tuple(f"birds/train/{name}.png" for name in names)
    assert (raw.class_names, raw.train.labels.tolist()) == (("crow", "wren"), [0, 0, 0, 0, 1, 1, 1])
    assert raw.test is not None
    assert raw.test.labels.tolist() == [0, 0, 1]


def test_an_undivided_data_set_has_no_test_part_and_test_images_alone_no_train_part(
    write_folders: Any, prepare_data: Any
) -> None:
    undivided = read(write_folders("undivided", all={"crow": 4, "wren": 4}))
    assert (undivided.test, len(undivided.train.labels)) == (None, 8)
    data = prepare_data(read(write_folders(test={"crow": 2, "wren": 3})))
    assert [len(data.labels(split)) for split in SPLITS] == [0, 0, 5]
    assert sum(len(batch) for batch in data.batches("test", 2)) == 5
    with pytest.raises(InputError, match="has test images only and no train split"):
        next(data.batches("train", 2))


def test_the_digest_sees_content_and_names_but_not_the_place(write_folders: Any, tmp_path: Path) -> None:
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
        ({"all": {"crow": 3, "tit": 0}}, r"all/tit: no image files \(endings: \.bmp .*a folder for each class"),
        ({"train": {"crow": 1, "wren": 1}, "test": {"tit": 1}}, "birds/test/tit: a class that train does not have"),
        ({"all": {"crow": 3}}, "birds: has 1 class folders"),
        ({"train": {"crow": 3, "wren": 1}}, "birds: holds train. Make train and test, or all"),
        ({"train": {"crow": 1}, "all": {"crow": 1}}, "birds: holds train and all. Make"),
    ],
)
def test_a_fault_is_named_with_its_folder(write_folders: Any, parts: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read(write_folders(**parts))
