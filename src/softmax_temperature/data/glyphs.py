"""Glyphs: Unicode characters in many typefaces, distorted and noisy; image data of any
number of classes, offline.

`glyphs-N` has N classes of 32 x 32 grey pixels; `glyphs-pretrain-N` N classes that no
`glyphs-N` uses, to train backbones on. `glyph-scenes-N` has a class for every pixel: N
characters, which are the classes 1 to N, two to four of them in the quarters of 64 x 64
grey pixels; class 0 is paper, and pixels that ink fills in part are void.

The characters depend only on the fonts that matplotlib ships. All random numbers are
small integers, and every step after the rendering is exact in floating point: equal
versions of numpy, Pillow and matplotlib draw equal pixels.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.ft2font import FT2Font
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from softmax_temperature.data.splits import RawDataset, RawPart
from softmax_temperature.runner.errors import InputError

TRAIN_PER_CLASS, TEST_PER_CLASS = 40, 15
TRAIN_SCENES, TEST_SCENES = 400, 100
VOID = 255
IS_GLYPHS, IS_GLYPH_SCENES = (
    re.compile(form) for form in (r"glyphs-(pretrain-)?[0-9]+", r"glyph-scenes-[0-9]+")
)
Pixels = NDArray[np.uint8]

_FAINT, _FULL = (
    32,
    128,
)  # In a scene, ink below the first is paper, from the second on a character.
# The matrix of a distortion is a multiple of 1/_UNIT, so that its products with pixel
# places are exact.
_UNIT = 1024
_CANVAS = (
    64  # Side of the canvas that a character is drawn on, and of a scene, in pixels.
)
_FONT_SIZE = 80

# Every character exists in all of the common fonts, and is drawn with the others too
# where they have it.
_COMMON_FONTS = tuple(
    f"DejaVu{face}.ttf"
    for face in (
        "Sans",
        "Sans-Bold",
        "Sans-Oblique",
        "Serif",
        "Serif-Bold",
        "Serif-Italic",
    )
)
_OTHER_FONTS = tuple(f"DejaVuSansMono{face}.ttf" for face in ("", "-Bold", "-Oblique"))
_OTHER_FONTS += tuple(f"STIXGeneral{face}.ttf" for face in ("", "Bol", "Italic"))
_FONTS = Path(mpl.get_data_path()) / "fonts" / "ttf"

_LETTERS_DIGITS_SYMBOLS = (
    "Lu",
    "Ll",
    "Lt",
    "Lo",
    "Nd",
    "Nl",
    "No",
    "Sm",
    "Sc",
    "So",
    "Po",
)
_LEFT_OUT = (
    "BRAILLE",
    "BOX DRAWINGS",
    "OBJECT REPLACEMENT",
)  # Patterns that differ only in position, or draw nothing.
_PRETRAINING_SHARE = 4  # One character in this many is kept for pretraining.


def read_glyphs(name: str, *, seed: int) -> RawDataset:
    """Draw "glyphs-N" or "glyphs-pretrain-N"; with one seed, a smaller set is part of a
    larger one.
    """
    pool = pretraining_pool if name.startswith("glyphs-pretrain-") else downstream_pool
    characters = choose_characters(
        int(name.rpartition("-")[2]), pool, where=name, seed=seed
    )
    images, labels = draw_glyphs(
        characters, TRAIN_PER_CLASS + TEST_PER_CLASS, seed=seed
    )
    train = (
        np.arange(len(labels)) % (TRAIN_PER_CLASS + TEST_PER_CLASS) < TRAIN_PER_CLASS
    )
    names = tuple(
        f"U+{ord(character):04X} {unicodedata.name(character)}"
        for character in characters
    )
    parts = (
        RawPart(images[train], labels[train]),
        RawPart(images[~train], labels[~train]),
    )
    source = {"how": "drawn by softmax_temperature.data.glyphs", "seed": seed}
    rule = f"of each class {TRAIN_PER_CLASS} images to train and {TEST_PER_CLASS} to test, drawn independently"
    return RawDataset(name, names, *parts, source, rule)


def read_glyph_scenes(name: str, *, seed: int) -> tuple[Pixels, Pixels]:
    """Draw "glyph-scenes-N": TRAIN_SCENES to train on, then TEST_SCENES; images and
    labels (scenes, 64, 64) uint8.
    """
    characters = choose_characters(
        int(name.rpartition("-")[2]), downstream_pool, where=name, seed=seed
    )
    generators = (
        np.random.default_rng([seed, number, *b"scenes"])
        for number in range(TRAIN_SCENES + TEST_SCENES)
    )
    scenes = [_scene(characters, generator) for generator in generators]
    images, labels = zip(*scenes, strict=True)
    return np.stack(images), np.stack(labels)


def _scene(
    characters: Sequence[str], generator: np.random.Generator
) -> tuple[Pixels, Pixels]:
    ink, labels = np.zeros((2, _CANVAS, _CANVAS), dtype=np.uint8)
    for quarter in generator.permutation(4)[: generator.integers(2, 5)]:
        number = int(generator.integers(len(characters)))
        glyph = _ink(characters[number], 1, generator)[0]
        top, left = 32 * np.array(divmod(quarter, 2))
        ink[top : top + 32, left : left + 32] = glyph
        known = np.where(glyph >= _FULL, number + 1, np.where(glyph < _FAINT, 0, VOID))
        labels[top : top + 32, left : left + 32] = known
    return _developed(ink[None], generator)[0], labels


def choose_characters(
    number: int, pool: Callable[[], tuple[str, ...]], *, where: str, seed: int
) -> tuple[str, ...]:
    """The first `number` characters of a pool in an order that depends on the seed;
    InputError if it has fewer.
    """
    characters = pool()
    if not 2 <= number <= len(characters):
        remedy = f"Choose a number of classes from 2 to {len(characters)}."
        raise InputError(f"cannot have {number} classes", where=where, remedy=remedy)
    order = np.random.default_rng([seed, *b"characters"]).permutation(len(characters))
    return tuple(characters[place] for place in order[:number])


def draw_glyphs(
    characters: Sequence[str], images_per_class: int, *, seed: int
) -> tuple[Pixels, NDArray[np.int64]]:
    """Images (n, 32, 32, 1) uint8 and labels (n,), class by class; a character's depend
    on it and the seed alone.
    """
    images = []
    for character in characters:
        generator = np.random.default_rng([seed, ord(character)])
        images.append(
            _developed(_ink(character, images_per_class, generator), generator)
        )
    return np.concatenate(images)[..., None], np.repeat(
        np.arange(len(characters)), images_per_class
    )


def draw_pretraining_glyphs(
    classes: int, images_per_class: int, *, seed: int
) -> tuple[Pixels, NDArray[np.int64]]:
    """The same, of so many characters that no other data set has."""
    characters = choose_characters(
        classes, pretraining_pool, where="pretrain.classes", seed=seed
    )
    return draw_glyphs(characters, images_per_class, seed=seed)


def _ink(character: str, count: int, generator: np.random.Generator) -> Pixels:
    """(count, 32, 32) uint8: one character in random typefaces and distortions, 0
    without ink and 255 full of it.
    """
    faces = _bitmaps(character)
    face = generator.integers(len(faces), size=count)
    # Rotation, shear and stretch of up to 20 %, and a shift of up to 8 half pixels.
    matrix = np.array([_UNIT, 0, 0, _UNIT]) + generator.integers(
        -200, 200, size=(count, 4), endpoint=True
    )
    shift = generator.integers(-8, 8, size=(count, 2), endpoint=True)
    return np.stack(
        [_distorted(faces[face[row]], matrix[row], shift[row]) for row in range(count)]
    )


def _developed(ink: Pixels, generator: np.random.Generator) -> Pixels:
    """Give each image (n, height, width) of ink its own brightness of paper and ink,
    then noise, all in integers.
    """
    count = len(ink)
    paper = generator.integers(0, 80, size=(count, 1, 1))
    contrast = generator.integers(90, 176, size=(count, 1, 1))
    noise = generator.integers(-30, 30, size=(2, *ink.shape), endpoint=True).sum(axis=0)
    pixels = paper + contrast * ink.astype(np.int64) // 255 + noise
    return np.asarray(pixels.clip(0, 255), dtype=np.uint8)


def downstream_pool() -> tuple[str, ...]:
    """The characters that `glyphs-N` chooses from."""
    return tuple(
        character
        for number, character in enumerate(_pool())
        if number % _PRETRAINING_SHARE
    )


def pretraining_pool() -> tuple[str, ...]:
    """The characters that `glyphs-pretrain-N` chooses from: none is in the other pool,
    or looks like one in it.
    """
    return _pool()[::_PRETRAINING_SHARE]


@cache
def _pool() -> tuple[str, ...]:
    common = sorted(frozenset.intersection(*map(_code_points, _COMMON_FONTS)))
    usable = [
        char
        for char in map(chr, common)
        if unicodedata.category(char) in _LETTERS_DIGITS_SYMBOLS
    ]
    distinct = _without_look_alikes(
        [char for char in usable if not unicodedata.name(char).startswith(_LEFT_OUT)]
    )
    return tuple(
        distinct[number]
        for number in np.random.default_rng(0).permutation(len(distinct))
    )


def _without_look_alikes(characters: list[str]) -> list[str]:
    """Keep a character unless an earlier one looks the same (cosine above 0.95) in
    sans, bold and serif together.
    """
    compared = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSerif.ttf")
    faces = [
        [np.asarray(_bitmap(char, font).reduce(4), np.float64) for font in compared]
        for char in characters
    ]
    shapes = np.stack([np.ravel(own) for own in faces])
    products = (
        shapes @ shapes.T
    )  # Of whole numbers below 2**53, so exact in any order of summation.
    lengths = np.sqrt(products.diagonal())
    alike = products > 0.95 * lengths[:, None] * lengths
    kept: list[int] = []
    for number in range(len(characters)):
        if not alike[number, kept].any():
            kept.append(number)
    return [characters[number] for number in kept]


@cache
def _bitmaps(character: str) -> tuple[Image.Image, ...]:
    own = [font for font in _OTHER_FONTS if ord(character) in _code_points(font)]
    return tuple(_bitmap(character, font) for font in (*_COMMON_FONTS, *own))


def _bitmap(character: str, font: str) -> Image.Image:
    """A grey image of _CANVAS x _CANVAS pixels, centred; its longer side is 40: size
    alone tells no class apart.
    """
    page = Image.new("L", (4 * _FONT_SIZE, 3 * _FONT_SIZE))
    ImageDraw.Draw(page).text(
        (_FONT_SIZE, _FONT_SIZE), character, fill=255, font=_font(font)
    )
    ink = page.crop(page.getbbox())
    scale = 40 / max(ink.size)
    ink = ink.resize(
        (max(1, round(ink.width * scale)), max(1, round(ink.height * scale))),
        Image.Resampling.BILINEAR,
    )
    canvas = Image.new("L", (_CANVAS, _CANVAS))
    canvas.paste(ink, ((_CANVAS - ink.width) // 2, (_CANVAS - ink.height) // 2))
    return canvas


def _distorted(
    face: Image.Image, matrix: NDArray[np.int64], shift: NDArray[np.int64]
) -> Pixels:
    """(32, 32) uint8: an affine map about the centre, drawn at twice the size and
    averaged down.
    """
    (a, b, d, e), centre = matrix / _UNIT, _CANVAS / 2
    moved = centre + shift
    data = (
        a,
        b,
        centre - a * moved[0] - b * moved[1],
        d,
        e,
        centre - d * moved[0] - e * moved[1],
    )
    return np.asarray(
        face.transform(
            face.size, Image.Transform.AFFINE, data, Image.Resampling.BILINEAR
        ).reduce(2)
    )


@cache
def _font(name: str) -> ImageFont.FreeTypeFont:
    # The basic layout is compiled into Pillow; the other depends on a library that some
    # machines lack.
    return ImageFont.truetype(
        _FONTS / name, _FONT_SIZE, layout_engine=ImageFont.Layout.BASIC
    )


@cache
def _code_points(name: str) -> frozenset[int]:
    return frozenset(FT2Font(str(_FONTS / name)).get_charmap())
