"""Class folders are listed in one order everywhere, stay inside their folder, and say what is missing."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from softmax_temperature.data.class_folders import ClassFolders
from softmax_temperature.data.raw import RawDataset
from softmax_temperature.runner.errors import InputError


def read(folder: Path) -> RawDataset:
    return ClassFolders(folder.parent, folder.name).read()


def test_files_are_listed_class_by_class_in_the_order_of_their_names(write_folders: Any) -> None:
    raw = read(write_folders())
    assert raw.class_names == ("crow", "wren")
    assert raw.train.images == (
        *("birds/train/crow/0.png", "birds/train/crow/1.png", "birds/train/crow/2.png", "birds/train/crow/3.png"),
        *("birds/train/wren/0.png", "birds/train/wren/1.png", "birds/train/wren/2.png"),
    )
    assert raw.train.labels.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert raw.test is not None
    assert raw.test.labels.tolist() == [0, 0, 1]


def test_a_test_class_keeps_its_number_when_another_is_absent(write_folders: Any) -> None:
    raw = read(write_folders(train={"crow": 2, "tit": 2, "wren": 2}, test={"wren": 1}))
    assert raw.test is not None
    assert raw.test.labels.tolist() == [2]


def test_an_undivided_data_set_has_no_test_part(write_folders: Any) -> None:
    raw = read(write_folders(all={"crow": 4, "wren": 4}))
    assert raw.test is None
    assert len(raw.train.labels) == 8


def test_other_files_are_passed_over(write_folders: Any) -> None:
    folder = write_folders()
    before = read(folder).train.images
    (folder / "train" / "README.txt").write_text("a file beside the classes")
    (folder / "train" / "crow" / "Thumbs.db").write_text("not an image")
    (folder / "train" / ".cache").mkdir()
    (folder / "train" / "crow" / ".0.png").write_text("hidden")
    assert read(folder).train.images == before


@pytest.mark.parametrize("ending", ["JPG", "Jpeg", "PNG", "bmp", "WEBP", "tif"])
def test_endings_count_in_any_case(write_folders: Any, ending: str) -> None:
    folder = write_folders()
    (folder / "train" / "crow" / "0.png").rename(folder / "train" / "crow" / f"0.{ending}")
    assert f"birds/train/crow/0.{ending}" in read(folder).train.images


def test_names_with_spaces_and_accents_are_kept(write_folders: Any) -> None:
    raw = read(write_folders(train={"grand ä b": 2, "wren": 2}, test={"wren": 1}))
    assert raw.class_names == ("grand ä b", "wren")


def test_the_digest_sees_content_and_names_but_not_the_place(write_folders: Any, tmp_path: Path) -> None:
    folder = write_folders()
    shutil.copytree(folder, tmp_path / "elsewhere" / "birds")
    before = ClassFolders(tmp_path, "birds").digest()
    assert ClassFolders(tmp_path / "elsewhere", "birds").digest() == before
    (folder / "train" / "crow" / "0.png").rename(folder / "train" / "crow" / "9.png")
    renamed = ClassFolders(tmp_path, "birds").digest()
    (folder / "train" / "crow" / "9.png").write_bytes(b"other")
    assert len({before, renamed, ClassFolders(tmp_path, "birds").digest()}) == 3


def test_the_data_sets_folder_may_itself_be_a_link(write_folders: Any, tmp_path: Path) -> None:
    write_folders().rename(tmp_path / "disk")
    (tmp_path / "birds").symlink_to(tmp_path / "disk")
    assert len(read(tmp_path / "birds").train.labels) == 7


def test_a_link_within_the_folder_is_followed(write_folders: Any) -> None:
    folder = write_folders()
    (folder / "train" / "wren" / "9.png").symlink_to(folder / "train" / "wren" / "0.png")
    assert "birds/train/wren/9.png" in read(folder).train.images


@pytest.mark.parametrize("place", ["train", "train/crow", "train/crow/9.png"])
def test_a_link_that_leads_outside_is_refused(write_folders: Any, tmp_path: Path, place: str) -> None:
    folder, secret = write_folders(), tmp_path / "secret"
    (secret / "crow").mkdir(parents=True)
    if (folder / place).exists():
        shutil.rmtree(folder / place)
    (folder / place).symlink_to(Path("../" * len(Path(place).parts)) / "secret")
    with pytest.raises(InputError, match="a link that leads out of") as caught:
        read(folder)
    assert caught.value.where == str(folder / place)


def test_a_link_to_nothing_is_refused(write_folders: Any) -> None:
    folder = write_folders()
    (folder / "train" / "crow" / "9.png").symlink_to(folder / "gone.png")
    with pytest.raises(InputError, match=r"crow/9.png: a link to nothing"):
        read(folder)


def test_an_empty_class_is_refused(write_folders: Any) -> None:
    folder = write_folders()
    (folder / "train" / "tit").mkdir()
    with pytest.raises(InputError, match=r"train/tit: no image files \(endings: \.bmp .*\)\. Each class needs"):
        read(folder)


def test_images_one_level_too_deep_are_not_found(write_folders: Any) -> None:
    folder = write_folders()
    (folder / "train" / "crow").rename(folder / "train" / "images")
    (folder / "train" / "crow").mkdir()
    (folder / "train" / "images").rename(folder / "train" / "crow" / "images")
    with pytest.raises(InputError, match="train/crow: no image files"):
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
    with pytest.raises(InputError, match=f"birds: holds only {' and '.join(parts)}. Make train and test, or all"):
        read(tmp_path / "birds")


@pytest.mark.parametrize("name", ["a\nb.png", "a\\b.png", b"a\xff.png"])
def test_a_file_name_that_no_list_can_hold_is_refused(write_folders: Any, name: str | bytes) -> None:
    folder = write_folders()
    text = name.decode("utf-8", "surrogateescape") if isinstance(name, bytes) else name
    (folder / "train" / "crow" / text).write_bytes(b"")
    with pytest.raises(InputError, match=r"train/crow: a file name with a line break, a backslash or broken text"):
        read(folder)


def test_labels_are_int64(write_folders: Any) -> None:
    assert read(write_folders()).train.labels.dtype == np.int64
