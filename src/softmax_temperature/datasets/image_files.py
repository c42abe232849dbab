"""Image files: checked, decoded, brought to grey or RGB, and shrunk where they are larger than anybody needs.

Pixels are taken as they lie in the file: an orientation tag is not applied, and transparency is dropped, as
torchvision's own image folders do.
"""

from __future__ import annotations

import hashlib
import io
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from PIL import Image

from softmax_temperature.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

ENDINGS = frozenset({".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"})

_GREY = frozenset({"1", "L", "LA"})
_COLOUR = frozenset({"P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "LAB", "HSV"})
_UNREADABLE = (OSError, SyntaxError, ValueError, Image.DecompressionBombError)  # What Pillow raises on damaged files.


@dataclass(frozen=True)
class ImageFacts:
    """What the index of a data set records of a file: its digest, and the decoded image's size and colour."""

    sha256: str
    height: int
    width: int
    grey: bool


def is_image_name(name: str) -> bool:
    """Whether a file name ends like an image's, in any case."""
    return Path(name).suffix.lower() in ENDINGS


def shrunk_size(width: int, height: int, limit: int | None) -> tuple[int, int]:
    """The size after shrinking, as (width, height): the short side is at most `limit`, the shape is kept."""
    short = min(width, height)
    if limit is None or short <= limit:
        return width, height
    return max(1, round(width * limit / short)), max(1, round(height * limit / short))


def inspect_image(path: Path, *, size_limit: int | None) -> ImageFacts:
    """Decode a file completely, so that a damaged one is found now and not in the middle of a run.

    Raises:
        InputError: the file is missing, damaged, or has pixels of more than 8 bits.
    """
    content = _content(path)
    image = _decode(content, path, channels=None, size_limit=size_limit)
    return ImageFacts(hashlib.sha256(content).hexdigest(), image.height, image.width, image.mode == "L")


def read_image(path: Path, *, sha256: str, channels: int, size_limit: int | None) -> NDArray[np.uint8]:
    """Read one file of an index, after comparing its bytes with the recorded digest.

    Args:
        path: the file.
        sha256: its recorded digest.
        channels: 1 for grey, 3 for RGB.
        size_limit: the short side's largest length in pixels; larger images are shrunk to it.

    Returns:
        (channels, height, width) uint8.

    Raises:
        InputError: the file is missing or has changed since it was indexed.
    """
    content = _content(path)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise InputError("changed since the data set was prepared (its sha256 differs)", where=str(path), remedy=_AGAIN)
    pixels = np.asarray(_decode(content, path, channels=channels, size_limit=size_limit))
    return np.array(np.atleast_3d(pixels).transpose(2, 0, 1), order="C")  # A copy: Pillow's own pixels are read-only.


_AGAIN = "Restore the file, or prepare the data set again (`dvc repro --force` on its fetch stage)."


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=str(path), remedy=_AGAIN) from error


def _decode(content: bytes, path: Path, *, channels: int | None, size_limit: int | None) -> Image.Image:
    """A loaded image of mode L or RGB; `channels` None keeps grey images grey."""
    try:
        with Image.open(io.BytesIO(content)) as image:
            size = shrunk_size(*image.size, size_limit)
            if size != image.size:
                image.draft(image.mode, size)  # A JPEG decoder can skip what shrinking would throw away.
            plain = _plain(image, path, channels)
            # Bicubic with antialiasing, as most pretrained networks' own preprocessing.
            return plain.resize(size, Image.Resampling.BICUBIC, reducing_gap=3.0) if plain.size != size else plain
    except _UNREADABLE as error:
        _refuse(path, f"not a readable image ({error})")


def _plain(image: Image.Image, path: Path, channels: int | None) -> Image.Image:
    if image.mode not in _GREY | _COLOUR:
        _refuse(path, f"pixels of mode {image.mode!r}, not 8 bits a channel")
    grey = channels == 1 if channels is not None else image.mode in _GREY
    if image.mode == "P":  # By way of RGBA, which keeps Pillow from warning about transparent palettes.
        image = image.convert("RGBA")
    return image.convert("L" if grey else "RGB")


def _refuse(path: Path, what: str) -> NoReturn:
    raise InputError(what, where=str(path), remedy="Replace the file, or take it out of the folder.")
