"""The characters that glyphs are drawn from: which there are, in which typefaces, and which look alike.

Everything here depends on the fonts that matplotlib ships and on nothing else, so the pools are the same everywhere.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

CANVAS = 64
"""Side of the canvas that a character is drawn on, in pixels."""

_INK = 40  # The longer side of every character: size alone tells no class from another.
_FONT_SIZE = 80

# Every character exists in all of these...
_COMMON_FONTS = (
    *("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSans-Oblique.ttf"),
    *("DejaVuSerif.ttf", "DejaVuSerif-Bold.ttf", "DejaVuSerif-Italic.ttf"),
)
# ...and is drawn with these too where they have it.
_OTHER_FONTS = (
    *("DejaVuSansMono.ttf", "DejaVuSansMono-Bold.ttf", "DejaVuSansMono-Oblique.ttf"),
    *("STIXGeneral.ttf", "STIXGeneralBol.ttf", "STIXGeneralItalic.ttf"),
)
_COMPARED_FONTS = ("DejaVuSans.ttf", "DejaVuSans-Bold.ttf", "DejaVuSerif.ttf")

_LETTERS_DIGITS_SYMBOLS = frozenset({"Lu", "Ll", "Lt", "Lo", "Nd", "Nl", "No", "Sm", "Sc", "So", "Po"})
_LEFT_OUT = ("BRAILLE", "BOX DRAWINGS", "OBJECT REPLACEMENT")  # Patterns that differ by place alone, or draw nothing.
_ALIKE = 0.95  # Cosine similarity of two characters' bitmaps above which the later one is left out.
_PRETRAINING_SHARE = 4  # One character in so many is kept for pretraining.


@cache
def downstream_pool() -> tuple[str, ...]:
    """The characters that `glyphs-N` chooses from."""
    return tuple(character for number, character in enumerate(_pool()) if number % _PRETRAINING_SHARE)


@cache
def pretraining_pool() -> tuple[str, ...]:
    """The characters that `glyphs-pretrain-N` chooses from: none is in the other pool, or looks like one in it."""
    return tuple(character for number, character in enumerate(_pool()) if not number % _PRETRAINING_SHARE)


def name_of(character: str) -> str:
    """A printable class name, for instance "U+0416 CYRILLIC CAPITAL LETTER ZHE"."""
    return f"U+{ord(character):04X} {unicodedata.name(character)}"


@cache
def bitmaps(character: str) -> tuple[Image.Image, ...]:
    """The character in each typeface that has it: grey images of CANVAS x CANVAS pixels, centred, of one size."""
    own = [font for font in _OTHER_FONTS if ord(character) in _code_points(font)]
    return tuple(_bitmap(character, font) for font in (*_COMMON_FONTS, *own))


@cache
def _pool() -> tuple[str, ...]:
    """All usable characters in a fixed random order, without look-alikes."""
    common = frozenset.intersection(*(_code_points(font) for font in _COMMON_FONTS))
    distinct = _without_look_alikes([chr(code) for code in sorted(common) if _is_usable(chr(code))])
    return tuple(distinct[number] for number in np.random.default_rng(0).permutation(len(distinct)))


def _is_usable(character: str) -> bool:
    known = unicodedata.category(character) in _LETTERS_DIGITS_SYMBOLS
    return known and not unicodedata.name(character).startswith(_LEFT_OUT)


def _without_look_alikes(characters: list[str]) -> list[str]:
    """Keep a character unless an earlier one looks the same in sans, bold and serif together."""
    shapes = np.stack([_shape(character) for character in characters])
    products = shapes @ shapes.T  # Of whole numbers below 2**53, so exact in any order of summation.
    lengths = np.sqrt(products.diagonal())
    alike = products > _ALIKE * lengths[:, None] * lengths
    kept: list[int] = []
    for number in range(len(characters)):
        if not alike[number, kept].any():
            kept.append(number)
    return [characters[number] for number in kept]


def _shape(character: str) -> NDArray[np.float64]:
    faces = [_bitmap(character, font).reduce(4) for font in _COMPARED_FONTS]
    return np.concatenate([np.asarray(face, dtype=np.float64).ravel() for face in faces])


def _bitmap(character: str, font: str) -> Image.Image:
    page = Image.new("L", (4 * _FONT_SIZE, 3 * _FONT_SIZE))
    ImageDraw.Draw(page).text((_FONT_SIZE, _FONT_SIZE), character, fill=255, font=_font(font))
    ink = page.crop(page.getbbox())
    scale = _INK / max(ink.size)
    ink = ink.resize((max(1, round(ink.width * scale)), max(1, round(ink.height * scale))), Image.Resampling.BILINEAR)
    canvas = Image.new("L", (CANVAS, CANVAS))
    canvas.paste(ink, ((CANVAS - ink.width) // 2, (CANVAS - ink.height) // 2))
    return canvas


@cache
def _font(name: str) -> ImageFont.FreeTypeFont:
    # The basic layout is compiled into Pillow; the other depends on a library that some machines lack.
    return ImageFont.truetype(_font_path(name), _FONT_SIZE, layout_engine=ImageFont.Layout.BASIC)


@cache
def _code_points(name: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(str(_font_path(name))).get_charmap())


def _font_path(name: str) -> Path:
    import matplotlib

    path = Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name
    if not path.is_file():
        raise InputError("matplotlib ships no such font", where=str(path), remedy="Install requirements.lock.")
    return path
