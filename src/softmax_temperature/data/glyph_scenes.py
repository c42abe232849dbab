"""Glyph scenes: drawn characters side by side, with a class for every pixel; offline.

`glyph-scenes-N` has N characters, which are the classes 1 to N; class 0 is paper. A scene of 64 x 64 grey pixels has
two to four of them in its quarters. Pixels that ink fills in part, at the edges of strokes, are void: nobody could say
what they are.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from softmax_temperature.data.glyphs import choose_characters, develop, downstream_pool, draw_ink

SIDE = 64
VOID = 255
TRAIN, TEST = 400, 100

_NAME = re.compile(r"glyph-scenes-([0-9]+)")
_FEWEST = 2  # Characters in a scene.
_FAINT, _FULL = 32, 128  # Ink below the first is paper, from the second on a character.


def is_glyph_scenes(name: str) -> bool:
    """Whether a data set's name is one of glyph scenes."""
    return _NAME.fullmatch(name) is not None


def classes_of(name: str) -> int:
    """The number of classes of "glyph-scenes-N", paper included: N + 1."""
    match = _NAME.fullmatch(name)
    if match is None:
        raise ValueError(f"name: {name!r}, must be glyph-scenes-N")
    return int(match[1]) + 1


def read_glyph_scenes(name: str, *, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """Draw "glyph-scenes-N", N up to 254: TRAIN scenes to train on, then TEST to test on, all independent.

    Returns:
        (TRAIN + TEST, 64, 64) uint8 images, and labels of the same shape, with VOID.

    Raises:
        InputError: N is below 2.
    """
    characters = choose_characters(classes_of(name) - 1, downstream_pool, where=name, seed=seed)
    return draw_scenes(characters, TRAIN + TEST, seed=seed)


def draw_scenes(characters: Sequence[str], count: int, *, seed: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """(count, 64, 64) uint8 images and labels, the characters having labels 1, 2, ...

    With one seed, fewer scenes are the first of more.
    """
    scenes = [_draw(characters, np.random.default_rng([seed, number, *b"scenes"])) for number in range(count)]
    images, labels = zip(*scenes, strict=True)
    return np.stack(images), np.stack(labels)


def _draw(characters: Sequence[str], generator: np.random.Generator) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    """One scene: (64, 64) uint8 image and labels."""
    ink, labels = np.zeros((2, SIDE, SIDE), dtype=np.uint8)
    for quarter in generator.permutation(4)[: generator.integers(_FEWEST, 4, endpoint=True)]:
        number = int(generator.integers(len(characters)))
        glyph = draw_ink(characters[number], 1, generator)[0]
        top, left = SIDE // 2 * np.array(divmod(quarter, 2))
        place = (slice(top, top + SIDE // 2), slice(left, left + SIDE // 2))
        ink[place] = glyph
        labels[place] = np.where(glyph >= _FULL, number + 1, np.where(glyph < _FAINT, 0, VOID))
    return develop(ink[None], generator)[0], labels
