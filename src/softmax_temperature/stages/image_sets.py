"""Prepared images as networks are trained on them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from softmax_temperature.data.splits import SplitName
    from softmax_temperature.runner.artifacts import Artifact
    from softmax_temperature.training import ImageSet


def image_set(prepared_images: Artifact, split: SplitName, root: str, size: int | None = None) -> ImageSet:
    """One split of a prepared data set, as RGB.

    Args:
        prepared_images: the data set.
        split: which one.
        root: the folder of the raw data.
        size: the side that images are brought to, or None.

    Raises:
        InputError: the data set's images differ in size, or it holds texts.
    """
    from softmax_temperature.data.prepared import open_prepared  # torch, which `--help` must not wait for
    from softmax_temperature.training import ImageSet, to_rgb

    prepared = open_prepared(prepared_images, root=Path(root))
    if not prepared.one_size:
        what = "images differ in size, and a network that is trained on them needs one"
        raise InputError(what, where=f"data set {prepared.name}", remedy="Supply it as NAME.npz, resized.")
    part = prepared.part(split)
    data, labels = part.for_evaluation() if split == "test" else part.for_fitting()
    return ImageSet(to_rgb(data, size), labels)
