"""Image files in class folders: listed, decoded, brought to grey or RGB, and shrunk
where larger than needed.

Class folders, with image files directly in them, are below `NAME/train` and
`NAME/test`; or below `NAME/all`, to be split when the data set is prepared; or below
`NAME/test` alone, for an out-of-distribution or shifted set. As in torchvision's
folders, an orientation tag is not applied, and transparency is dropped.
"""

import hashlib
import io
import struct
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from softmax_temperature.data.splits import RawDataset, RawPart
from softmax_temperature.runner.artifacts import digest_of_file, digest_of_text
from softmax_temperature.runner.errors import InputError

ENDINGS = frozenset(
    {".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
)
# What Pillow raises on damaged files.
UNREADABLE = (
    OSError,
    SyntaxError,
    ValueError,
    struct.error,
    Image.DecompressionBombError,
)

_GREY = ("1", "L", "LA")
_COLOUR = ("P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr", "LAB", "HSV")
_PARTS = ("train", "test", "all")
_LAYOUT = "Make train and test, or all, of a folder for each class with image files directly in it."
_REPLACE = "Replace the file, or take it out of the folder."


def image_files(folder: Path) -> list[Path]:
    """The image files directly in a folder, sorted, without hidden ones."""
    files = sorted(folder.iterdir())
    return [
        file
        for file in files
        if file.suffix.lower() in ENDINGS and not file.name.startswith(".")
    ]


def inspect_image(
    path: Path, *, size_limit: int | None
) -> tuple[str, tuple[int, int, int]]:
    """The sha256 of a file, and height, width and channels (1 or 3) as it is read;
    InputError if it cannot be.
    """
    sha256, image = _decode(path, channels=None, size_limit=size_limit)
    return sha256, (image.height, image.width, len(image.getbands()))


def read_image(
    path: Path, *, sha256: str | None, channels: int, size_limit: int | None
) -> NDArray[np.uint8]:
    """A file as (channels, height, width) uint8, its short side at most `size_limit`;
    InputError if it is another.
    """
    _, image = _decode(path, channels=channels, size_limit=size_limit, sha256=sha256)
    return np.array(
        np.atleast_3d(np.asarray(image)).transpose(2, 0, 1), order="C"
    )  # A copy: Pillow's is read-only.


def _decode(
    path: Path,
    *,
    channels: int | None,
    size_limit: int | None,
    sha256: str | None = None,
) -> tuple[str, Image.Image]:
    """The digest of a file, and its image in mode L or RGB; `channels` None keeps grey
    images grey.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        remedy = "Restore it, or fetch the data set again."
        raise InputError(
            f"cannot be read ({error.strerror})", where=str(path), remedy=remedy
        ) from error
    digest = hashlib.sha256(content).hexdigest()
    if sha256 not in {None, digest}:
        what = "changed since the data set was prepared (its sha256 differs)"
        raise InputError(what, where=str(path), remedy="Restore it, or fetch it again.")
    try:
        with Image.open(io.BytesIO(content)) as image:
            short = min(image.size)
            limit = min(size_limit or short, short)
            size = (
                max(1, round(image.width * limit / short)),
                max(1, round(image.height * limit / short)),
            )
            if size != image.size:
                image.draft(
                    image.mode, size
                )  # A JPEG decoder can skip what shrinking would throw away.
            if image.mode not in _GREY + _COLOUR:
                what = f"pixels of mode {image.mode!r}, not 8 bits per channel"
                raise InputError(what, where=str(path), remedy=_REPLACE)
            grey = channels == 1 if channels is not None else image.mode in _GREY
            # Palettes by way of RGBA, which keeps Pillow from warning about transparent
            # ones.
            plain = (image.convert("RGBA") if image.mode == "P" else image).convert(
                "L" if grey else "RGB"
            )
            # Bicubic with antialiasing, as most pretrained networks' own preprocessing.
            return digest, plain.resize(
                size, Image.Resampling.BICUBIC, reducing_gap=3.0
            )
    except UNREADABLE as error:
        raise InputError(
            f"not a readable image ({error})", where=str(path), remedy=_REPLACE
        ) from error


@dataclass(frozen=True)
class ClassFolders:
    """One folder `NAME` below data.root, divided into train and test, or holding one of
    test and `all`.
    """

    root: Path
    name: str

    def digest(self) -> str:
        """One sha256 over the names and contents of all image files, wherever the
        folder is.
        """
        return digest_of_files(
            self.root,
            [file for part in self._parts() for own in part.values() for file in own],
        )

    def read(self) -> RawDataset:
        """List the files, which are read when the data set is prepared."""
        train, test = self._parts()
        names = tuple(train or test)
        if len(names) < 2:
            raise InputError(
                f"has {len(names)} class folders",
                where=str(self.root / self.name),
                remedy=_LAYOUT,
            )
        if unknown := [name for name in test if name not in names]:
            where = str(self.root / self.name / "test" / unknown[0])
            raise InputError(
                "a class that train does not have", where=where, remedy=_LAYOUT
            )
        source = {"how": "class folders in data.root", "folder": self.name}
        return RawDataset(
            self.name,
            names,
            part_of(names, train),
            part_of(names, test) if test else None,
            source,
        )

    def _parts(self) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
        """The files to train on (or all) and to test on, by class; either may be
        missing.
        """
        present = [part for part in _PARTS if (self.root / self.name / part).is_dir()]
        if present not in (["train", "test"], ["all"], ["test"]):
            raise InputError(
                f"holds {' and '.join(present)}",
                where=str(self.root / self.name),
                remedy=_LAYOUT,
            )
        found = {
            part: class_files(self.root, f"{self.name}/{part}") for part in present
        }
        return found.get("train") or found.get("all", {}), found.get("test", {})


def digest_of_files(root: Path, files: Sequence[str]) -> str:
    """One sha256 over the names and contents of files below `root`."""
    with ThreadPoolExecutor() as pool:
        digests = pool.map(digest_of_file, [root / file for file in files])
        return digest_of_text(
            "".join(
                f"{sha}  {file}\n" for sha, file in zip(digests, files, strict=True)
            )
        )


def has_class_folders(root: Path, name: str) -> bool:
    """Whether `NAME` below a folder has at least one of the parts that hold class
    folders.
    """
    return any((root / name / part).is_dir() for part in _PARTS)


def class_files(
    root: Path, folder: str, *, leave_out: str | None = None
) -> dict[str, list[str]]:
    """The image files of each class folder in `folder`, as paths below `root`; classes
    and files sorted.
    """
    found = {}
    for place in sorted(path for path in (root / folder).iterdir() if path.is_dir()):
        if place.name.startswith(".") or place.name == leave_out:
            continue
        found[place.name] = [
            f"{folder}/{place.name}/{file.name}" for file in image_files(place)
        ]
        if not found[place.name]:
            what = f"no image files (endings: {' '.join(sorted(ENDINGS))})"
            raise InputError(what, where=str(place), remedy=_LAYOUT)
    return found


def part_of(names: Sequence[str], files: Mapping[str, Sequence[str]]) -> RawPart:
    """A part of the given classes, class by class; a class may be absent."""
    paths = tuple(file for name in names for file in files.get(name, ()))
    return RawPart(
        paths,
        np.repeat(np.arange(len(names)), [len(files.get(name, ())) for name in names]),
    )
