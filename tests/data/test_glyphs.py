"""Digits and glyphs: what every other test and the offline profile stand on."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from softmax_temperature.data.characters import CANVAS, bitmaps, downstream_pool, name_of, pretraining_pool
from softmax_temperature.data.digits import read_digits
from softmax_temperature.data.glyphs import (
    TEST_PER_CLASS,
    TRAIN_PER_CLASS,
    choose_characters,
    draw_glyphs,
    is_glyphs,
    read_glyphs,
)
from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.runner.errors import InputError


def digest(raw: RawDataset) -> str:
    assert raw.test is not None
    pixels = b"".join(np.asarray(part.images).tobytes() for part in (raw.train, raw.test))
    return hashlib.sha256(pixels).hexdigest()


def nearest_class_mean_accuracy(train: RawPart, test: RawPart) -> float:
    fitted, asked = (np.reshape(part.images, (len(part.labels), -1)).astype(float) for part in (train, test))
    means = np.stack([fitted[train.labels == label].mean(0) for label in range(train.labels.max() + 1)])
    closeness = 2 * asked @ means.T - (means**2).sum(1)  # Minus the squared distance, but for a constant of the row.
    return float((closeness.argmax(1) == test.labels).mean())


def test_digits_are_scikit_learns_on_the_scale_of_bytes() -> None:
    raw, original = read_digits(), load_digits()
    assert np.shape(raw.train.images) == (1797, 8, 8, 1)
    assert (raw.train.labels == original.target).all()
    np.testing.assert_allclose(np.asarray(raw.train.images)[..., 0], original.images * 255 / 16, atol=0.5)
    assert raw.test is None


def test_a_glyph_data_set_is_balanced_and_visible() -> None:
    raw = read_glyphs("glyphs-12", seed=0)
    assert raw.test is not None
    for part, each in ((raw.train, TRAIN_PER_CLASS), (raw.test, TEST_PER_CLASS)):
        images = np.asarray(part.images)
        assert images.shape == (12 * each, 32, 32, 1)
        assert images.dtype == np.uint8
        assert (np.bincount(part.labels) == each).all()
        assert (images.max(axis=(1, 2, 3)) - images.mean(axis=(1, 2, 3)) > 80).all()
    assert len(set(raw.class_names)) == 12


def test_no_image_occurs_twice() -> None:
    raw = read_glyphs("glyphs-12", seed=0)
    assert raw.test is not None
    images = [image.tobytes() for part in (raw.train, raw.test) for image in np.asarray(part.images)]
    assert len(set(images)) == len(images)


def test_glyphs_are_the_same_in_another_process() -> None:
    program = (
        "import hashlib; from softmax_temperature.data.glyphs import read_glyphs; raw = read_glyphs('glyphs-5', "
        "seed=3); print(hashlib.sha256(raw.train.images.tobytes() + raw.test.images.tobytes()).hexdigest())"
    )
    other = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.strip()
    assert digest(read_glyphs("glyphs-5", seed=3)) == other


def test_the_seed_changes_characters_and_images() -> None:
    one, other = read_glyphs("glyphs-5", seed=0), read_glyphs("glyphs-5", seed=1)
    assert one.class_names != other.class_names
    assert digest(one) != digest(other)


def test_a_smaller_set_is_the_beginning_of_a_larger_one() -> None:
    small, large = read_glyphs("glyphs-4", seed=0), read_glyphs("glyphs-9", seed=0)
    assert large.class_names[:4] == small.class_names
    assert np.array_equal(np.asarray(large.train.images)[: 4 * TRAIN_PER_CLASS], small.train.images)


def test_pretraining_characters_are_in_no_downstream_set() -> None:
    downstream, pretraining = set(downstream_pool()), set(pretraining_pool())
    assert not downstream & pretraining
    assert len(downstream) >= 1000
    assert len(pretraining) >= 300
    everything = choose_characters(len(downstream), downstream_pool, where="test", seed=5)
    assert not set(everything) & set(choose_characters(300, pretraining_pool, where="test", seed=6))


def test_look_alikes_were_removed() -> None:
    pool = {*downstream_pool(), *pretraining_pool()}
    for alike in ("A\u0391\u0410", "O\u039f\u041e", "x\u0445", "\u2219\u25cf"):  # Latin, Greek, Cyrillic; two bullets.
        assert len(pool & set(alike)) <= 1


def test_every_character_has_ink_inside_its_canvas() -> None:
    for character in [*downstream_pool()[::50], *pretraining_pool()[::50]]:
        for bitmap in bitmaps(character):
            pixels = np.asarray(bitmap)
            assert pixels.shape == (CANVAS, CANVAS)
            assert pixels.max() > 100
            border = np.concatenate([pixels[0], pixels[-1], pixels[:, 0], pixels[:, -1]])
            assert border.max() == 0


@pytest.mark.parametrize(("name", "chance"), [("glyphs-10", 0.1), ("glyphs-100", 0.01)])
def test_raw_pixels_tell_classes_apart_but_not_perfectly(name: str, chance: float) -> None:
    raw = read_glyphs(name, seed=0)
    assert raw.test is not None
    assert 2 * chance < nearest_class_mean_accuracy(raw.train, raw.test) < 0.9


def test_images_of_a_character_do_not_depend_on_its_neighbours() -> None:
    alone, _ = draw_glyphs(["Ж"], 3, seed=0)
    together, labels = draw_glyphs(["@", "Ж"], 3, seed=0)
    assert np.array_equal(together[labels == 1], alone)


def test_class_names_are_printable() -> None:
    assert name_of("Ж") == "U+0416 CYRILLIC CAPITAL LETTER ZHE"


@pytest.mark.parametrize("name", ["glyphs", "glyphs-", "glyphs-ten", "glyphs-10x", "glyphs-pretrain-"])
def test_other_names_are_not_glyphs(name: str) -> None:
    assert not is_glyphs(name)
    with pytest.raises(ValueError, match="name: "):
        read_glyphs(name, seed=0)


@pytest.mark.parametrize("name", ["glyphs-1", "glyphs-5000", "glyphs-pretrain-1000"])
def test_a_number_of_classes_outside_the_pool_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name}: cannot have .* Choose a number of classes from 2 to "):
        read_glyphs(name, seed=0)
