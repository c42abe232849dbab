"""Image files: listing, decoding, conversion to grey or RGB, and shrinking.

As in torchvision's ImageFolder, orientation tags are not applied and transparency is
dropped.
"""

import hashlib
import io
import struct
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from softmax_temperature.runner.artifacts import digest_of_file, digest_of_text
from softmax_temperature.runner.errors import InputError

ENDINGS = frozenset(
    {".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
)
"""The endings of image files that are read, in lower case."""
OTHER_ENDINGS = frozenset(
    {".avif", ".gif", ".heic", ".jfif", ".jp2", ".jpe", ".pbm", ".pnm", ".tga"}
)
"""The endings of image files that this package does not read.

`data.class_folders` counts these files among the images left out; `data.segmentation`
refuses them.
"""
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
"""Pillow's decoders that may open a file.

GIF is included, because collections from the web contain GIFs whose names end in .jpg.
"""
UNREADABLE = (
    OSError,
    SyntaxError,
    ValueError,
    struct.error,
    Image.DecompressionBombError,
)
"""The errors that Pillow raises on damaged files."""

_GREY = ("1", "L", "LA")
_COLOUR = ("P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "LAB", "HSV")
_REPLACE = "Replace the file, or remove it from the folder."
_RESTORE = "Restore it, or run `dvc repro`, which prepares the data set anew."


def image_files(folder: Path) -> list[Path]:
    """List the image files directly in a folder, sorted, without hidden files.

    Raises:
        InputError: If the folder cannot be listed, or a file is a broken link or has a
            name that is not one line of UTF-8.
    """
    files = []
    for path in listed(folder):
        if path.name.startswith(".") or path.suffix.lower() not in ENDINGS:
            continue
        check_name_and_link(path)
        if path.is_file():  # A folder may be called x.png.
            files.append(path)
    return files


def listed(folder: Path) -> list[Path]:
    """List the content of `folder`, sorted; raise InputError if that fails."""
    try:
        return sorted(folder.iterdir())
    except OSError as error:
        raise InputError(
            f"cannot be listed ({error.strerror})",
            where=str(folder),
            remedy="Change its permissions, or remove it from the data set.",
        ) from error


def check_name_and_link(path: Path) -> None:
    """Raise InputError for a broken link, or a name that is not one line of UTF-8.

    Prepared data list the paths of image files as text, one per line.
    """
    if path.is_symlink() and not path.exists():
        raise InputError(
            "is a link to a file or folder that does not exist",
            where=str(path),
            remedy="Restore its target, or remove the link.",
        )
    try:
        path.name.encode()
    except UnicodeEncodeError as error:
        raise InputError(
            "has a name that is not UTF-8", where=str(path), remedy="Rename it."
        ) from error
    if "\n" in path.name:
        raise InputError(
            "has a name with a line break", where=str(path), remedy="Rename it."
        )


def inspect_image(
    path: Path, *, size_limit: int | None
) -> tuple[str, tuple[int, int, int]]:
    """Return the sha256 of an image file, and the shape of its decoded image.

    The shape is (height, width, channels).

    Args:
        path: The file.
        size_limit: Largest number of pixels of the shorter side; larger images are
            shrunk until they fit. If None, images keep their size.

    Raises:
        InputError: If the file is not a readable image.
    """
    content, sha256 = _read(path)
    image = _decode(path, content, channels=None, size_limit=size_limit)
    return sha256, (image.height, image.width, len(image.getbands()))


def read_image(
    path: Path, *, sha256: str | None, channels: int, size_limit: int | None
) -> NDArray[np.uint8]:
    """Decode an image file.

    Args:
        path: The file.
        sha256: The expected digest, or None to accept any digest.
        channels: 1 for grey, 3 for RGB.
        size_limit: Largest number of pixels of the shorter side; larger images are
            shrunk until they fit. If None, images keep their size.

    Returns:
        Pixels, a uint8 array of shape (channels, height, width).

    Raises:
        InputError: If the file is not a readable image, or has a different digest.
    """
    content, digest = _read(path)
    if sha256 not in {None, digest}:
        raise InputError(
            "changed since the data set was prepared (its sha256 differs)",
            where=str(path),
            remedy=_RESTORE,
        )
    image = _decode(path, content, channels=channels, size_limit=size_limit)
    pixels = np.atleast_3d(np.asarray(image))
    # Copy the pixels, because Pillow's array is read-only.
    return np.array(pixels.transpose(2, 0, 1), order="C")


def _read(path: Path) -> tuple[bytes, str]:
    """Read the file `path`, and return its content and its sha256."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise cannot_be_read(path, error) from error
    return content, hashlib.sha256(content).hexdigest()


def cannot_be_read(path: Path, error: OSError) -> InputError:
    """Make the InputError for `path`, a user's file that the system cannot read."""
    if isinstance(error, FileNotFoundError):
        remedy = _RESTORE
    elif isinstance(error, PermissionError):
        remedy = "Change its permissions."
    else:
        remedy = "Replace it, or check its disk."
    return InputError(
        f"cannot be read ({error.strerror or error})", where=str(path), remedy=remedy
    )


def _decode(
    path: Path, content: bytes, *, channels: int | None, size_limit: int | None
) -> Image.Image:
    """Decode `content` in mode L or RGB, shrunk to `size_limit`.

    If `channels` is None, the mode depends on the file.
    """
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            size = _shrunk_size(image, size_limit)
            if size != image.size:
                # Let a JPEG decoder skip detail that shrinking would discard.
                image.draft(image.mode, size)
            if image.mode not in _GREY + _COLOUR:
                raise InputError(
                    f"pixels have mode {image.mode!r}, not 8 bits per channel",
                    where=str(path),
                    remedy=_REPLACE,
                )
            is_grey = image.mode in _GREY if channels is None else channels == 1
            plain = _without_palette(image).convert("L" if is_grey else "RGB")
            # Resize bicubically with antialiasing, like the preprocessing of most
            # pretrained networks.
            return plain.resize(size, Image.Resampling.BICUBIC, reducing_gap=3.0)
    except UNREADABLE as error:
        raise InputError(
            f"is not a readable image ({error})", where=str(path), remedy=_REPLACE
        ) from error


def _shrunk_size(image: Image.Image, size_limit: int | None) -> tuple[int, int]:
    """Return the size of `image`, shrunk until its shorter side fits `size_limit`."""
    shorter = min(image.size)
    limit = min(size_limit or shorter, shorter)
    width = max(1, round(image.width * limit / shorter))
    height = max(1, round(image.height * limit / shorter))
    return width, height


def _without_palette(image: Image.Image) -> Image.Image:
    # Convert to RGBA first; otherwise Pillow would warn about transparent palettes.
    return image.convert("RGBA") if image.mode == "P" else image


def digest_of_files(root: Path, files: Sequence[str]) -> str:
    """Compute one sha256 over the names and contents of `files` below `root`.

    Raises:
        InputError: If a file cannot be read.
    """

    def digest(file: str) -> str:
        return digest_of_user_file(root / file)

    with ThreadPoolExecutor() as pool:
        digests = list(pool.map(digest, files))
    lines = [f"{sha}  {file}\n" for sha, file in zip(digests, files, strict=True)]
    return digest_of_text("".join(lines))


def digest_of_user_file(path: Path) -> str:
    """Return the sha256 of the user's file `path`; raise InputError if that fails."""
    try:
        return digest_of_file(path)
    except OSError as error:
        raise cannot_be_read(path, error) from error
