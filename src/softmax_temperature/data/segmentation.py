"""Data sets with a class for every pixel: folders of image and label files, or drawn
scenes, and their division.

A folder holds `NAME/images/PART/STEM.jpg` and `NAME/labels/PART/STEM.png`; PART is
train, test, or val, which a data set need not have. A label map has the size of its
image and one 8-bit number per pixel: a class, or the one value for pixels without a
class (void). Palettes are taken as the numbers they are.
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
    UNREADABLE,
    digest_of_files,
    image_files,
    read_image,
)
from softmax_temperature.data.seeds import generator_for
from softmax_temperature.data.splits import Part, SplitName
from softmax_temperature.runner.errors import InputError

Parts = dict[SplitName, Part]

_FOLDERS: dict[SplitName, str] = {"train": "train", "validation": "val", "test": "test"}
_PARAMETERS = "cooling.segmentation"


class Form(NamedTuple):
    """What label maps say (0 to `classes` - 1, or `void`); the middle `crop` (height,
    width) is resized to `size`.
    """

    classes: int
    void: int
    crop: Sequence[int] | None
    size: Sequence[int] | None


def segmentation_digest(name: str, *, root: Path) -> str | None:
    """A sha256 over the files of a data set, or None for one that is drawn; a missing
    one raises InputError.
    """
    if IS_GLYPH_SCENES.fullmatch(name):
        return None
    files = [
        file
        for pairs in _all_pairs(name, root).values()
        for pair in pairs
        for file in pair
    ]
    return digest_of_files(
        root / name, [file.relative_to(root / name).as_posix() for file in files]
    )


def read_segmentation(name: str, form: Form, *, root: Path, seed: int) -> Parts:
    """All parts of "glyph-scenes-N" or a folder: data (n, 3, height, width), labels (n,
    height, width), uint8.
    """
    if not IS_GLYPH_SCENES.fullmatch(name):
        found = {
            split: _read(pairs, form) for split, pairs in _all_pairs(name, root).items()
        }
    elif form != ((classes := 1 + int(name.rpartition("-")[2])), VOID, None, None):
        what = f"has {classes} classes with paper, void {VOID}, and one size"
        _refuse(
            f"data set {name}",
            what,
            f"Say so in {_PARAMETERS}: classes, void, crop: null, size: null.",
        )
    else:
        images, labels = read_glyph_scenes(name, seed=seed)
        sides = (
            np.split(side, [TRAIN_SCENES])
            for side in (np.repeat(images[:, None], 3, axis=1), labels)
        )
        found = dict(zip(("train", "test"), zip(*sides, strict=True), strict=True))
    return {
        split: Part.of_all(
            name, split, torch.from_numpy(images), torch.from_numpy(labels)
        )
        for split, (images, labels) in found.items()
    }


def set_aside(parts: Parts, count: int | None, *, seed: int) -> Parts:
    """Move `count` random training images to the validation part; None keeps the data
    set's own, if it has one.
    """
    train = parts["train"]
    if count is None:
        if "validation" not in parts:
            _refuse(
                f"data set {train.dataset}",
                "has no images/val",
                f"Set {_PARAMETERS}.cooling_images.",
            )
        return parts
    if count >= len(train.labels):
        what = f"has {len(train.labels)} training images, {count} of them to set aside"
        _refuse(
            f"data set {train.dataset}",
            what,
            f"Lower {_PARAMETERS}.cooling_images, or raise train_limit.",
        )
    order = generator_for(seed, train.dataset, "validation").permutation(
        len(train.labels)
    )
    kept, moved = (
        train.take(np.sort(order[count:])),
        train.take(np.sort(order[:count]), "validation"),
    )
    return {"train": kept, "validation": moved, "test": parts["test"]}


def _all_pairs(name: str, root: Path) -> dict[SplitName, list[tuple[Path, Path]]]:
    folder = root / name
    layout = f"Put images/train/STEM.jpg, labels/train/STEM.png, and the same for test, into {folder}."
    if not (folder / "images").is_dir():
        _refuse(
            f"data set {name}",
            f"not found in {root}",
            BY_HAND.get(name, layout).format(folder=folder),
        )
    pairs: dict[SplitName, list[tuple[Path, Path]]] = {}
    for split, part in _FOLDERS.items():
        folders = (folder / kind / part for kind in ("images", "labels"))
        images, labels = (
            {file.stem: file for file in image_files(one)} if one.is_dir() else {}
            for one in folders
        )
        if alone := sorted(images.keys() ^ labels.keys()):
            what = f"{part}: {len(alone)} files have no counterpart of the same stem, such as {alone[0]}"
            _refuse(folder, what, layout)
        if images:
            pairs[split] = [(images[stem], labels[stem]) for stem in sorted(images)]
        elif split != "validation":
            _refuse(folder, f"{part} holds no images", layout)
    return pairs


def _read(pairs: list[tuple[Path, Path]], form: Form) -> tuple[Pixels, Pixels]:
    with (
        ThreadPoolExecutor() as pool
    ):  # Pillow releases the interpreter's lock while it decodes.
        images, labels = zip(
            *pool.map(lambda pair: _read_pair(pair[0], pair[1], form), pairs),
            strict=True,
        )
    for (file, _), own in zip(pairs, labels, strict=True):
        if own.shape != labels[0].shape:
            what = "gives {}×{} pixels, the first image {}×{}".format(
                *own.shape, *labels[0].shape
            )
            _refuse(
                file, what, f"Set {_PARAMETERS}.size, which brings all to one size."
            )
    return np.stack(images), np.stack(labels)


def _read_pair(image_file: Path, label_file: Path, form: Form) -> tuple[Pixels, Pixels]:
    pixels = read_image(image_file, sha256=None, channels=3, size_limit=None)
    image, labels = (
        Image.fromarray(pixels.transpose(1, 2, 0)),
        _read_labels(label_file, form),
    )
    if labels.size != image.size:
        what = f"is {_sides(labels)} pixels, its image {_sides(image)}"
        _refuse(
            label_file,
            what,
            "Make both of one size, the labels without mixing neighbours.",
        )
    if form.crop is not None:
        height, width = form.crop
        top, left = (image.height - height) // 2, (image.width - width) // 2
        if top < 0 or left < 0:
            remedy = f"Set a smaller {_PARAMETERS}.crop, or {_PARAMETERS}.size."
            _refuse(image_file, f"is {_sides(image)} pixels", remedy)
        image, labels = (
            one.crop((left, top, left + width, top + height)) for one in (image, labels)
        )
    if form.size is not None:
        height, width = form.size
        image = image.resize((width, height), Image.Resampling.BILINEAR)
        labels = labels.resize((width, height), Image.Resampling.NEAREST)
    if image.width % 16 or image.height % 16:  # The U-Net halves them four times.
        what = f"gives {_sides(image)} pixels, not multiples of 16"
        _refuse(image_file, what, f"Set {_PARAMETERS}.crop or {_PARAMETERS}.size.")
    return np.asarray(image).transpose(2, 0, 1), np.asarray(labels)


def _read_labels(file: Path, form: Form) -> Image.Image:
    try:
        with Image.open(file) as image:
            numbers = np.asarray(image)
    except UNREADABLE as error:
        _refuse(file, f"not a readable image ({error})", "Replace the file.")
    if numbers.dtype != np.uint8 or numbers.ndim != 2:
        _refuse(
            file, "is not one 8-bit number per pixel", "Save the labels as such a PNG."
        )
    if wrong := {*np.unique(numbers).tolist()} - {*range(form.classes), form.void}:
        what = f"holds label {min(wrong)}, which is neither one of {form.classes} classes nor {form.void} (void)"
        _refuse(
            file,
            what,
            f"Correct {_PARAMETERS}.classes or {_PARAMETERS}.void, or the file.",
        )
    return Image.fromarray(numbers)


def _sides(image: Image.Image) -> str:
    return f"{image.height}×{image.width}"


def _refuse(where: Path | str, what: str, remedy: str) -> NoReturn:
    raise InputError(what, where=str(where), remedy=remedy)
