"""Glyphs are balanced, distinct and visible; scenes have correct labels."""

import numpy as np
import pytest

from softmax_temperature.data.glyphs import (
    TEST_PER_CLASS,
    TRAIN_PER_CLASS,
    VOID,
    downstream_pool,
    pretraining_pool,
    read_glyph_scenes,
    read_glyphs,
)
from softmax_temperature.runner.errors import InputError


def test_a_glyph_data_set_is_balanced_and_a_smaller_one_is_its_beginning() -> None:
    raw = read_glyphs("glyphs-12", seed=0)
    assert raw.test is not None
    sizes = (TRAIN_PER_CLASS, TEST_PER_CLASS)
    for part, size in zip((raw.train, raw.test), sizes, strict=True):
        images = np.asarray(part.samples)
        assert (images.shape, images.dtype) == ((12 * size, 32, 32, 1), np.uint8)
        assert (np.bincount(part.labels) == size).all()
        assert (images.max(axis=(1, 2, 3)) - images.mean(axis=(1, 2, 3)) > 80).all()
    assert len(set(raw.class_names)) == 12
    assert all(name.startswith("U+") for name in raw.class_names)
    images = [
        image.tobytes()
        for part in (raw.train, raw.test)
        for image in np.asarray(part.samples)
    ]
    assert len(set(images)) == len(images), "an image is repeated"
    small = read_glyphs("glyphs-4", seed=0)
    assert raw.class_names[:4] == small.class_names
    assert np.array_equal(
        np.asarray(raw.train.samples)[: 4 * TRAIN_PER_CLASS], small.train.samples
    )


def test_pools_are_large_disjoint_and_without_look_alikes() -> None:
    downstream = set(downstream_pool())
    pretraining = set(pretraining_pool())
    assert not downstream & pretraining
    assert len(downstream) >= 1000
    assert len(pretraining) >= 300
    # The glyphs of each group look alike: Latin, Greek and Cyrillic letters, or
    # bullets.
    for alike in ("A\u0391\u0410", "O\u039f\u041e", "x\u0445", "\u2219\u25cf"):
        assert len((downstream | pretraining) & set(alike)) <= 1


@pytest.mark.parametrize("name", ["glyphs-1", "glyphs-5000", "glyphs-pretrain-1000"])
def test_a_number_of_classes_outside_the_pool_is_refused(name: str) -> None:
    with pytest.raises(
        InputError,
        match=f"{name}: cannot have .* Choose a number of classes from 2 to ",
    ):
        read_glyphs(name, seed=0)


def test_every_pixels_label_is_the_class_of_what_was_drawn_there() -> None:
    images, labels = (side[:60] for side in read_glyph_scenes("glyph-scenes-4", seed=0))
    assert images.shape == labels.shape == (60, 64, 64)
    assert set(np.unique(labels)) == {0, 1, 2, 3, 4, VOID}
    # Each scene has characters in two to four of its quarters, one per quarter.
    quarters = (
        labels.reshape(60, 2, 32, 2, 32).transpose(0, 1, 3, 2, 4).reshape(60, 4, -1)
    )
    classes = [
        [set(quarter) - {0, VOID} for quarter in scene] for scene in quarters.tolist()
    ]
    assert {sum(map(bool, scene)) for scene in classes} == {2, 3, 4}
    assert all(len(quarter) <= 1 for scene in classes for quarter in scene)
    for image, label in zip(images.astype(float), labels, strict=True):
        is_ink = (label > 0) & (label < VOID)
        paper = image[label == 0].mean()
        ink = image[is_ink].mean()
        edge = image[label == VOID].mean()
        assert ink - paper > 40
        assert paper < edge < ink
