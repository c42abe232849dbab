"""Images on their way to the network: by loops over single images, and as torchvision does it."""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torchvision.transforms import v2

from softmax_temperature.training import ImageSet, to_rgb
from softmax_temperature.training.images import augment, normalise


def noise(count: int, channels: int = 3, height: int = 5, width: int = 7) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(0, 256, (count, channels, height, width), generator=generator, dtype=torch.uint8)


# ---- augmentation


@pytest.mark.parametrize("crop_padding", [0, 1, 4])
@pytest.mark.parametrize("flip", [False, True])
def test_augmentation_pads_crops_and_flips_one_image_at_a_time(make_recipe: Any, crop_padding: int, flip: bool) -> None:
    images, recipe = ImageSet(noise(40), torch.zeros(40).long()), make_recipe(crop_padding=crop_padding, flip=flip)
    drawn = images.draw(40, torch.Generator().manual_seed(3), recipe)
    if not (crop_padding or flip):
        assert drawn.shape == (0, 40)
        return
    generator = torch.Generator().manual_seed(3)
    tops, lefts = torch.randint(0, 2 * crop_padding + 1, (2, 40), generator=generator).tolist()
    mirrored = (torch.rand(40, generator=generator) < 0.5).tolist()
    before = images.inputs.clone()
    ours = augment(images.inputs, drawn, crop_padding)
    for image, result, top, left, mirror in zip(before, ours, tops, lefts, mirrored, strict=True):
        larger = torch.zeros(3, 5 + 2 * crop_padding, 7 + 2 * crop_padding, dtype=torch.uint8)
        larger[:, crop_padding : crop_padding + 5, crop_padding : crop_padding + 7] = image
        expected = larger[:, top : top + 5, left : left + 7]
        assert torch.equal(result, expected.flip(2) if flip and mirror else expected)
    ours.zero_()
    assert torch.equal(images.inputs, before)


# ---- normalisation and colour


def test_normalisation_is_that_of_torchvision() -> None:
    images, mean, std = noise(6), [0.49, 0.48, 0.45], [0.2, 0.3, 0.25]
    before = images.clone()
    theirs = v2.Normalize(mean, std)(v2.functional.to_dtype(images, torch.float32, scale=True))
    ours = normalise(images, mean, std)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    assert torch.equal(images, before)
    assert ours.is_contiguous(memory_format=torch.channels_last)
    # By hand: (255 / 255 - 0.5) / 0.25 = 2 and (0 - 0.5) / 0.25 = -2.
    ends = torch.tensor([0, 255], dtype=torch.uint8)[:, None, None, None].expand(2, 3, 1, 1)
    assert normalise(ends, [0.5] * 3, [0.25] * 3).flatten(1).tolist() == [[-2.0] * 3, [2.0] * 3]


def test_grey_images_have_three_equal_channels_and_coloured_ones_stay() -> None:
    grey, coloured = noise(4, channels=1), noise(4)
    assert torch.equal(to_rgb(grey), torch.cat([grey, grey, grey], dim=1))
    assert torch.equal(to_rgb(coloured), coloured)


@pytest.mark.parametrize(("height", "width"), [(28, 28), (64, 64), (40, 25)])
@pytest.mark.parametrize("channels", [1, 3])
def test_resizing_is_that_of_torchvision(height: int, width: int, channels: int) -> None:
    images = noise(3, channels, height, width)
    ours = to_rgb(images, 32)
    exact = v2.functional.resize(images.float(), [32, 32], antialias=True).expand(-1, 3, -1, -1)
    assert ours.shape == (3, 3, 32, 32)
    assert ours.dtype == torch.uint8
    assert (ours - exact).abs().max() <= 0.5 + 1e-4
    # On bytes torchvision may compute with whole numbers, which is one level off here and there.
    on_bytes = v2.functional.resize(images, [32, 32], antialias=True)
    assert (ours.int() - on_bytes.int()).abs().max() <= 1


# ---- sets


@pytest.mark.parametrize(
    ("images", "labels", "says"),
    [
        (noise(2, channels=1), torch.zeros(2), r"\(n, 3, height, width\) uint8, got \(2, 1, 5, 7\) torch\.uint8"),
        (noise(2).float(), torch.zeros(2), r"images .*torch\.float32"),
        (noise(2)[0], torch.zeros(2), r"images .*\(3, 5, 7\)"),
        (noise(2), torch.zeros(3), r"labels must have shape \(2,\), .*got \(3,\)"),
        (noise(2), torch.zeros(2, 1), r"labels must have shape \(2,\), .*got \(2, 1\)"),
    ],
)
def test_what_is_no_image_set_is_refused(images: Tensor, labels: Tensor, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        ImageSet(images, labels.long())


@given(st.integers(1, 60), st.integers(1, 40))
def test_a_sample_of_images_sorted_by_class_is_balanced(count: int, per_class: int) -> None:
    classes = 5
    labels = torch.arange(classes).repeat_interleave(per_class)
    images = torch.arange(len(labels), dtype=torch.uint8)[:, None, None, None].expand(-1, 3, 1, 1)
    whole = ImageSet(images, labels)
    some = whole.sample(count)
    numbers = some.inputs[:, 0, 0, 0].long()
    assert len(some) == min(count, len(whole))
    assert torch.equal(some.labels, numbers // per_class)  # Labels go with their images.
    assert (numbers.diff() > 0).all()
    counts = torch.bincount(some.labels, minlength=classes)
    assert counts.max() - counts.min() <= 1


@pytest.mark.parametrize("absent", ["mean", "std"])
def test_images_are_not_trained_without_a_normalisation(absent: str, make_trainer: Any) -> None:
    with pytest.raises(ValueError, match=rf"recipe must normalise images, got .*recipe.{absent}=None"):
        make_trainer(**{absent: None})
