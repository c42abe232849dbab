"""Image files: checked, decoded, brought to grey or RGB, and shrunk where they are larger than needed.

Pixels are taken as stored: an orientation tag is not applied, and transparency is dropped, as torchvision's own image
folders do.
"""

import hashlib
import io
import struct
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from softmax_temperature.runner.errors import InputError

ENDINGS = frozenset({".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"})
# What Pillow raises on damaged files.
UNREADABLE = (OSError, SyntaxError, ValueError, struct.error, Image.DecompressionBombError)

_GREY = ("1", "L", "LA")
_COLOUR = ("P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "LAB", "HSV")
_REPLACE = "Replace the file, or take it out of the folder."


class ImageFacts(NamedTuple):
    """What the index of a data set records of a file; height, width and colour are of the image as it is read."""

    sha256: str
    height: int
    width: int
    grey: bool


def image_files(folder: Path) -> list[Path]:
    """The image files directly in a folder, sorted, without hidden ones."""
    files = sorted(folder.iterdir())
    return [file for file in files if file.suffix.lower() in ENDINGS and not file.name.startswith(".")]


def inspect_image(path: Path, *, size_limit: int | None) -> ImageFacts:
    """Decode a file completely; one that is missing, damaged, or of more than 8 bits per channel raises InputError."""
    sha256, image = _decode(path, channels=None, size_limit=size_limit)
    return ImageFacts(sha256, image.height, image.width, image.mode == "L")


def read_image(path: Path, *, sha256: str | None, channels: int, size_limit: int | None) -> NDArray[np.uint8]:
    """One file as (channels, height, width) uint8, 1 channel or 3, its short side shrunk to `size_limit` pixels.

    A file that is missing, damaged, or of another digest than `sha256` (None: not indexed) raises InputError.
    """
    _, image = _decode(path, channels=channels, size_limit=size_limit, sha256=sha256)
    return np.array(np.atleast_3d(np.asarray(image)).transpose(2, 0, 1), order="C")  # A copy: Pillow's is read-only.


def _decode(
    path: Path, *, channels: int | None, size_limit: int | None, sha256: str | None = None
) -> tuple[str, Image.Image]:
    """The digest of a file, and its image in mode L or RGB; `channels` None keeps grey images grey."""
    try:
        content = path.read_bytes()
    except OSError as error:
        remedy = "Restore it, or fetch the data set again."
        raise InputError(f"cannot be read ({error.strerror})", where=str(path), remedy=remedy) from error
    digest = hashlib.sha256(content).hexdigest()
    if sha256 not in {None, digest}:
        what = "changed since the data set was prepared (its sha256 differs)"
        raise InputError(what, where=str(path), remedy="Restore it, or fetch it again.")
    try:
        with Image.open(io.BytesIO(content)) as image:
            short = min(image.size)
            limit = min(size_limit or short, short)
            size = (max(1, round(image.width * limit / short)), max(1, round(image.height * limit / short)))
            if size != image.size:
                image.draft(image.mode, size)  # A JPEG decoder can skip what shrinking would throw away.
            if image.mode not in _GREY + _COLOUR:
                what = f"pixels of mode {image.mode!r}, not 8 bits per channel"
                raise InputError(what, where=str(path), remedy=_REPLACE)
            grey = channels == 1 if channels is not None else image.mode in _GREY
            # Palettes by way of RGBA, which keeps Pillow from warning about transparent ones.
            plain = (image.convert("RGBA") if image.mode == "P" else image).convert("L" if grey else "RGB")
            # Bicubic with antialiasing, as most pretrained networks' own preprocessing.
            return digest, plain.resize(size, Image.Resampling.BICUBIC, reducing_gap=3.0)
    except UNREADABLE as error:
        raise InputError(f"not a readable image ({error})", where=str(path), remedy=_REPLACE) from error
