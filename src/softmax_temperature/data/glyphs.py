"""Glyphs: Unicode characters in many typefaces, distorted and noisy; image data of any number of classes, offline.

`glyphs-N` has N classes; `glyphs-pretrain-N` has N classes that no `glyphs-N` uses, to train backbones on. A class has
TRAIN_PER_CLASS images to train on and TEST_PER_CLASS to test on, of 32 x 32 grey pixels.

All random numbers are small integers, and every step after the rendering is exact in floating point, so equal versions
of numpy, Pillow and matplotlib draw equal pixels on every machine.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image

from softmax_temperature.data.characters import CANVAS, bitmaps, downstream_pool, name_of, pretraining_pool
from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

TRAIN_PER_CLASS = 40
TEST_PER_CLASS = 15
LEAST_CLASSES = 2

_NAME = re.compile(r"glyphs-(pretrain-)?([0-9]+)")
_UNIT = 1024  # The matrix of a distortion is a multiple of 1/_UNIT, so that its products with pixel places are exact.
_BEND = 200  # Largest departure of the matrix from the identity, in units: rotation, shear and stretch of up to 20 %.
_SHIFT = 8  # Largest shift on the canvas, in pixels of half an image pixel.
_NOISE = 30  # Largest value of either of two uniform noises that are added to a pixel.


def is_glyphs(name: str) -> bool:
    """Whether a data set's name is one of glyphs."""
    return _NAME.fullmatch(name) is not None


def read_glyphs(name: str, *, seed: int) -> RawDataset:
    """Draw a data set of glyphs.

    With one seed, a smaller set's classes and images are among a larger one's.

    Args:
        name: "glyphs-N" or "glyphs-pretrain-N".
        seed: chooses the characters from their pool, and draws the images.

    Raises:
        InputError: the pool has fewer than N characters, or N is below 2.
    """
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"name: {name!r}, must be glyphs-N or glyphs-pretrain-N")
    pool = pretraining_pool if match[1] else downstream_pool
    characters = choose_characters(int(match[2]), pool, where=name, seed=seed)
    images, labels = draw_glyphs(characters, TRAIN_PER_CLASS + TEST_PER_CLASS, seed=seed)
    number = np.arange(len(labels)) % (TRAIN_PER_CLASS + TEST_PER_CLASS)
    train = number < TRAIN_PER_CLASS
    return RawDataset(
        name=name,
        class_names=tuple(name_of(character) for character in characters),
        train=RawPart(images[train], labels[train]),
        test=RawPart(images[~train], labels[~train]),
        source={"how": "drawn by softmax_temperature.data.glyphs", "seed": seed},
        split_rule=f"of each class {TRAIN_PER_CLASS} images to train and {TEST_PER_CLASS} to test, drawn independently",
    )


def choose_characters(number: int, pool: Callable[[], tuple[str, ...]], *, where: str, seed: int) -> tuple[str, ...]:
    """The first `number` characters of a pool in an order that depends on the seed.

    Raises:
        InputError: there are not so many, or `number` is below 2; `where` names what asked for them.
    """
    characters = pool()
    if not LEAST_CLASSES <= number <= len(characters):
        remedy = f"Choose a number of classes from {LEAST_CLASSES} to {len(characters)}."
        raise InputError(f"cannot have {number} classes", where=where, remedy=remedy)
    order = np.random.default_rng([seed, *b"characters"]).permutation(len(characters))
    return tuple(characters[place] for place in order[:number])


def draw_glyphs(
    characters: Sequence[str], images_per_class: int, *, seed: int
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Draw every character so many times, each in a random typeface, distortion, contrast and noise.

    Args:
        characters: one for each class.
        images_per_class: how many of each.
        seed: a character's images depend on it and on the character alone.

    Returns:
        images: (n, 32, 32, 1) uint8, class by class.
        labels: (n,) int64.
    """
    images = np.concatenate([_draw(character, images_per_class, seed) for character in characters])
    return images[..., None], np.repeat(np.arange(len(characters)), images_per_class)


def draw_ink(character: str, count: int, generator: np.random.Generator) -> NDArray[np.uint8]:
    """One character in random typefaces and distortions, without paper and noise.

    Args:
        character: which one.
        count: how many times.
        generator: draws typefaces, distortions and places.

    Returns:
        (count, 32, 32) uint8: 0 where there is no ink, 255 where a pixel is full of it.
    """
    faces = bitmaps(character)
    face = generator.integers(len(faces), size=count)
    matrix = np.array([_UNIT, 0, 0, _UNIT]) + generator.integers(-_BEND, _BEND, size=(count, 4), endpoint=True)
    shift = generator.integers(-_SHIFT, _SHIFT, size=(count, 2), endpoint=True)
    return np.stack([_distorted(faces[face[row]], matrix[row], shift[row]) for row in range(count)])


def develop(ink: NDArray[np.uint8], generator: np.random.Generator) -> NDArray[np.uint8]:
    """Give each image its own brightness of paper and ink, then noise, all in integers.

    Args:
        ink: (n, height, width) uint8, as `draw_ink` returns it.
        generator: draws brightness and noise.

    Returns:
        (n, height, width) uint8.
    """
    count = len(ink)
    paper = generator.integers(0, 80, size=(count, 1, 1))
    contrast = generator.integers(90, 176, size=(count, 1, 1))
    noise = generator.integers(-_NOISE, _NOISE, size=(2, *ink.shape), endpoint=True).sum(axis=0)
    pixels = paper + contrast * ink.astype(np.int64) // 255 + noise
    return np.asarray(pixels.clip(0, 255), dtype=np.uint8)


def _draw(character: str, count: int, seed: int) -> NDArray[np.uint8]:
    """(count, 32, 32) uint8: images of one character."""
    generator = np.random.default_rng([seed, ord(character)])
    return develop(draw_ink(character, count, generator), generator)


def _distorted(face: Image.Image, matrix: NDArray[np.int64], shift: NDArray[np.int64]) -> NDArray[np.uint8]:
    """(32, 32) uint8: an affine map about the centre, drawn at twice the size and averaged down."""
    (a, b, d, e), centre = matrix / _UNIT, CANVAS / 2
    moved = centre + shift
    data = (a, b, centre - a * moved[0] - b * moved[1], d, e, centre - d * moved[0] - e * moved[1])
    return np.asarray(face.transform(face.size, Image.Transform.AFFINE, data, Image.Resampling.BILINEAR).reduce(2))
