"""Class folders are listed in one order everywhere and say what is missing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.data.class_folders import ClassFolders
from softmax_temperature.data.raw import RawDataset
from softmax_temperature.runner.errors import InputError


def read(folder: Path) -> RawDataset:
    return ClassFolders(folder.parent, folder.name).read()


def test_files_are_listed_class_by_class_in_the_order_of_their_names(write_folders: Any) -> None:
    raw = read(write_folders())
    assert raw.class_names == ("crow", "wren")
    assert raw.train.samples == (
        *("birds/train/crow/0.png", "birds/train/crow/1.png", "birds/train/crow/2.png", "birds/train/crow/3.png"),
        *("birds/train/wren/0.png", "birds/train/wren/1.png", "birds/train/wren/2.png"),
    )
    assert raw.train.labels.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert raw.test is not None
    assert raw.test.labels.tolist() == [0, 0, 1]


def test_an_undivided_data_set_has_no_test_part(write_folders: Any) -> None:
    raw = read(write_folders(all={"crow": 4, "wren": 4}))
    assert raw.test is None
    assert len(raw.train.labels) == 8


def test_other_files_are_skipped(write_folders: Any) -> None:
    folder = write_folders()
    before = read(folder).train.samples
    (folder / "train" / "README.txt").write_text("a file beside the classes")
    (folder / "train" / "crow" / "Thumbs.db").write_text("not an image")
    (folder / "train" / ".cache").mkdir()
    (folder / "train" / "crow" / ".0.png").write_text("hidden")
    assert read(folder).train.samples == before


def test_the_digest_sees_content_and_names_but_not_the_place(write_folders: Any, tmp_path: Path) -> None:
    folder = write_folders()
    shutil.copytree(folder, tmp_path / "elsewhere" / "birds")
    before = ClassFolders(tmp_path, "birds").digest()
    assert ClassFolders(tmp_path / "elsewhere", "birds").digest() == before
    (folder / "train" / "crow" / "0.png").rename(folder / "train" / "crow" / "9.png")
    renamed = ClassFolders(tmp_path, "birds").digest()
    (folder / "train" / "crow" / "9.png").write_bytes(b"other")
    assert len({before, renamed, ClassFolders(tmp_path, "birds").digest()}) == 3


def test_an_empty_class_is_refused(write_folders: Any) -> None:
    folder = write_folders()
    (folder / "train" / "tit").mkdir()
    with pytest.raises(InputError, match=r"train/tit: no image files \(endings: \.bmp .*\)\. Each class needs"):
        read(folder)


def test_a_test_class_unknown_to_train_is_refused(write_folders: Any) -> None:
    folder = write_folders(train={"crow": 1, "wren": 1}, test={"crow": 1, "tit": 1})
    with pytest.raises(InputError, match="birds/test/tit: a class that train does not have"):
        read(folder)


@pytest.mark.parametrize("classes", [{}, {"crow": 3}])
def test_fewer_than_two_classes_are_refused(write_folders: Any, tmp_path: Path, classes: dict[str, int]) -> None:
    (tmp_path / "birds" / "train").mkdir(parents=True)
    for name in classes:
        write_folders(all={name: 1}).joinpath("all", name).rename(tmp_path / "birds" / "train" / name)
        shutil.rmtree(tmp_path / "birds" / "all")
    (tmp_path / "birds" / "test").mkdir()
    with pytest.raises(InputError, match=f"birds/train: has {len(classes)} class folders"):
        read(tmp_path / "birds")


@pytest.mark.parametrize("parts", [("train",), ("test",), ("train", "all"), ("train", "test", "all")])
def test_parts_that_do_not_fit_together_are_refused(tmp_path: Path, parts: tuple[str, ...]) -> None:
    for part in parts:
        (tmp_path / "birds" / part).mkdir(parents=True)
    with pytest.raises(InputError, match=f"birds: holds {' and '.join(parts)}. Make train and test, or all"):
        read(tmp_path / "birds")
