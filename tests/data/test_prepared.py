"""Prepared data are read back unchanged; an error names any damaged file."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from softmax_temperature.data.archives import JsonlArchive, NpzArchive
from softmax_temperature.data.class_folders import ClassFolders
from softmax_temperature.data.prepared import PreparedData
from softmax_temperature.runner.artifacts import ArtifactError
from softmax_temperature.runner.errors import InputError

STRANGE = 'a "quoted" text,\u2028 two\nlines,\x85 and \x00 ünicode 🙂'


@pytest.fixture
def arrays(write_npz: Any, prepare_data: Any) -> Any:
    path = write_npz("arrays", class_names=np.array(["crow", "wren", "tit"]))
    return prepare_data(NpzArchive(path).read())


@pytest.fixture
def files(write_folders: Any, prepare_data: Any, tmp_path: Path) -> Any:
    write_folders(train={"crow": 6, "wren": 5}, test={"crow": 2, "wren": 3})
    return prepare_data(ClassFolders(tmp_path, "birds").read())


@pytest.fixture
def talk(write_jsonl: Any, prepare_data: Any) -> Any:
    rows = [
        {"split": split, "label": number % 2, "text": f"{split} {number}"}
        for split, size in (("train", 20), ("test", 6))
        for number in range(size)
    ]
    rows.append({"split": "test", "label": 1, "text": STRANGE})
    return prepare_data(JsonlArchive(write_jsonl(*rows)).read())


def everything(
    images: PreparedData, split: Any, batch_size: int = 2
) -> list[torch.Tensor]:
    return [image for batch in images.batches(split, batch_size) for image in batch]


def test_arrays_come_back_channels_first(arrays: PreparedData, tmp_path: Path) -> None:
    stored = np.load(tmp_path / "arrays.npz")
    for split in arrays.splits:
        part = arrays.part(split)
        source = "test" if split == "test" else "train"
        images = torch.from_numpy(stored[f"x_{source}"].transpose(0, 3, 1, 2))
        labels = torch.from_numpy(stored[f"y_{source}"])
        assert torch.equal(part.data, images[part.index])
        assert torch.equal(part.labels, labels[part.index])
        assert torch.equal(torch.stack(everything(arrays, split)), part.data)


def test_files_come_back_in_the_order_of_their_labels(
    files: PreparedData, tmp_path: Path
) -> None:
    paths = sorted((tmp_path / "birds" / "train").glob("*/*.png"))
    images = everything(files, "train")
    labels = files.labels("train")
    rows = files.index("train")
    for image, label, row in zip(images, labels, rows, strict=True):
        pixels = np.array(Image.open(paths[row])).transpose(2, 0, 1)
        assert np.array_equal(image.numpy(), pixels)
        assert files.class_names[label] == paths[row].parent.name


def test_equal_sizes_give_tensors_and_unequal_ones_lists(
    files: PreparedData, prepare_data: Any, tmp_path: Path
) -> None:
    for batch in files.batches("train", 4):
        assert isinstance(batch, list)
        assert batch[0].ndim == 3
    for path in (tmp_path / "birds").rglob("*.png"):
        Image.new("L", (7, 5), 100).save(path)
    equal = prepare_data(ClassFolders(tmp_path, "birds").read())
    shapes = [batch.shape for batch in equal.batches("train", 4)]
    assert shapes == [(4, 1, 5, 7), (4, 1, 5, 7)]


def test_a_changed_or_missing_file_is_named(
    files: PreparedData, tmp_path: Path
) -> None:
    lines = (files.artifact.folder / "train.sha256").read_text().splitlines()
    _, _, path = lines[3].partition("  ")
    victim = tmp_path / path
    victim.write_bytes(victim.read_bytes() + b"\0")
    with pytest.raises(InputError, match=f"{victim}: changed since"):
        everything(files, "train")
    victim.unlink()
    with pytest.raises(InputError, match=f"{victim}: cannot be read"):
        everything(files, "train")


def read_again(data: PreparedData) -> None:
    again = PreparedData(data.artifact, root=data.root)
    again.texts("train") if again.form == "texts" else again.part("train")


@pytest.mark.parametrize(
    "name", ["train.safetensors", "train.jsonl", "rows.safetensors", "card.json"]
)
def test_a_flipped_byte_in_a_stored_file_is_noticed(
    arrays: PreparedData, talk: PreparedData, name: str
) -> None:
    data = talk if name == "train.jsonl" else arrays
    path = data.artifact.folder / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(bytes(content))
    with pytest.raises(ArtifactError, match=name):
        read_again(data)


def test_a_card_records_source_splits_and_limits(
    files: PreparedData, talk: PreparedData
) -> None:
    card = files.card
    assert card["source"] == {
        "how": "class folders in data.root",
        "folder": "birds",
        "sha256": None,
    }
    assert card["split_rule"].startswith("the source's own train and test parts; ")
    listing = (files.artifact.folder / "test.sha256").read_bytes()
    digest = hashlib.sha256(listing).hexdigest()
    assert card["splits"]["test"] == {
        "size": 5,
        "images_per_class": [2, 3],
        "images_sha256": digest,
    }
    assert {
        "train_limit",
        "class_limit",
        "seed",
        "image_size_limit",
        "channels",
        "height",
        "width",
    } <= {*card}
    assert talk.card["form"] == "texts"
    assert talk.card["licence"] == "not stated"
    assert talk.card["title"] == "talk"
    assert talk.card["splits"]["test"]["characters"] == [len("test 0"), len(STRANGE)]
    assert talk.texts("test").data[-1] == STRANGE
