"""A user's image folder, and its images through a backbone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from softmax_temperature.data.class_folders import ClassFolders, class_files, has_class_folders, part_of
from softmax_temperature.data.image_files import read_image
from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.data.sampling import balanced_subset, generator_for
from softmax_temperature.networks.embeddings import extract
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.progress import counting
from softmax_temperature.tools.suggest.embedded import Embedded, embedded

if TYPE_CHECKING:
    from softmax_temperature.networks.backbones.loading import LoadedBackbone

BATCH = 64
_LAYOUT = "Put the images of each class into a folder of its own, below this one or below its train/ and test/."


def read_image_folder(folder: Path, *, limit: int | None, seed: int) -> RawDataset:
    """List the images of class folders.

    Args:
        folder: holds the classes; or `train` and `test` that do; or `all` that does.
        limit: at most so many images of each part, balanced over classes.
        seed: draws them.

    Raises:
        InputError: there are no such folders, a class has no image, or a link leads out of the folder.
    """
    place = folder.resolve()
    if has_class_folders(place.parent, place.name):
        found = ClassFolders(place.parent, place.name).read()
    else:
        files = class_files(place.parent, place.name, boundary=place)
        if len(files) < 2:
            raise InputError(f"has {len(files)} class folders with images", where=str(folder), remedy=_LAYOUT)
        found = RawDataset(place.name, tuple(files), part_of(tuple(files), files), None, {})
    train, test = (part and _limited(part, limit, seed) for part in (found.train, found.test))
    assert train is not None
    return RawDataset(found.name, found.class_names, train, test, found.source)


def embed_folder(folder: Path, images: RawDataset, backbone: LoadedBackbone, *, device: str) -> Embedded:
    """The embeddings of all images.

    Raises:
        InputError: an image is damaged, or its embedding is not finite or all zero.
    """
    parts = {"train": images.train} | ({"test": images.test} if images.test else {})
    with counting("images", sum(len(part.labels) for part in parts.values())) as advance:

        def read(part: RawPart) -> Iterator[list[Tensor]]:
            for batch in _batches(folder.resolve().parent, [str(path) for path in part.images]):
                yield batch
                advance(len(batch))

        arrays = {
            split: {
                "embeddings": torch.cat(
                    list(extract(backbone.network, backbone.preprocess, read(part), device=device, where=str(folder)))
                ).numpy(),
                "labels": part.labels,
            }
            for split, part in parts.items()
        }
    return embedded(arrays["train"], arrays.get("test"), (folder, folder))


def _limited(part: RawPart, limit: int | None, seed: int) -> RawPart:
    if limit is None:
        return part
    rows = balanced_subset(part.labels, limit, generator_for(seed, "suggest", "limit"))
    return RawPart(tuple(str(part.images[row]) for row in rows), part.labels[rows])


def _batches(root: Path, paths: Sequence[str]) -> Iterator[list[Tensor]]:
    """Decoded images, in threads: Pillow works outside the interpreter's lock."""

    def read(path: str) -> Tensor:
        pixels = read_image(root / path, sha256=None, channels=3, size_limit=None)
        return torch.from_numpy(np.ascontiguousarray(pixels))

    with ThreadPoolExecutor(torch.get_num_threads()) as pool:
        for start in range(0, len(paths), BATCH):
            yield list(pool.map(read, paths[start : start + BATCH]))
