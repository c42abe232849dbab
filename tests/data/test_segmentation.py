"""Images and label maps are read as they are; wrong ones are refused by name."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from softmax_temperature.data.glyphs import VOID, read_glyph_scenes
from softmax_temperature.data.segmentation import (
    Form,
    Parts,
    read_segmentation,
    segmentation_digest,
    set_aside,
)
from softmax_temperature.data.splits import SPLITS
from softmax_temperature.runner.errors import InputError

FORM = Form(classes=3, void=9, crop=None, size=None)
SIDES = (32, 48)


def save(path: Path, pixels: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels.astype(np.uint8)).save(path)


@pytest.fixture
def town(tmp_path: Path) -> Path:
    """A folder with 4 training, 2 validation and 3 test pairs of 32×48 pixels.

    An image has 20 times its labels in each channel.
    """
    generator = np.random.default_rng(0)
    for part, count in (("train", 4), ("val", 2), ("test", 3)):
        for number in range(count):
            labels = generator.choice([0, 1, 2, 9], size=SIDES)
            save(tmp_path / f"town/labels/{part}/{number}.png", labels)
            save(
                tmp_path / f"town/images/{part}/{number}.png",
                np.stack([20 * labels] * 3, axis=2),
            )
    return tmp_path / "town"


def read(folder: Path, form: Form = FORM) -> Parts:
    return read_segmentation(folder.name, form, root=folder.parent, seed=0)


def test_images_and_labels_are_those_of_the_files(town: Path) -> None:
    parts = read(town)
    assert [parts[split].data.shape for split in SPLITS] == [
        (count, 3, *SIDES) for count in (4, 2, 3)
    ]
    for part in parts.values():
        assert part.data.dtype == part.labels.dtype == torch.uint8
        assert torch.equal(part.data, 20 * part.labels[:, None].expand(-1, 3, -1, -1))
        assert part.index.tolist() == list(range(len(part.labels)))
    assert np.array_equal(
        parts["test"].labels[2], np.asarray(Image.open(town / "labels/test/2.png"))
    )


def test_the_middle_is_cropped_and_the_rest_resized(town: Path) -> None:
    whole, cropped = read(town)["test"], read(town, Form(3, 9, (16, 32), None))["test"]
    assert torch.equal(cropped.data, whole.data[:, :, 8:24, 8:40])
    assert torch.equal(cropped.labels, whole.labels[:, 8:24, 8:40])
    resized = read(town, Form(3, 9, (32, 32), (16, 16)))["test"]
    # Halved: labels are one of each 2×2, images a mean around them, without a shift
    # against each other.
    blocks = (
        whole.labels[:, :, 8:40]
        .reshape(3, 16, 2, 16, 2)
        .permute(0, 1, 3, 2, 4)
        .flatten(3)
    )
    assert (resized.labels[..., None] == blocks).any(3).all()
    tent = torch.tensor([1, 3, 3, 1]) / 8
    windows = whole.data[:, 0, 1:-1, 9:39].float().unfold(1, 4, 2).unfold(2, 4, 2)
    inside = torch.einsum("nhwij,i,j->nhw", windows, tent, tent)
    torch.testing.assert_close(
        resized.data[:, 0, 1:-1, 1:-1].float(), inside, atol=1.01, rtol=0
    )


def put(path: str, pixels: np.ndarray) -> Callable[[Path], None]:
    return lambda town: save(town / path, pixels)


def larger(file: str) -> Callable[[Path], None]:
    def spoil(town: Path) -> None:
        for kind, shape in (("images", (48, 64, 3)), ("labels", (48, 64))):
            save(town / kind / file, np.zeros(shape))

    return spoil


@pytest.mark.parametrize(
    ("spoil", "form", "says"),
    [
        (
            lambda town: shutil.rmtree(town / "labels/test"),
            FORM,
            "town: test: 3 files have no counterpart .* as 0",
        ),
        (
            lambda town: (town / "labels/train/2.png").unlink(),
            FORM,
            "town: train: 1 files have no counterpart",
        ),
        (
            put("labels/train/0.png", np.zeros((32, 32))),
            FORM,
            r"0\.png: is 32×32 pixels, its image 32×48",
        ),
        (
            put("labels/val/0.png", np.full(SIDES, 7)),
            FORM,
            r"val/0\.png: holds label 7, .* 3 classes nor 9 \(void\)",
        ),
        (
            put("labels/train/0.png", np.zeros((*SIDES, 3))),
            FORM,
            r"0\.png: is not one 8-bit number",
        ),
        (
            lambda town: (town / "labels/test/2.png").write_text("404"),
            FORM,
            r"test/2\.png: not a readable image",
        ),
        (
            lambda _: None,
            FORM._replace(crop=(64, 32)),
            r"0\.png: is 32×48 pixels\. Set a smaller .*crop",
        ),
        (
            lambda _: None,
            FORM._replace(crop=(24, 48)),
            "gives 24×48 pixels, not multiples of 16",
        ),
        (
            larger("train/3.png"),
            FORM,
            r"train/3\.png: gives 48×64 pixels, the first image 32×48\. Set .*size",
        ),
    ],
)
def test_a_wrong_folder_is_refused_with_the_place_and_a_remedy(
    town: Path, spoil: Callable[[Path], None], form: Form, says: str
) -> None:
    spoil(town)
    with pytest.raises(InputError, match=says):
        read(town, form)


def test_a_changed_label_changes_the_digest(town: Path) -> None:
    before = segmentation_digest("town", root=town.parent)
    save(town / "labels/train/1.png", np.zeros(SIDES))
    assert segmentation_digest("town", root=town.parent) != before


def test_an_absent_data_set_says_what_to_put_where(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match=r"data set ade20k: not found in .*255 is void"
    ):
        segmentation_digest("ade20k", root=tmp_path)


def test_images_are_set_aside_from_the_training_part(town: Path) -> None:
    parts = read(town)
    divided = set_aside(parts, 3, seed=1)
    indices = [divided[split].index.tolist() for split in ("train", "validation")]
    assert sorted([*indices[0], *indices[1]]) == [0, 1, 2, 3]
    assert [len(one) for one in indices] == [1, 3]
    for split in ("train", "validation"):
        assert torch.equal(
            divided[split].labels, parts["train"].labels[divided[split].index]
        )
        assert divided[split].split == split
    assert (
        len(
            {
                tuple(set_aside(parts, 2, seed=seed)["validation"].index.tolist())
                for seed in range(9)
            }
        )
        > 1
    )
    assert set_aside(parts, None, seed=0)["validation"] is parts["validation"]
    with pytest.raises(
        InputError, match="has 4 training images, 4 of them to set aside"
    ):
        set_aside(parts, 4, seed=0)
    del parts["validation"]
    with pytest.raises(
        InputError,
        match=r"town: has no images/val\. Set cooling\.segmentation\.cooling_images",
    ):
        set_aside(parts, None, seed=0)


def test_glyph_scenes_come_as_a_data_set_does() -> None:
    parts = read_segmentation(
        "glyph-scenes-3", Form(4, VOID, None, None), root=Path(), seed=0
    )
    images, labels = read_glyph_scenes("glyph-scenes-3", seed=0)
    assert {split: len(part.labels) for split, part in parts.items()} == {
        "train": 400,
        "test": 100,
    }
    assert np.array_equal(parts["test"].data[:, 1], images[400:])
    assert np.array_equal(parts["train"].labels, labels[:400])
    with pytest.raises(
        InputError,
        match="glyph-scenes-3: has 4 classes with paper, void 255, and one size",
    ):
        read_segmentation(
            "glyph-scenes-3", Form(3, VOID, None, None), root=Path(), seed=0
        )
