"""Samples are prepared exactly as by plain loops and torchvision's transforms.

Unsuitable samples are refused.
"""

from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torchvision.transforms import v2

from softmax_temperature.training import ImageSet
from softmax_temperature.training.samples import augment, to_rgb
from softmax_temperature.training.texts import TokenSet, TreeSet


def noise(count: int, channels: int = 3, height: int = 5, width: int = 7) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.randint(
        0, 256, (count, channels, height, width), generator=generator, dtype=torch.uint8
    )


@pytest.mark.parametrize("crop_padding", [0, 1, 4])
@pytest.mark.parametrize("flip", [False, True])
def test_augmentation_pads_crops_and_flips_one_image_at_a_time(
    make_recipe: Any, crop_padding: int, flip: bool
) -> None:
    images, recipe = (
        ImageSet(noise(40), torch.zeros(40).long(), "train"),
        make_recipe(crop_padding=crop_padding, flip=flip),
    )
    drawn = images.draw(40, torch.Generator().manual_seed(3), recipe)
    if not (crop_padding or flip):
        assert drawn.shape == (0, 40)
        return
    generator = torch.Generator().manual_seed(3)
    tops, lefts = torch.randint(
        0, 2 * crop_padding + 1, (2, 40), generator=generator
    ).tolist()
    mirrored = (torch.rand(40, generator=generator) < 0.5).tolist()
    before = images.inputs.clone()
    ours = augment(images.inputs, drawn, crop_padding)
    for image, result, top, left, mirror in zip(
        before, ours, tops, lefts, mirrored, strict=True
    ):
        larger = torch.zeros(
            3, 5 + 2 * crop_padding, 7 + 2 * crop_padding, dtype=torch.uint8
        )
        larger[:, crop_padding : crop_padding + 5, crop_padding : crop_padding + 7] = (
            image
        )
        expected = larger[:, top : top + 5, left : left + 7]
        assert torch.equal(result, expected.flip(2) if flip and mirror else expected)
    ours.zero_()
    assert torch.equal(images.inputs, before)


def test_normalisation_equals_torchvisions(make_recipe: Any) -> None:
    images, mean, std = noise(6), [0.49, 0.48, 0.45], [0.2, 0.3, 0.25]
    before = images.clone()
    theirs = v2.Normalize(mean, std)(
        v2.functional.to_dtype(images, torch.float32, scale=True)
    )
    ours = ImageSet(images, torch.zeros(6).long(), "train").prepare(
        images, make_recipe(mean=mean, std=std)
    )
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)
    assert torch.equal(images, before)


@pytest.mark.parametrize(("height", "width"), [(28, 28), (32, 32), (64, 64), (40, 25)])
@pytest.mark.parametrize("channels", [1, 3])
def test_resizing_equals_torchvisions_and_grey_becomes_rgb(
    height: int, width: int, channels: int
) -> None:
    images = noise(3, channels, height, width)
    ours = to_rgb(images, 32)
    exact = v2.functional.resize(images.float(), [32, 32], antialias=True).expand(
        -1, 3, -1, -1
    )
    assert (ours.shape, ours.dtype) == ((3, 3, 32, 32), torch.uint8)
    assert (ours - exact).abs().max() <= 0.5 + 1e-4
    assert torch.equal(to_rgb(images), images.expand(-1, 3, -1, -1))


@given(st.integers(1, 60), st.integers(1, 40))
def test_a_sample_of_images_sorted_by_class_is_balanced(
    count: int, per_class: int
) -> None:
    labels = torch.arange(5).repeat_interleave(per_class)
    images = torch.arange(len(labels), dtype=torch.uint8)[:, None, None, None].expand(
        -1, 3, 1, 1
    )
    some = ImageSet(images, labels, "train").sample(count)
    numbers = some.inputs[:, 0, 0, 0].long()
    assert len(some) == min(count, len(labels))
    assert torch.equal(
        some.labels, numbers // per_class
    )  # Shuffling keeps labels with their images.
    assert (numbers.diff() > 0).all()
    counts = torch.bincount(some.labels, minlength=5)
    assert counts.max() - counts.min() <= 1


TOKENS, TREES = torch.ones(2, 3).long(), torch.tensor([[[3, 0, 0, 1], [0, 0, 0, -1]]])


@pytest.mark.parametrize(
    ("kind", "inputs", "labels", "says"),
    [
        (
            ImageSet,
            noise(2, channels=1),
            (2,),
            r"\(n, 3, height, width\) uint8, got \(2, 1, 5, 7\) torch\.uint8",
        ),
        (ImageSet, noise(2).float(), (2,), r"images .*torch\.float32"),
        (
            ImageSet,
            noise(2),
            (3,),
            r"labels must have shape \(2,\) or \(2, 5, 7\), got \(3,\)",
        ),
        (
            TokenSet,
            TOKENS.int(),
            (2,),
            r"tokens must be \(n, length\) int64, got \(2, 3\) torch.int32",
        ),
        (TokenSet, TOKENS[0], (3,), r"tokens .*\(3,\)"),
        (TokenSet, TOKENS, (2, 1), r"labels must have shape \(2,\), got \(2, 1\)"),
        (
            TokenSet,
            torch.tensor([[1, 0], [0, 0]]),
            (2,),
            "tokens must have no padding before .*in row 1",
        ),
        (TokenSet, torch.tensor([[0, 1], [1, 1]]), (2,), "in row 0"),
        (TokenSet, torch.tensor([[1, 0, 1], [1, 1, 1]]), (2,), "in row 0"),
        (
            TreeSet,
            TREES.int(),
            (1,),
            r"trees must be \(n, nodes, 4\) int64, got \(1, 2, 4\) torch.int32",
        ),
        (TreeSet, TREES[..., :3], (1,), r"trees must be .*\(1, 2, 3\)"),
        (
            TreeSet,
            TREES,
            (1, 3),
            r"labels must have shape \(1,\) or \(1, 2\), got \(1, 3\)",
        ),
    ],
)
def test_anything_but_a_set_of_samples_is_refused(
    kind: Any, inputs: Tensor, labels: tuple[int, ...], says: str
) -> None:
    with pytest.raises(ValueError, match=says):
        kind(inputs, torch.zeros(labels).long(), "train")


def test_recipes_for_other_samples_are_refused(make_recipe: Any) -> None:
    images = ImageSet(noise(2), torch.zeros(2).long(), "train")
    pixels, texts = (
        ImageSet(noise(2), torch.zeros(2, 5, 7).long(), "train"),
        TokenSet(TOKENS, torch.zeros(2).long(), "train"),
    )
    plain = {"mean": None, "std": None}
    texts.check(make_recipe(**plain))
    for samples, changes, says in (
        (images, {"mean": None}, r"must normalise images, got .*recipe.mean=None"),
        (images, {"std": None}, r"must normalise images, got .*recipe.std=None"),
        (pixels, {"flip": True}, "must not augment pixels with labels"),
        (pixels, {"crop_padding": 2}, "must not augment pixels with labels"),
        (texts, plain | {"flip": True}, "neither augment nor normalise texts"),
        (texts, plain | {"crop_padding": 2}, "neither augment nor normalise texts"),
        (texts, plain | {"mean": [0.0] * 3}, "neither augment nor normalise texts"),
    ):
        with pytest.raises(ValueError, match=says):
            samples.check(make_recipe(**changes))
