"""What is prepared is what is read back; damage on the way is noticed and named."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from softmax_temperature.data import prepared as prepared_module
from softmax_temperature.data.class_folders import ClassFolders
from softmax_temperature.data.image_files import read_image
from softmax_temperature.data.npz_archives import NpzArchive
from softmax_temperature.data.prepared import PreparedImages
from softmax_temperature.runner.artifacts import ArtifactError
from softmax_temperature.runner.errors import InputError

TRAIN = {"crow": 6, "wren": 5}
TEST = {"crow": 2, "wren": 3}


@pytest.fixture
def arrays(write_npz: Any, prepare_images: Any) -> PreparedImages:
    path = write_npz(class_names=np.array(["crow", "wren", "tit"]))
    images: PreparedImages = prepare_images(NpzArchive(path.parent, "birds").read())
    return images


@pytest.fixture
def files(write_folders: Any, prepare_images: Any, tmp_path: Path) -> PreparedImages:
    write_folders(train=TRAIN, test=TEST)
    images: PreparedImages = prepare_images(ClassFolders(tmp_path, "birds").read())
    return images


def everything(images: PreparedImages, split: Any, batch_size: int = 2) -> list[torch.Tensor]:
    return [image for batch in images.batches(split, batch_size) for image in batch]


def test_arrays_come_back_channels_first(arrays: PreparedImages, tmp_path: Path) -> None:
    stored = np.load(tmp_path / "birds.npz")
    for split in arrays.splits:
        part = "test" if split == "test" else "train"
        pixels = torch.from_numpy(stored[f"x_{part}"].transpose(0, 3, 1, 2))[arrays.index(split)]
        assert torch.equal(torch.stack(everything(arrays, split)), pixels)
        assert torch.equal(arrays.labels(split), torch.from_numpy(stored[f"y_{part}"])[arrays.index(split)])


def test_files_come_back_in_the_order_of_their_labels(files: PreparedImages, tmp_path: Path) -> None:
    paths = sorted((tmp_path / "birds" / "train").glob("*/*.png"))
    for image, label, row in zip(everything(files, "train"), files.labels("train"), files.index("train"), strict=True):
        assert torch.equal(image, torch.from_numpy(np.asarray(Image.open(paths[row])).transpose(2, 0, 1).copy()))
        assert files.class_names[label] == paths[row].parent.name


def test_facts_about_arrays(arrays: PreparedImages) -> None:
    assert (arrays.name, arrays.classes, arrays.class_names) == ("birds", 3, ("crow", "wren", "tit"))
    assert arrays.splits == ("train", "validation", "test")
    assert [arrays.size(split) for split in arrays.splits] == [9, 3, 6]
    assert (arrays.channels, arrays.one_size) == (3, True)
    assert arrays.labels("test").dtype == arrays.index("test").dtype == torch.int64


@pytest.mark.parametrize("size", [1, 2, 4, 9, 100])
def test_batches_are_full_except_the_last(arrays: PreparedImages, files: PreparedImages, size: int) -> None:
    for images in (arrays, files):
        lengths = [len(batch) for batch in images.batches("train", size)]
        assert sum(lengths) == images.size("train")
        assert all(length == size for length in lengths[:-1])


def test_equal_sizes_give_tensors_and_unequal_ones_lists(
    arrays: PreparedImages, files: PreparedImages, prepare_images: Any, tmp_path: Path
) -> None:
    assert all(isinstance(batch, torch.Tensor) and batch.ndim == 4 for batch in arrays.batches("train", 4))
    assert not files.one_size
    assert all(isinstance(batch, list) and batch[0].ndim == 3 for batch in files.batches("train", 4))
    for path in (tmp_path / "birds").rglob("*.png"):
        Image.new("L", (7, 5), 100).save(path)
    equal = prepare_images(ClassFolders(tmp_path, "birds").read())
    assert equal.one_size
    assert [batch.shape for batch in equal.batches("train", 4)] == [(4, 1, 5, 7), (4, 1, 5, 7)]


def test_one_colour_image_makes_all_of_them_rgb(write_folders: Any, prepare_images: Any, tmp_path: Path) -> None:
    write_folders()
    paths = sorted((tmp_path / "birds").rglob("*.png"))
    for path in paths[1:]:
        Image.open(path).convert("L").save(path)
    images = prepare_images(ClassFolders(tmp_path, "birds").read())
    assert images.channels == 3
    assert {image.shape[0] for split in images.splits for image in everything(images, split)} == {3}


def test_large_files_are_shrunk_when_they_are_read(write_folders: Any, prepare_images: Any, tmp_path: Path) -> None:
    write_folders()
    images = prepare_images(ClassFolders(tmp_path, "birds").read(), image_size_limit=5)
    heights, widths = images.card["height"], images.card["width"]
    for image in everything(images, "train"):
        assert min(image.shape[1:]) == 5
        assert heights[0] <= image.shape[1] <= heights[1]
        assert widths[0] <= image.shape[2] <= widths[1]


def test_a_whole_split_is_a_part_that_knows_its_split(arrays: PreparedImages, files: PreparedImages) -> None:
    part = arrays.part("validation")
    assert (part.dataset, part.split, len(part.data)) == ("birds", "validation", 3)
    with pytest.raises(ValueError, match="birds: images differ in size"):
        files.part("train")


def test_files_are_not_copied_and_any_program_can_check_them(files: PreparedImages, tmp_path: Path) -> None:
    folder = files.artifact.folder
    assert {path.name for path in folder.iterdir()} == {
        *("card.json", "manifest.json", "rows.safetensors", "train.sha256", "validation.sha256", "test.sha256")
    }
    lines = (folder / "train.sha256").read_text().splitlines()
    for line in lines:
        digest, path = line.split("  ")
        assert hashlib.sha256((tmp_path / path).read_bytes()).hexdigest() == digest
    subprocess.run(["sha256sum", "--check", "--quiet", folder / "train.sha256"], cwd=tmp_path, check=True)  # noqa: S607


def test_only_files_of_the_batch_at_hand_and_the_next_are_read(
    files: PreparedImages, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []

    def recording(path: Path, **options: Any) -> Any:
        read.append(path)
        return original(path, **options)

    original = read_image
    monkeypatch.setattr(prepared_module, "read_image", recording)
    batches = files.batches("train", 2)
    assert not read
    next(batches)
    assert 2 <= len(read) <= 4


def test_equal_input_gives_equal_bytes(files: PreparedImages, prepare_images: Any, tmp_path: Path) -> None:
    before = files.artifact.digest
    (tmp_path / "prepared").rename(tmp_path / "before")
    assert prepare_images(ClassFolders(tmp_path, "birds").read()).artifact.digest == before
    assert prepare_images(ClassFolders(tmp_path, "birds").read(), seed=1).artifact.digest != before


def test_a_changed_file_is_named(files: PreparedImages, tmp_path: Path) -> None:
    victim = tmp_path / (files.artifact.folder / "train.sha256").read_text().splitlines()[3].split("  ")[1]
    victim.write_bytes(victim.read_bytes() + b"\0")
    with pytest.raises(InputError, match=f"{victim}: changed since"):
        everything(files, "train")
    assert len(everything(files, "test")) == 5


def test_a_missing_file_is_named(files: PreparedImages, tmp_path: Path) -> None:
    victim = tmp_path / (files.artifact.folder / "test.sha256").read_text().splitlines()[0].split("  ")[1]
    victim.unlink()
    with pytest.raises(InputError, match=f"{victim}: cannot be read"):
        everything(files, "test")


@pytest.mark.parametrize("name", ["train.safetensors", "rows.safetensors", "card.json"])
def test_a_flipped_byte_of_what_is_stored_is_noticed(arrays: PreparedImages, name: str, tmp_path: Path) -> None:
    path = arrays.artifact.folder / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(bytes(content))
    with pytest.raises(ArtifactError, match=name):
        everything(prepared_module.open_prepared(arrays.artifact, root=tmp_path), "train")


def test_a_damaged_image_stops_preparation_and_leaves_nothing(
    write_folders: Any, prepare_images: Any, tmp_path: Path
) -> None:
    folder = write_folders()
    (folder / "test" / "wren" / "0.png").write_bytes(b"\x89PNG")
    with pytest.raises(InputError, match=r"test/wren/0.png: not a readable image"):
        prepare_images(ClassFolders(tmp_path, "birds").read())
    assert not list((tmp_path / "prepared").iterdir())


def test_images_of_classes_that_are_not_used_are_not_read(
    write_folders: Any, prepare_images: Any, tmp_path: Path
) -> None:
    folder = write_folders(all=dict.fromkeys("abcdef", 4))
    raw = ClassFolders(tmp_path, "birds").read()
    used = prepare_images(raw, class_limit=2).class_names
    unused = next(name for name in "abcdef" if name not in used)
    (folder / "all" / unused / "0.png").write_bytes(b"not an image")
    assert prepare_images(raw, class_limit=2).class_names == used


def test_the_card_tells_the_whole_story(files: PreparedImages) -> None:
    card = files.card
    assert card["source"] == {"how": "class folders in data.root", "folder": "birds", "sha256": None}
    assert card["licence"] == "not stated"
    assert card["split_rule"].startswith("the source's own train and test parts; ")
    assert card["splits"]["test"]["size"] == 5
    assert card["splits"]["test"]["images_per_class"] == [2, 3]
    index = files.artifact.folder / "test.sha256"
    assert card["splits"]["test"]["images_sha256"] == hashlib.sha256(index.read_bytes()).hexdigest()
    assert {"train_limit", "class_limit", "seed", "image_size_limit", "channels", "height", "width"} <= {*card}


def test_wrong_arguments_are_refused(arrays: PreparedImages) -> None:
    with pytest.raises(ValueError, match="batch_size: 0"):
        arrays.batches("train", 0)
    with pytest.raises(ValueError, match="split: 'val', must be one of train, validation, test"):
        arrays.labels("val")  # type: ignore[arg-type]
