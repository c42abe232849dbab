"""Class folders are listed in the same order on every system; errors name a path."""

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.data.class_folders import ClassFolders
from softmax_temperature.data.raw import RawDataset
from softmax_temperature.data.splits import SPLITS
from softmax_temperature.runner.errors import InputError


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


def test_undivided_data_have_no_test_part_and_test_images_alone_have_no_train_part(
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
            "birds/test/tit: train has no class of this name",
        ),
        ({"all": {"crow": 3}}, "birds: needs at least 2 class folders, has 1"),
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


def test_images_that_are_left_out_are_counted_on_the_card(
    write_folders: Any, prepare_data: Any
) -> None:
    folder = write_folders()
    image = folder / "train" / "crow" / "0.png"
    copies = (
        "train/crow/a.GIF",
        "train/crow/b.jfif",
        "train/crow/x.png/nested.png",
        "train/crow/deep/er/nested.jpg",
        "train/beside.png",
        "val/crow/0.png",
        "val/crow/1.gif",
    )
    ignored = ("train/crow/Thumbs.db", "train/crow/.hidden.png", ".cache/0.png")
    for file in (*copies, *ignored):
        (folder / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(image, folder / file)
    raw = listed(folder)
    assert len(raw.train.labels) == 7
    assert prepare_data(raw).card["source"]["images_left_out"] == {
        "*.gif": 1,
        "*.jfif": 1,
        "beside the class folders": 1,
        "in folders below a class": 2,
        "in val/": 2,
    }


def test_a_link_that_leads_back_is_followed_once(write_folders: Any) -> None:
    folder = write_folders()
    (folder / "val").symlink_to(folder, target_is_directory=True)
    assert "images_left_out" not in listed(folder).source


@pytest.mark.parametrize("place", ["train/crow/x.png", "train/finch"])
def test_a_broken_link_is_refused_by_name(write_folders: Any, place: str) -> None:
    folder = write_folders()
    (folder / place).symlink_to(folder / "nowhere")
    for act in (listed, digest):
        with pytest.raises(InputError, match=f"birds/{place}: is a link to .* not exi"):
            act(folder)


@pytest.mark.parametrize("name", [b"\xff.png", b"a\nb.png"])
@pytest.mark.parametrize("place", ["train/crow", "train"])
def test_a_name_that_is_not_one_line_of_utf_8_is_refused(
    write_folders: Any, name: bytes, place: str
) -> None:
    folder = write_folders()
    path = folder / place / os.fsdecode(name)
    if place == "train":
        path.mkdir()
    shutil.copy(folder / "train/crow/0.png", path)
    for act in (listed, digest):
        with pytest.raises(InputError, match=f"birds/{place}/.*has a name "):
            act(folder)


def test_a_file_that_vanishes_while_the_digest_is_made_is_named(
    write_folders: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folders()
    parts = ClassFolders(folder.parent, "birds")._parts()
    monkeypatch.setattr(ClassFolders, "_parts", lambda _: parts)
    (folder / "test" / "wren" / "0.png").unlink()
    with pytest.raises(InputError, match=r"wren/0\.png: cannot be read"):
        digest(folder)


def digest(folder: Path) -> str:
    return ClassFolders(folder.parent, folder.name).digest()
