"""Image files: checked, decoded, brought to grey or RGB, and shrunk where they are larger than anybody needs.

Pixels are taken as they lie in the file: an orientation tag is not applied, and transparency is dropped, as
torchvision's own image folders do.
"""

from __future__ import annotations

import hashlib
import io
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from PIL import Image, UnidentifiedImageError

from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

ENDINGS = frozenset({".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"})

_GREY = frozenset({"1", "L", "LA"})
_COLOUR = frozenset({"P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "LAB", "HSV"})
LARGEST = 2**30  # Bytes; one image in memory at a time is what the pipeline reckons with.
UNREADABLE = (OSError, SyntaxError, ValueError, struct.error, Image.DecompressionBombError)
"""What Pillow raises on damaged files."""


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
    image = decode_image(content, path, channels=None, size_limit=size_limit)
    return ImageFacts(hashlib.sha256(content).hexdigest(), image.height, image.width, image.mode == "L")


def read_image(path: Path, *, sha256: str | None, channels: int, size_limit: int | None) -> NDArray[np.uint8]:
    """Read one file, of an index after comparing its bytes with the recorded digest.

    Args:
        path: the file.
        sha256: its recorded digest; None for a file of no index.
        channels: 1 for grey, 3 for RGB.
        size_limit: the short side's largest length in pixels; larger images are shrunk to it.

    Returns:
        (channels, height, width) uint8.

    Raises:
        InputError: the file is missing or has changed since it was indexed.
    """
    content = _content(path)
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        raise InputError("changed since the data set was prepared (its sha256 differs)", where=str(path), remedy=_AGAIN)
    pixels = np.asarray(decode_image(content, path, channels=channels, size_limit=size_limit))
    return np.array(np.atleast_3d(pixels).transpose(2, 0, 1), order="C")  # A copy: Pillow's own pixels are read-only.


def decode_image(content: bytes, path: Path | str, *, channels: int | None, size_limit: int | None) -> Image.Image:
    """Decode the bytes of an image file, brought to grey or RGB.

    Args:
        content: the file's bytes.
        path: where they come from, for the error.
        channels: 1 for grey, 3 for RGB; None keeps grey images grey.
        size_limit: the short side's largest length in pixels; larger images are shrunk to it.

    Returns:
        A loaded image of mode L or RGB.

    Raises:
        InputError: it is damaged, or has pixels of more than 8 bits.
    """
    try:
        with _opened(content, path) as image:
            size = shrunk_size(*image.size, size_limit)
            if size != image.size:
                image.draft(image.mode, size)  # A JPEG decoder can skip what shrinking would throw away.
            plain = _plain(image, path, channels)
            # Bicubic with antialiasing, as most pretrained networks' own preprocessing.
            return plain.resize(size, Image.Resampling.BICUBIC, reducing_gap=3.0) if plain.size != size else plain
    except UNREADABLE as error:
        _refuse(path, f"not a readable image ({error})")


_AGAIN = "Restore the file, or prepare the data set again (`dvc repro --force` on its fetch stage)."


def _content(path: Path) -> bytes:
    try:
        if (size := path.stat().st_size) > LARGEST:
            _refuse(path, f"{size:,} bytes are too many for an image")
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=str(path), remedy=_AGAIN) from error


def _opened(content: bytes, path: Path | str) -> Image.Image:
    try:
        return Image.open(io.BytesIO(content))
    except UnidentifiedImageError:
        _refuse(path, "not a readable image (of no kind that Pillow knows)")


def _plain(image: Image.Image, path: Path | str, channels: int | None) -> Image.Image:
    if image.mode not in _GREY | _COLOUR:
        _refuse(path, f"pixels of mode {image.mode!r}, not 8 bits a channel")
    grey = channels == 1 if channels is not None else image.mode in _GREY
    if image.mode == "P":  # By way of RGBA, which keeps Pillow from warning about transparent palettes.
        image = image.convert("RGBA")
    return image.convert("L" if grey else "RGB")


def _refuse(path: Path | str, what: str) -> NoReturn:
    raise InputError(what, where=str(path), remedy="Replace the file, or take it out of the folder.")
