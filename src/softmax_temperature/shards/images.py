"""The labelled images of one shard, and batches of them: decoded when their turn comes, a batch at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor

from softmax_temperature.data.image_files import decode_image

if TYPE_CHECKING:
    from numpy.typing import NDArray

PIXEL_BYTES = 2**26
"""Of a batch, decoded: images of many megapixels make smaller batches."""


class ShardImages(Protocol):
    """Images of a shard, none of them decoded."""

    @property
    def names(self) -> Sequence[str]:
        """Of the images, without a line break; what is held out depends on them."""

    @property
    def labels(self) -> Sequence[int]:
        """Class numbers, one for each name."""

    def content(self, row: int) -> bytes:
        """The bytes of an image file."""

    def place(self, row: int) -> str:
        """Where it is, for messages."""


def batches(images: ShardImages, rows: Iterable[int], size: int) -> Iterator[Tensor | list[Tensor]]:
    """Decode images in batches.

    Args:
        images: of a shard.
        rows: which of them, in this order.
        size: at most so many at a time; fewer where they are large.

    Yields:
        (n, 3, height, width) uint8 where all are of one size, else n tensors (3, height, width); channels last.

    Raises:
        InputError: an image is damaged.
    """
    held: list[NDArray[np.uint8]] = []
    pixels = 0
    for row in rows:
        image = np.asarray(decode_image(images.content(row), images.place(row), channels=3, size_limit=None))
        held.append(image)
        pixels += image.nbytes
        if len(held) == size or pixels >= PIXEL_BYTES:
            yield _together(held)
            held, pixels = [], 0
    if held:
        yield _together(held)


def _together(images: list[NDArray[np.uint8]]) -> Tensor | list[Tensor]:
    """One tensor where that is possible: preprocessing then takes one pass instead of one for each image."""
    if len({image.shape for image in images}) == 1:
        return torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2)
    return [torch.from_numpy(image.copy()).permute(2, 0, 1) for image in images]
