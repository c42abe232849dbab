"""Segmentation folders: `NAME/images/PART/STEM.jpg` and `NAME/labels/PART/STEM.png`, with a class for every pixel.

PART is train, test, or val, which a data set need not have. A label map has the size of its image and one number of 8
bits a pixel: a class, or the one value that stands for no class (void). Palettes are taken as the numbers they are.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import numpy as np
from PIL import Image

from softmax_temperature.data.image_files import ENDINGS, UNREADABLE, read_image
from softmax_temperature.runner.artifacts import digest_of_file, digest_of_text
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Collection

    from numpy.typing import NDArray

Sides = tuple[int, int]
"""Height and width in pixels."""
Arrays = tuple["NDArray[np.uint8]", "NDArray[np.uint8]"]
"""Images (n, 3, height, width) and labels (n, height, width)."""

TRAIN, VALIDATION, TEST = "train", "val", "test"
SIDE_FACTOR = 16
"""Sides are multiples of it, because the U-Net halves them four times."""

_READERS = 8  # Threads; Pillow decodes outside the interpreter's lock.
_ENDINGS = {"images": ENDINGS, "labels": frozenset({".png"})}
_LABEL_MODES = frozenset({"L", "P"})
_LAYOUT = "Put images/train/STEM.jpg (or another image file), labels/train/STEM.png, and the same for test, below it."
_PARAMETERS = "cooling.segmentation"


@dataclass(frozen=True)
class Form:
    """What label maps say, and what is made of the files.

    Attributes:
        classes: how many; labels are 0 to classes - 1, or void.
        void: the label of pixels without a class.
        crop: height and width that are cut out of the middle of each image; None keeps all of it.
        size: height and width that the rest is brought to: images bilinear and antialiased, labels by the nearest
            pixel; None keeps the pixels.
    """

    classes: int
    void: int
    crop: Sides | None
    size: Sides | None


@dataclass(frozen=True)
class SegmentationFolder:
    """One folder `NAME` below data.root."""

    root: Path
    name: str

    @property
    def path(self) -> Path:
        """The data set's folder."""
        return self.root / self.name

    @property
    def exists(self) -> bool:
        """Whether there is a folder that may be one of these."""
        return (self.path / "images").is_dir() or (self.path / "labels").is_dir()

    def digest(self) -> str:
        """One sha256 over the names and contents of all files, wherever the folder stands.

        Raises:
            InputError: as for `read`, as far as names tell.
        """
        files = [file for part in self.parts() for pair in self._pairs(part) for file in pair]
        with ThreadPoolExecutor(_READERS) as pool:
            digests = pool.map(digest_of_file, files)
            names = [file.relative_to(self.path).as_posix() for file in files]
            return digest_of_text("".join(f"{sha}  {name}\n" for sha, name in zip(digests, names, strict=True)))

    def parts(self) -> tuple[str, ...]:
        """The parts that there are, in the order train, val, test.

        Raises:
            InputError: train or test is missing, or val has images and no labels.
        """
        has_validation = (self.path / "images" / VALIDATION).is_dir()
        parts = (TRAIN, VALIDATION, TEST) if has_validation else (TRAIN, TEST)
        for folder in (self.path / kind / part for part in parts for kind in _ENDINGS):
            if not folder.is_dir():
                _refuse(folder, "no such folder", remedy=_LAYOUT)
        return parts

    def read(self, part: str, form: Form) -> Arrays:
        """Read all images of a part and their label maps, in the order of their names.

        Args:
            part: one of `parts()`.
            form: what is in the files, and what is made of them.

        Returns:
            (n, 3, height, width) and (n, height, width), uint8; grey images have three equal channels.

        Raises:
            InputError: a pair is not complete, a file is damaged, sizes differ within a pair or between pairs, sides
                are not multiples of 16, or a label is neither a class nor void.
        """
        pairs = self._pairs(part)
        sides = _read_pair(pairs[0], form)[1].shape
        images = np.empty((len(pairs), 3, *sides), dtype=np.uint8)
        labels = np.empty((len(pairs), *sides), dtype=np.uint8)
        with ThreadPoolExecutor(_READERS) as pool:
            for row, (image, label) in enumerate(pool.map(lambda pair: _read_pair(pair, form), pairs)):
                if label.shape != sides:
                    what = "gives {}×{} pixels, the first image {}×{}".format(*label.shape, *sides)
                    _refuse(pairs[row][0], what, remedy=f"Set {_PARAMETERS}.size, which brings all to one size.")
                images[row], labels[row] = image, label
        return images, labels

    def _pairs(self, part: str) -> list[tuple[Path, Path]]:
        """Each image with its label map, sorted by name."""
        found = {kind: _by_stem(self.path / kind / part, endings) for kind, endings in _ENDINGS.items()}
        for kind, other in (("images", "labels"), ("labels", "images")):
            if alone := sorted(found[kind].keys() - found[other].keys()):
                file = found[kind][alone[0]]
                what = f"no file of this stem in {other}/{part}, nor for {len(alone) - 1} others of {kind}/{part}"
                _refuse(file, what, remedy="Complete the pairs, or take these files out.")
        return [(found["images"][stem], found["labels"][stem]) for stem in sorted(found["images"])]


def _by_stem(folder: Path, endings: Collection[str]) -> dict[str, Path]:
    """The visible files of a folder that end so."""
    found: dict[str, Path] = {}
    for file in sorted(folder.iterdir()):
        if file.suffix.lower() in endings and not file.name.startswith("."):
            if file.stem in found:
                _refuse(file, f"a second file of this stem, beside {found[file.stem].name}", remedy="Keep one of them.")
            found[file.stem] = file
    if not found:
        _refuse(folder, f"no files that end in {' '.join(sorted(endings))}", remedy=_LAYOUT)
    return found


def _read_pair(pair: tuple[Path, Path], form: Form) -> Arrays:
    """One image (3, height, width) and its labels (height, width), in their final size."""
    image_file, label_file = pair
    pixels = read_image(image_file, sha256=digest_of_file(image_file), channels=3, size_limit=None)
    image, labels = Image.fromarray(pixels.transpose(1, 2, 0)), _read_labels(label_file, form)
    if labels.size != image.size:
        what = f"is {_sides(labels)} pixels, its image {_sides(image)}"
        _refuse(label_file, what, remedy="Make both of one size, the labels without mixing neighbours.")
    if form.crop is not None:
        image, labels = (_cropped(one, form.crop, image_file) for one in (image, labels))
    if form.size is not None:
        height, width = form.size
        image = image.resize((width, height), Image.Resampling.BILINEAR)
        labels = labels.resize((width, height), Image.Resampling.NEAREST)
    if image.width % SIDE_FACTOR or image.height % SIDE_FACTOR:
        what = f"gives {_sides(image)} pixels, not multiples of {SIDE_FACTOR}"
        _refuse(image_file, what, remedy=f"Set {_PARAMETERS}.crop or {_PARAMETERS}.size.")
    return np.asarray(image).transpose(2, 0, 1), np.asarray(labels)


def _read_labels(file: Path, form: Form) -> Image.Image:
    """A label map with the numbers as they are in the file."""
    try:
        with Image.open(file) as image:
            mode, numbers = image.mode, np.asarray(image)
    except UNREADABLE as error:
        _refuse(file, f"not a readable image ({error})", remedy="Replace the file.")
    if mode not in _LABEL_MODES:
        _refuse(file, f"labels of mode {mode!r}, not one number of 8 bits a pixel", remedy="Save them as such a PNG.")
    present = np.bincount(numbers.ravel(), minlength=256) > 0
    present[[*range(form.classes), form.void]] = False
    wrong = present.nonzero()[0]
    if len(wrong):
        what = f"holds label {wrong[0]}, which is neither one of {form.classes} classes nor {form.void} (void)"
        _refuse(file, what, remedy=f"Correct {_PARAMETERS}.classes or {_PARAMETERS}.void, or the file.")
    return Image.fromarray(numbers)


def _cropped(image: Image.Image, crop: Sides, file: Path) -> Image.Image:
    """The middle of an image."""
    height, width = crop
    if image.height < height or image.width < width:
        what = f"is {_sides(image)} pixels, smaller than the crop {height}×{width}"
        _refuse(file, what, remedy=f"Set a smaller {_PARAMETERS}.crop, or use {_PARAMETERS}.size.")
    top, left = (image.height - height) // 2, (image.width - width) // 2
    return image.crop((left, top, left + width, top + height))


def _sides(image: Image.Image) -> str:
    return f"{image.height}×{image.width}"


def _refuse(path: Path, what: str, *, remedy: str) -> NoReturn:
    raise InputError(what, where=str(path), remedy=remedy)
