"""Image files: checked, decoded, brought to grey or RGB, and shrunk where they are larger than needed.

Pixels are taken as stored: an orientation tag is not applied, and transparency is dropped, as torchvision's own image
folders do.
"""

import hashlib
import io
import struct
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from softmax_temperature.runner.errors import InputError

ENDINGS = frozenset({".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"})
UNREADABLE = (OSError, SyntaxError, ValueError, struct.error, Image.DecompressionBombError)
"""What Pillow raises on damaged files."""

_GREY = frozenset({"1", "L", "LA"})
_COLOUR = frozenset({"P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "LAB", "HSV"})
_REPLACE = "Replace the file, or take it out of the folder."


class ImageFacts(NamedTuple):
    """What the index of a data set records of a file: its digest, and the decoded image's size and colour."""

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
    content = _content(path)
    image = _decode(content, path, channels=None, size_limit=size_limit)
    return ImageFacts(hashlib.sha256(content).hexdigest(), image.height, image.width, image.mode == "L")


def read_image(path: Path, *, sha256: str | None, channels: int, size_limit: int | None) -> NDArray[np.uint8]:
    """One file as (channels, height, width) uint8, 1 channel or 3, its short side shrunk to `size_limit` pixels.

    A file that is missing, damaged, or of another digest than `sha256` (None: not indexed) raises InputError.
    """
    content = _content(path)
    if sha256 is not None and hashlib.sha256(content).hexdigest() != sha256:
        _refuse(path, "changed since the data set was prepared (its sha256 differs)", "Restore it, or fetch it again.")
    pixels = np.asarray(_decode(content, path, channels=channels, size_limit=size_limit))
    return np.array(np.atleast_3d(pixels).transpose(2, 0, 1), order="C")  # A copy: Pillow's own pixels are read-only.


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        _refuse(path, f"cannot be read ({error.strerror})", "Restore it, or fetch the data set again.")


def _decode(content: bytes, path: Path, *, channels: int | None, size_limit: int | None) -> Image.Image:
    """A loaded image of mode L or RGB; `channels` None keeps grey images grey."""
    try:
        with Image.open(io.BytesIO(content)) as image:
            short = min(image.size)
            limit = min(size_limit or short, short)
            size = (max(1, round(image.width * limit / short)), max(1, round(image.height * limit / short)))
            if size != image.size:
                image.draft(image.mode, size)  # A JPEG decoder can skip what shrinking would throw away.
            if image.mode not in _GREY | _COLOUR:
                _refuse(path, f"pixels of mode {image.mode!r}, not 8 bits per channel", _REPLACE)
            grey = channels == 1 if channels is not None else image.mode in _GREY
            # Palettes by way of RGBA, which keeps Pillow from warning about transparent ones.
            plain = (image.convert("RGBA") if image.mode == "P" else image).convert("L" if grey else "RGB")
            # Bicubic with antialiasing, as most pretrained networks' own preprocessing.
            return plain.resize(size, Image.Resampling.BICUBIC, reducing_gap=3.0) if plain.size != size else plain
    except UNREADABLE as error:
        _refuse(path, f"not a readable image ({error})", _REPLACE)


def _refuse(path: Path, what: str, remedy: str) -> NoReturn:
    raise InputError(what, where=str(path), remedy=remedy)
