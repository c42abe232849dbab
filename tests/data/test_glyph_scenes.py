"""Glyph scenes: every pixel's label is true of what was drawn there."""

from __future__ import annotations

import numpy as np
import pytest

from softmax_temperature.data.glyph_scenes import VOID, classes_of, draw_scenes, is_glyph_scenes, read_glyph_scenes
from softmax_temperature.data.glyphs import downstream_pool
from softmax_temperature.runner.errors import InputError


def test_labels_are_bright_where_they_say_so() -> None:
    images, labels = draw_scenes(downstream_pool()[:4], 60, seed=0)
    assert images.shape == labels.shape == (60, 64, 64)
    assert images.dtype == labels.dtype == np.uint8
    assert set(np.unique(labels)) == {0, 1, 2, 3, 4, VOID}
    # Two to four quarters of each scene have a character, and a quarter has only one.
    quarters = labels.reshape(60, 2, 32, 2, 32).transpose(0, 1, 3, 2, 4).reshape(60, 4, -1)
    classes = [[set(quarter) - {0, VOID} for quarter in scene] for scene in quarters.tolist()]
    assert {sum(map(bool, scene)) for scene in classes} == {2, 3, 4}
    assert all(len(quarter) <= 1 for scene in classes for quarter in scene)
    for image, label in zip(images.astype(float), labels, strict=True):
        paper, ink, edge = (image[part].mean() for part in (label == 0, (label > 0) & (label < VOID), label == VOID))
        assert ink - paper > 40
        assert paper < edge < ink
    assert 0.01 < (labels == VOID).mean() < 0.1


def test_fewer_scenes_are_the_first_and_the_seed_changes_them() -> None:
    characters = downstream_pool()[:3]
    few, many, other = (draw_scenes(characters, count, seed=seed) for count, seed in ((3, 0), (5, 0), (3, 1)))
    for kind in range(2):
        assert np.array_equal(few[kind], many[kind][:3])
        assert not np.array_equal(few[kind], other[kind])


def test_names() -> None:
    assert is_glyph_scenes("glyph-scenes-12")
    assert classes_of("glyph-scenes-12") == 13
    for name in ("glyphs-12", "glyph-scenes", "glyph-scenes-x", "my-glyph-scenes-3"):
        assert not is_glyph_scenes(name)
        with pytest.raises(ValueError, match="name: "):
            classes_of(name)
    with pytest.raises(InputError, match="glyph-scenes-1: cannot have 1 classes"):
        read_glyph_scenes("glyph-scenes-1", seed=0)
