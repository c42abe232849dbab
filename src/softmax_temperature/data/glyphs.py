"""Glyphs: Unicode characters in many typefaces, distorted and noisy.

They provide images of many classes and need no download.

- `glyphs-N`: images of 32×32 grey pixels in N classes.
- `glyphs-pretrain-N`: such images in N classes that no `glyphs-N` uses, on which
  backbones are trained.
- `glyph-scenes-N`: images of 64×64 grey pixels with a class for every pixel. Two to
  four quarters of an image hold a character each, and the N characters are the classes
  1 to N. Class 0 is paper; pixels that are partly ink are void.

The characters depend only on the fonts that matplotlib ships. All random numbers are
small integers, and every step after the rendering is exact in floating point, so the
same versions of NumPy, Pillow and matplotlib always draw the same pixels.
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

from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.runner.errors import InputError

IS_GLYPHS = re.compile(r"glyphs-(pretrain-)?[0-9]+")
IS_GLYPH_SCENES = re.compile(r"glyph-scenes-[0-9]+")
TRAIN_PER_CLASS = 40
TEST_PER_CLASS = 15
TRAIN_SCENES = 400
TEST_SCENES = 100
VOID = 255
"""The label of pixels that have no class."""
Pixels = NDArray[np.uint8]

_SIDE = 32
"""Height and width of a glyph in pixels."""
_CANVAS = 64
"""Height and width in pixels of a scene, and of the canvas of an undistorted glyph."""
_FONT_SIZE = 80
_LONGER_SIDE = 40
"""Length in pixels of the longer side of every undistorted glyph."""
# The matrix of a distortion is a multiple of 1 / _UNIT, so that its products with
# pixel positions are exact.
_UNIT = 1024

# Thresholds of ink, from 0 to 255. In a scene, a pixel below the first threshold is
# paper, a pixel at or above the second is a character, and a pixel between them is
# void.
_FAINT = 32
_FULL = 128

_FONT_FOLDER = Path(mpl.get_data_path()) / "fonts" / "ttf"
# Only characters that all of these common fonts contain are used.
_COMMON_FONTS = (
    "DejaVuSans.ttf",
    "DejaVuSans-Bold.ttf",
    "DejaVuSans-Oblique.ttf",
    "DejaVuSerif.ttf",
    "DejaVuSerif-Bold.ttf",
    "DejaVuSerif-Italic.ttf",
)
# A character is also drawn in each of these fonts that contains it.
_OTHER_FONTS = (
    "DejaVuSansMono.ttf",
    "DejaVuSansMono-Bold.ttf",
    "DejaVuSansMono-Oblique.ttf",
    "STIXGeneral.ttf",
    "STIXGeneralBol.ttf",
    "STIXGeneralItalic.ttf",
)
# Characters that look the same in these three fonts are one class.
_COMPARED_FONTS = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSerif.ttf")

# Unicode's categories of letters, digits and symbols.
_CATEGORIES = ("Lu", "Ll", "Lt", "Lo", "Nd", "Nl", "No", "Sm", "Sc", "So", "Po")
# First words of the Unicode names of characters that differ only in position or are
# invisible.
_EXCLUDED_NAMES = ("BRAILLE", "BOX DRAWINGS", "OBJECT REPLACEMENT")
_MAX_COSINE = 0.95
"""Characters look the same if the cosine between their images is above this."""
_PRETRAINING_SHARE = 4
"""One in this many characters belongs to the pretraining pool."""


def read_glyphs(name: str, *, seed: int) -> RawDataset:
    """Draw "glyphs-N" or "glyphs-pretrain-N".

    With the same seed, a data set with fewer classes is part of every larger one.

    Raises:
        InputError: If N is below 2 or above the number of characters.
    """
    pool = downstream_pool
    if name.startswith("glyphs-pretrain-"):
        pool = pretraining_pool
    characters = choose_characters(_number_in(name), pool, where=name, seed=seed)
    per_class = TRAIN_PER_CLASS + TEST_PER_CLASS
    images, labels = draw_glyphs(characters, per_class, seed=seed)
    is_train = np.arange(len(labels)) % per_class < TRAIN_PER_CLASS
    return RawDataset(
        name,
        tuple(_class_name(character) for character in characters),
        train=RawPart(images[is_train], labels[is_train]),
        test=RawPart(images[~is_train], labels[~is_train]),
        source={"how": "drawn by softmax_temperature.data.glyphs", "seed": seed},
        split_rule=(
            f"of each class {TRAIN_PER_CLASS} images to train and {TEST_PER_CLASS} "
            "to test, drawn independently"
        ),
    )


def _number_in(name: str) -> int:
    return int(name.rpartition("-")[2])


def _class_name(character: str) -> str:
    return f"U+{ord(character):04X} {unicodedata.name(character)}"


def read_glyph_scenes(name: str, *, seed: int) -> tuple[Pixels, Pixels]:
    """Draw "glyph-scenes-N": TRAIN_SCENES scenes, followed by TEST_SCENES test scenes.

    Returns:
        Images and labels, each a uint8 array of shape (scenes, 64, 64).

    Raises:
        InputError: If N is below 2 or above the number of characters.
    """
    characters = choose_characters(
        _number_in(name), downstream_pool, where=name, seed=seed
    )
    images = []
    labels = []
    for number in range(TRAIN_SCENES + TEST_SCENES):
        generator = np.random.default_rng([seed, number, *b"scenes"])
        image, label_map = _scene(characters, generator)
        images.append(image)
        labels.append(label_map)
    return np.stack(images), np.stack(labels)


def _scene(
    characters: Sequence[str], generator: np.random.Generator
) -> tuple[Pixels, Pixels]:
    ink = np.zeros((_CANVAS, _CANVAS), dtype=np.uint8)
    labels = np.zeros((_CANVAS, _CANVAS), dtype=np.uint8)
    quarters = generator.permutation(4)
    count = generator.integers(2, 5)
    for quarter in quarters[:count]:
        number = int(generator.integers(len(characters)))
        glyph = _ink(characters[number], 1, generator)[0]
        row, column = divmod(int(quarter), 2)
        rows = slice(_SIDE * row, _SIDE * (row + 1))
        columns = slice(_SIDE * column, _SIDE * (column + 1))
        ink[rows, columns] = glyph
        labels[rows, columns] = _label_map(glyph, number + 1)
    return _developed(ink[None], generator)[0], labels


def _label_map(glyph: Pixels, label: int) -> Pixels:
    """Map each pixel of `glyph` to `label` if inked, VOID if partly inked, else 0."""
    labels = np.full_like(glyph, VOID)
    labels[glyph < _FAINT] = 0
    labels[glyph >= _FULL] = label
    return labels


def choose_characters(
    number: int, pool: Callable[[], tuple[str, ...]], *, where: str, seed: int
) -> tuple[str, ...]:
    """Choose `number` characters of a pool, in an order that depends on the seed.

    Raises:
        InputError: If `number` is below 2 or above the size of the pool; the message
            names the data set or parameter `where`.
    """
    characters = pool()
    if not 2 <= number <= len(characters):
        raise InputError(
            f"cannot have {number} classes",
            where=where,
            remedy=f"Choose a number of classes from 2 to {len(characters)}.",
        )
    order = np.random.default_rng([seed, *b"characters"]).permutation(len(characters))
    return tuple(characters[position] for position in order[:number])


def draw_glyphs(
    characters: Sequence[str], images_per_class: int, *, seed: int
) -> tuple[Pixels, NDArray[np.int64]]:
    """Draw images (n, 32, 32, 1) uint8 and their labels (n,), class by class.

    The images of a character depend only on the character and the seed.
    """
    images = []
    for character in characters:
        generator = np.random.default_rng([seed, ord(character)])
        ink = _ink(character, images_per_class, generator)
        images.append(_developed(ink, generator))
    labels = np.repeat(np.arange(len(characters)), images_per_class)
    return np.concatenate(images)[..., None], labels


def draw_pretraining_glyphs(
    classes: int, images_per_class: int, *, seed: int
) -> tuple[Pixels, NDArray[np.int64]]:
    """Draw images and labels of characters of the pretraining pool."""
    characters = choose_characters(
        classes, pretraining_pool, where="pretrain.classes", seed=seed
    )
    return draw_glyphs(characters, images_per_class, seed=seed)


def _ink(character: str, count: int, generator: np.random.Generator) -> Pixels:
    """Draw a character `count` times in random typefaces, with random distortions.

    The result is a uint8 array of shape (count, 32, 32), with 0 for a pixel without ink
    and 255 for a pixel full of ink.
    """
    faces = _bitmaps(character)
    choices = generator.integers(len(faces), size=count)
    # Rotate, shear and stretch by up to 20 %, and shift by up to 8 half pixels.
    identity = np.array([_UNIT, 0, 0, _UNIT])
    deviations = generator.integers(-200, 200, size=(count, 4), endpoint=True)
    matrices = identity + deviations
    shifts = generator.integers(-8, 8, size=(count, 2), endpoint=True)
    drawn = [
        _distorted(faces[choice], matrix, shift)
        for choice, matrix, shift in zip(choices, matrices, shifts, strict=True)
    ]
    return np.stack(drawn)


def _developed(ink: Pixels, generator: np.random.Generator) -> Pixels:
    """Turn n images of ink (n, height, width) into grey images with noise.

    For each image, one brightness of the paper and one contrast of the ink are drawn.
    All arithmetic is in integers.
    """
    count = len(ink)
    paper = generator.integers(0, 80, size=(count, 1, 1))
    contrast = generator.integers(90, 176, size=(count, 1, 1))
    # The noise is the sum of two uniform numbers, so its distribution is triangular.
    noise = generator.integers(-30, 30, size=(2, *ink.shape), endpoint=True).sum(axis=0)
    pixels = paper + contrast * ink.astype(np.int64) // 255 + noise
    return np.asarray(pixels.clip(0, 255), dtype=np.uint8)


def downstream_pool() -> tuple[str, ...]:
    """The characters from which `glyphs-N` and `glyph-scenes-N` choose."""
    return tuple(
        character
        for number, character in enumerate(_pool())
        if number % _PRETRAINING_SHARE
    )


def pretraining_pool() -> tuple[str, ...]:
    """The characters to pretrain on, none of which is in the other pool."""
    return _pool()[::_PRETRAINING_SHARE]


@cache
def _pool() -> tuple[str, ...]:
    """All distinct characters of both pools, in a fixed random order."""
    shared = frozenset.intersection(*[_code_points(font) for font in _COMMON_FONTS])
    characters = [chr(code_point) for code_point in sorted(shared)]
    drawable = [character for character in characters if _is_usable(character)]
    distinct = _without_look_alikes(drawable)
    order = np.random.default_rng(0).permutation(len(distinct))
    return tuple(distinct[position] for position in order)


def _is_usable(character: str) -> bool:
    if unicodedata.category(character) not in _CATEGORIES:
        return False
    return not unicodedata.name(character).startswith(_EXCLUDED_NAMES)


def _without_look_alikes(characters: list[str]) -> list[str]:
    """Return the characters without those that look the same as an earlier one.

    Two characters look the same if the cosine between their images is above 0.95, where
    an image shows the character in sans, bold and serif.
    """
    images = np.stack([_compared_image(character) for character in characters])
    # Sums of products of whole numbers are exact in any order if they are below 2**53.
    products = images @ images.T
    lengths = np.sqrt(products.diagonal())
    alike = products > _MAX_COSINE * lengths[:, None] * lengths
    distinct: list[int] = []
    for number in range(len(characters)):
        if not alike[number, distinct].any():
            distinct.append(number)
    return [characters[number] for number in distinct]


def _compared_image(character: str) -> NDArray[np.float64]:
    """The images of `character` in the compared fonts, reduced and concatenated."""
    reduced = [_bitmap(character, font).reduce(4) for font in _COMPARED_FONTS]
    return np.ravel([np.asarray(image, dtype=np.float64) for image in reduced])


@cache
def _bitmaps(character: str) -> tuple[Image.Image, ...]:
    """The images of `character`, one for each font that contains it."""
    code_point = ord(character)
    optional = [font for font in _OTHER_FONTS if code_point in _code_points(font)]
    return tuple(_bitmap(character, font) for font in (*_COMMON_FONTS, *optional))


def _bitmap(character: str, font: str) -> Image.Image:
    """Draw `character` as a 64×64 grey image, centred, with a fixed longer side."""
    page = Image.new("L", (4 * _FONT_SIZE, 3 * _FONT_SIZE))
    origin = (_FONT_SIZE, _FONT_SIZE)
    ImageDraw.Draw(page).text(origin, character, fill=255, font=_font(font))
    ink = page.crop(page.getbbox())
    scale = _LONGER_SIDE / max(ink.size)
    width = max(1, round(ink.width * scale))
    height = max(1, round(ink.height * scale))
    ink = ink.resize((width, height), Image.Resampling.BILINEAR)
    canvas = Image.new("L", (_CANVAS, _CANVAS))
    canvas.paste(ink, ((_CANVAS - width) // 2, (_CANVAS - height) // 2))
    return canvas


def _distorted(
    face: Image.Image, matrix: NDArray[np.int64], shift: NDArray[np.int64]
) -> Pixels:
    """Apply an affine map about the centre of `face`, and halve its size to 32×32."""
    a, b, d, e = matrix / _UNIT
    centre = _CANVAS / 2
    x, y = centre + shift
    rows = (a, b, centre - a * x - b * y, d, e, centre - d * x - e * y)
    mapped = face.transform(
        face.size, Image.Transform.AFFINE, rows, Image.Resampling.BILINEAR
    )
    return np.asarray(mapped.reduce(2))


@cache
def _font(name: str) -> ImageFont.FreeTypeFont:
    # Use the basic layout, which is compiled into Pillow; the other layout depends on a
    # library that some machines lack.
    basic = ImageFont.Layout.BASIC
    return ImageFont.truetype(_FONT_FOLDER / name, _FONT_SIZE, layout_engine=basic)


@cache
def _code_points(font: str) -> frozenset[int]:
    return frozenset(FT2Font(str(_FONT_FOLDER / font)).get_charmap())
