"""Images and label maps are read unchanged; errors name the file at fault."""

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

    Each channel of an image is 20 times its label map.
    """
    generator = np.random.default_rng(0)
    folder = tmp_path / "town"
    for part, count in (("train", 4), ("val", 2), ("test", 3)):
        for number in range(count):
            labels = generator.choice([0, 1, 2, 9], size=SIDES)
            image = np.stack([20 * labels] * 3, axis=2)
            save(folder / f"labels/{part}/{number}.png", labels)
            save(folder / f"images/{part}/{number}.png", image)
    return folder


def read(folder: Path, form: Form = FORM) -> Parts:
    return read_segmentation(folder.name, form, root=folder.parent, seed=0)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("images/train/7.gif", r"7\.gif: cannot be used, because \.gif files"),
        ("labels/test/7.JFIF", r"7\.JFIF: cannot be used, because \.JFIF files"),
        ("images/train/1.jpg", r"1\.png: has the same stem as 1\.jpg"),
    ],
)
def test_an_image_that_would_be_left_out_is_refused(
    town: Path, name: str, says: str
) -> None:
    (town / name).write_bytes(b"")
    with pytest.raises(InputError, match=says):
        read(town)


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
    whole = read(town)["test"]
    cropped = read(town, Form(3, 9, (16, 32), None))["test"]
    assert torch.equal(cropped.data, whole.data[:, :, 8:24, 8:40])
    assert torch.equal(cropped.labels, whole.labels[:, 8:24, 8:40])
    resized = read(town, Form(3, 9, (32, 32), (16, 16)))["test"]
    # When an image is halved, each label is one of the four labels of a 2×2 block, and
    # each pixel is a weighted mean of the 4×4 pixels around that block.
    blocks = whole.labels[:, :, 8:40].reshape(3, 16, 2, 16, 2)
    blocks = blocks.permute(0, 1, 3, 2, 4).flatten(3)
    assert (resized.labels[..., None] == blocks).any(3).all()
    tent = torch.tensor([1, 3, 3, 1]) / 8
    windows = whole.data[:, 0, 1:-1, 9:39].float().unfold(1, 4, 2).unfold(2, 4, 2)
    inside = torch.einsum("nhwij,i,j->nhw", windows, tent, tent)
    torch.testing.assert_close(
        resized.data[:, 0, 1:-1, 1:-1].float(), inside, atol=1.01, rtol=0
    )


def remove_labels(town: Path) -> None:
    shutil.rmtree(town / "labels/test")


def remove_a_label_map(town: Path) -> None:
    (town / "labels/train/2.png").unlink()


def shrink_a_label_map(town: Path) -> None:
    save(town / "labels/train/0.png", np.zeros((32, 32)))


def write_an_unknown_label(town: Path) -> None:
    save(town / "labels/val/0.png", np.full(SIDES, 7))


def colour_a_label_map(town: Path) -> None:
    save(town / "labels/train/0.png", np.zeros((*SIDES, 3)))


def damage_a_label_map(town: Path) -> None:
    (town / "labels/test/2.png").write_text("404")


def enlarge_a_pair(town: Path) -> None:
    save(town / "images/train/3.png", np.zeros((48, 64, 3)))
    save(town / "labels/train/3.png", np.zeros((48, 64)))


def change_nothing(town: Path) -> None:
    pass


LARGE_CROP = FORM._replace(crop=(64, 32))
ODD_CROP = FORM._replace(crop=(24, 48))


@pytest.mark.parametrize(
    ("spoil", "form", "says"),
    [
        (remove_labels, FORM, r"town: test: 3 file\(s\) have no counterpart .* as 0"),
        (remove_a_label_map, FORM, r"town: train: 1 file\(s\) have no counterpart"),
        (
            shrink_a_label_map,
            FORM,
            r"0\.png: has 32×32 pixels, but its image has 32×48",
        ),
        (write_an_unknown_label, FORM, r"val/0\.png: holds label 7, .* nor 9 \(void\)"),
        (colour_a_label_map, FORM, r"0\.png: does not hold one 8-bit number"),
        (damage_a_label_map, FORM, r"test/2\.png: is not a readable image"),
        (
            enlarge_a_pair,
            FORM,
            r"train/3\.png: has 48×64 pixels, but the first .* 32×48",
        ),
        (change_nothing, LARGE_CROP, r"0\.png: is 32×48 pixels\. Set a smaller .*crop"),
        (change_nothing, ODD_CROP, "has 24×48 pixels; .* multiples of 16"),
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


def validation_rows(parts: Parts, seed: int) -> list[int]:
    return set_aside(parts, 2, seed=seed)["validation"].index.tolist()


def test_images_are_set_aside_from_the_training_part(town: Path) -> None:
    parts = read(town)
    divided = set_aside(parts, 3, seed=1)
    train, validation = divided["train"], divided["validation"]
    assert (train.split, len(train.labels)) == ("train", 1)
    assert (validation.split, len(validation.labels)) == ("validation", 3)
    assert sorted([*train.index, *validation.index]) == [0, 1, 2, 3]
    for part in (train, validation):
        assert torch.equal(part.labels, parts["train"].labels[part.index])


def test_the_images_that_are_set_aside_depend_on_the_seed(town: Path) -> None:
    parts = read(town)
    choices = {tuple(validation_rows(parts, seed)) for seed in range(9)}
    assert len(choices) > 1
    assert validation_rows(parts, 0) == validation_rows(parts, 0)


def test_without_a_number_the_data_sets_own_validation_part_is_needed(
    town: Path,
) -> None:
    parts = read(town)
    assert set_aside(parts, None, seed=0)["validation"] is parts["validation"]
    del parts["validation"]
    with pytest.raises(InputError, match=r"town: has no images/val\. Set .*_images"):
        set_aside(parts, None, seed=0)


def test_not_all_images_can_be_set_aside(town: Path) -> None:
    with pytest.raises(InputError, match=r"has 4 training images, .* set aside 4"):
        set_aside(read(town), 4, seed=0)


def test_glyph_scenes_are_read_as_a_data_set() -> None:
    name = "glyph-scenes-3"
    form = Form(4, VOID, None, None)
    parts = read_segmentation(name, form, root=Path(), seed=0)
    images, labels = read_glyph_scenes(name, seed=0)
    assert list(parts) == ["train", "test"]
    assert np.array_equal(parts["train"].labels, labels[:400])
    assert np.array_equal(parts["test"].data[:, 1], images[400:])
    assert len(images) == 500


def test_scenes_of_another_form_are_refused() -> None:
    form = Form(3, VOID, None, None)
    with pytest.raises(InputError, match="has 4 classes including paper, void 255"):
        read_segmentation("glyph-scenes-3", form, root=Path(), seed=0)
