"""Data sets with a class for every pixel: folders of files, or generated scenes.

A folder holds `NAME/images/PART/STEM.jpg` and `NAME/labels/PART/STEM.png`, or other
endings of `image_files.ENDINGS`; PART is train, test, or optionally val. A label map
has the size of its image and one 8-bit number per pixel: a class, or the value of
pixels without a class (void). In a palette image the palette indices are the labels.
"""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, NoReturn

import numpy as np
import torch
from PIL import Image

from softmax_temperature.data.catalogue import BY_HAND
from softmax_temperature.data.glyphs import (
    IS_GLYPH_SCENES,
    TRAIN_SCENES,
    VOID,
    Pixels,
    read_glyph_scenes,
)
from softmax_temperature.data.image_files import (
    ENDINGS,
    FORMATS,
    OTHER_ENDINGS,
    UNREADABLE,
    digest_of_files,
    image_files,
    listed,
    read_image,
)
from softmax_temperature.data.seeds import generator_for
from softmax_temperature.data.splits import Part, SplitName
from softmax_temperature.runner.errors import InputError, MissingInput

Parts = dict[SplitName, Part]

_FOLDERS: dict[SplitName, str] = {"train": "train", "validation": "val", "test": "test"}
_PARAMETERS = "cooling.segmentation"
_LAYOUT = (
    "Put images/train/STEM.jpg, labels/train/STEM.png, and the same for test, into "
    "{folder}."
)
_SIDE_MULTIPLE = 16
"""The U-Net halves height and width four times, so both must be multiples of this."""


class Form(NamedTuple):
    """The form of label maps, and the size that images are resized to.

    Attributes:
        classes: Label maps hold numbers from 0 to `classes` - 1, or `void`.
        void: The label of a pixel without a class.
        crop: Height and width of the centre crop, or None to use the whole image.
        size: Height and width to which the cropped image is resized, or None to leave
            its size as it is.
    """

    classes: int
    void: int
    crop: Sequence[int] | None
    size: Sequence[int] | None


class _FilePair(NamedTuple):
    image: Path
    labels: Path


def require_scenes(name: str, *, root: Path) -> None:
    """Raise MissingInput unless a data set is generated or has a folder of images."""
    if IS_GLYPH_SCENES.fullmatch(name) or (root / name / "images").is_dir():
        return
    folder = root / name
    raise MissingInput(
        f"not found in {root}",
        where=f"data set {name}",
        remedy=BY_HAND.get(name, _LAYOUT).format(folder=folder),
    )


def segmentation_digest(name: str, *, root: Path) -> str | None:
    """Compute one sha256 over the files of a data set, or None for a generated one.

    Raises:
        MissingInput: If there is no such data set.
        InputError: If the files do not form pairs, or a file cannot be used.
    """
    if IS_GLYPH_SCENES.fullmatch(name):
        return None
    folder = root / name
    files = [
        file.relative_to(folder).as_posix()
        for pairs in _all_pairs(name, root).values()
        for pair in pairs
        for file in pair
    ]
    return digest_of_files(folder, files)


def read_segmentation(name: str, form: Form, *, root: Path, seed: int) -> Parts:
    """Read all parts of "glyph-scenes-N" or of a folder.

    Args:
        name: The name of the data set.
        form: The form of the label maps, and the size to which images are resized.
        root: The folder with the user's data (the parameter `data.root`).
        seed: The seed of generated scenes.

    Returns:
        The data (n, 3, height, width) and the labels (n, height, width) of each split,
        both in uint8.

    Raises:
        InputError: If a file is missing, unreadable, or does not have the given form.
    """
    if IS_GLYPH_SCENES.fullmatch(name):
        return _draw_scenes(name, form, seed)
    parts: Parts = {}
    for split, pairs in _all_pairs(name, root).items():
        images, labels = _read(pairs, form)
        parts[split] = _part(name, split, images, labels)
    return parts


def _draw_scenes(name: str, form: Form, seed: int) -> Parts:
    classes = 1 + int(name.rpartition("-")[2])
    if form != Form(classes, VOID, crop=None, size=None):
        _refuse(
            f"data set {name}",
            f"has {classes} classes including paper, void {VOID}, and images of one "
            "size",
            f"Set {_PARAMETERS}: classes: {classes}, void: {VOID}, crop: null, size: "
            "null.",
        )
    grey, labels = read_glyph_scenes(name, seed=seed)
    images = np.repeat(grey[:, None], 3, axis=1)
    return {
        "train": _part(name, "train", images[:TRAIN_SCENES], labels[:TRAIN_SCENES]),
        "test": _part(name, "test", images[TRAIN_SCENES:], labels[TRAIN_SCENES:]),
    }


def _part(name: str, split: SplitName, images: Pixels, labels: Pixels) -> Part:
    return Part.of_all(name, split, torch.from_numpy(images), torch.from_numpy(labels))


def set_aside(parts: Parts, count: int | None, *, seed: int) -> Parts:
    """Return the parts with `count` random training images as the validation part.

    These images replace the data set's own validation part. If `count` is None, `parts`
    is returned, which must have a validation part. InputError is raised if there is
    none, or if `count` leaves no training images.
    """
    train = parts["train"]
    size = len(train.labels)
    if count is None:
        if "validation" not in parts:
            _refuse(
                f"data set {train.dataset}",
                "has no images/val",
                f"Set {_PARAMETERS}.cooling_images.",
            )
        return parts
    if count >= size:
        _refuse(
            f"data set {train.dataset}",
            f"has {size} training images, and cooling_images would set aside {count}",
            f"Lower {_PARAMETERS}.cooling_images, or raise train_limit.",
        )
    generator = generator_for(seed, train.dataset, "validation")
    order = generator.permutation(size)
    return {
        "train": train.take(np.sort(order[count:])),
        "validation": train.take(np.sort(order[:count]), "validation"),
        "test": parts["test"],
    }


def _all_pairs(name: str, root: Path) -> dict[SplitName, list[_FilePair]]:
    """List the pairs of image and label files of each part, sorted."""
    require_scenes(name, root=root)
    folder = root / name
    layout = _LAYOUT.format(folder=folder)
    pairs: dict[SplitName, list[_FilePair]] = {}
    for split, part in _FOLDERS.items():
        images = _files_by_stem(folder / "images" / part)
        labels = _files_by_stem(folder / "labels" / part)
        unpaired = sorted(images.keys() ^ labels.keys())
        if unpaired:
            _refuse(
                folder,
                f"{part}: {len(unpaired)} file(s) have no counterpart of the same "
                f"stem, such as {unpaired[0]}",
                layout,
            )
        if images:
            stems = sorted(images)
            pairs[split] = [_FilePair(images[stem], labels[stem]) for stem in stems]
        elif split != "validation":
            _refuse(folder, f"{part} holds no images", layout)
    return pairs


def _files_by_stem(folder: Path) -> dict[str, Path]:
    """Map each stem to its image file in `folder`; {} if there is no such folder.

    Images in formats that are not read, and two images with the same stem, are refused.
    """
    if not folder.is_dir():
        return {}
    left_out = [
        path
        for path in listed(folder)
        if path.suffix.lower() in OTHER_ENDINGS and not path.name.startswith(".")
    ]
    if left_out:
        _refuse(
            left_out[0],
            f"cannot be used, because {left_out[0].suffix} files are not read",
            f"Convert it to one of {' '.join(sorted(ENDINGS))}, or remove it.",
        )
    files: dict[str, Path] = {}
    for file in image_files(folder):
        other = files.setdefault(file.stem, file)
        if other != file:
            _refuse(file, f"has the same stem as {other.name}", "Keep one of them.")
    return files


def _read(pairs: Sequence[_FilePair], form: Form) -> tuple[Pixels, Pixels]:
    def read_pair(pair: _FilePair) -> tuple[Pixels, Pixels]:
        return _read_pair(pair, form)

    # Decode in threads, because Pillow releases the interpreter's lock while it
    # decodes.
    with ThreadPoolExecutor() as pool:
        images, labels = zip(*pool.map(read_pair, pairs), strict=True)
    height, width = labels[0].shape
    for pair, label_map in zip(pairs, labels, strict=True):
        if label_map.shape != (height, width):
            own_height, own_width = label_map.shape
            _refuse(
                pair.image,
                f"has {own_height}×{own_width} pixels, but the first image has "
                f"{height}×{width}",
                f"Set {_PARAMETERS}.size to resize all images.",
            )
    return np.stack(images), np.stack(labels)


def _read_pair(pair: _FilePair, form: Form) -> tuple[Pixels, Pixels]:
    """Read an image (3, height, width) and its labels, cropped and resized."""
    pixels = read_image(pair.image, sha256=None, channels=3, size_limit=None)
    image = Image.fromarray(pixels.transpose(1, 2, 0))
    labels = _read_labels(pair.labels, form)
    if labels.size != image.size:
        _refuse(
            pair.labels,
            f"has {_sides(labels)} pixels, but its image has {_sides(image)}",
            "Resize one of them; resize labels by nearest neighbour, so that classes "
            "do not mix.",
        )
    if form.crop is not None:
        image = _central_crop(image, form.crop, pair.image)
        labels = _central_crop(labels, form.crop, pair.image)
    if form.size is not None:
        height, width = form.size
        image = image.resize((width, height), Image.Resampling.BILINEAR)
        labels = labels.resize((width, height), Image.Resampling.NEAREST)
    if image.width % _SIDE_MULTIPLE or image.height % _SIDE_MULTIPLE:
        _refuse(
            pair.image,
            f"has {_sides(image)} pixels; height and width must be multiples of "
            f"{_SIDE_MULTIPLE}",
            f"Set {_PARAMETERS}.crop or {_PARAMETERS}.size.",
        )
    return np.asarray(image).transpose(2, 0, 1), np.asarray(labels)


def _central_crop(image: Image.Image, sides: Sequence[int], file: Path) -> Image.Image:
    height, width = sides
    top = (image.height - height) // 2
    left = (image.width - width) // 2
    if top < 0 or left < 0:
        _refuse(
            file,
            f"is {_sides(image)} pixels",
            f"Set a smaller {_PARAMETERS}.crop, or {_PARAMETERS}.size.",
        )
    return image.crop((left, top, left + width, top + height))


def _read_labels(file: Path, form: Form) -> Image.Image:
    try:
        with Image.open(file, formats=FORMATS) as image:
            numbers = np.asarray(image)
    except UNREADABLE as error:
        _refuse(file, f"is not a readable image ({error})", "Replace the file.")
    if numbers.dtype != np.uint8 or numbers.ndim != 2:
        _refuse(
            file,
            "does not hold one 8-bit number per pixel",
            "Save the labels as a grey or palette PNG of 8 bits.",
        )
    valid = {*range(form.classes), form.void}
    wrong = set(np.unique(numbers).tolist()) - valid
    if wrong:
        _refuse(
            file,
            f"holds label {min(wrong)}, which is neither one of the {form.classes} "
            f"classes nor {form.void} (void)",
            f"Correct {_PARAMETERS}.classes or {_PARAMETERS}.void, or the file.",
        )
    return Image.fromarray(numbers)


def _sides(image: Image.Image) -> str:
    return f"{image.height}×{image.width}"


def _refuse(where: Path | str, what: str, remedy: str) -> NoReturn:
    raise InputError(what, where=str(where), remedy=remedy)
