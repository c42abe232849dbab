"""Images on the device, and what happens to a batch of them before the network: augmentation and normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.training.samples import equal_distances

if TYPE_CHECKING:
    from softmax_temperature.params.recipe import Recipe

RGB = 3


@dataclass(frozen=True)
class ImageSet:
    """One split on one device.

    Attributes:
        images: (n, 3, height, width) uint8.
        labels: (n,) int64, or (n, height, width) of any integer type, one for each pixel.
    """

    images: Tensor
    labels: Tensor

    def __post_init__(self) -> None:
        if self.images.ndim != 4 or self.images.shape[1] != RGB or self.images.dtype != torch.uint8:
            shape, dtype = tuple(self.images.shape), self.images.dtype
            raise ValueError(f"images must be (n, 3, height, width) uint8, got {shape} {dtype}; see to_rgb")
        count, _, height, width = self.images.shape
        shape, pixels = tuple(self.labels.shape), (count, height, width)
        if shape not in {(count,), pixels}:
            raise ValueError(f"labels must have shape ({count},), got {shape}; one for each pixel would be {pixels}")

    @property
    def inputs(self) -> Tensor:
        """The images."""
        return self.images

    def __len__(self) -> int:
        return len(self.labels)

    def to(self, device: str) -> ImageSet:
        """The same on another device."""
        return ImageSet(self.images.to(device), self.labels.to(device))

    def sample(self, count: int | None) -> ImageSet:
        """About `count` images at equal distances, or all of them for None and when there are no more.

        Prepared images are often sorted by class: equal distances keep the classes balanced.
        """
        if count is None or count >= len(self):
            return self
        rows = equal_distances(len(self), count, self.labels.device)
        return ImageSet(self.images[rows], self.labels[rows])

    def check(self, recipe: Recipe) -> None:
        """Refuse a recipe that images cannot be trained by.

        Raises:
            ValueError: it does not say how to normalise, or it augments images whose every pixel has a label; labels
                do not move with them.
        """
        if recipe.mean is None or recipe.std is None:
            raise ValueError(f"recipe must normalise images, got {recipe.mean=}, {recipe.std=}")
        if self.labels.ndim > 1 and (recipe.crop_padding or recipe.flip):
            raise ValueError(f"recipe must not augment pixels with labels, got {recipe.crop_padding=}, {recipe.flip=}")

    def batch(self, rows: Tensor, generator: torch.Generator, recipe: Recipe) -> Tensor:
        """Some images, augmented and normalised: (b, 3, height, width) float32."""
        images = self.images[rows]
        if recipe.crop_padding or recipe.flip:
            images = augment(images, generator, crop_padding=recipe.crop_padding, flip=recipe.flip)
        return self.prepare(images, recipe)

    def prepare(self, inputs: Tensor, recipe: Recipe) -> Tensor:
        """Images (b, 3, height, width) uint8, normalised."""
        assert recipe.mean is not None, "check refuses a recipe without"
        assert recipe.std is not None, "likewise"
        return normalise(inputs, recipe.mean, recipe.std)


def to_rgb(images: Tensor, size: int | None = None) -> Tensor:
    """Grey images as RGB, brought to squares of `size` pixels where that differs.

    Args:
        images: (n, 1 or 3, height, width) uint8.
        size: null leaves height and width as they are. Otherwise bilinear, antialiased, as torchvision resizes.

    Returns:
        (n, 3, height, width) uint8.
    """
    if size is not None and images.shape[2:] != (size, size):
        resized = F.interpolate(images.float(), (size, size), mode="bilinear", antialias=True)
        images = resized.round().clamp(0, 255).to(torch.uint8)
    return images.expand(-1, RGB, -1, -1)


def augment(images: Tensor, generator: torch.Generator, *, crop_padding: int, flip: bool) -> Tensor:
    """Shift each image by up to `crop_padding` pixels, filling with zeros, and mirror half of them.

    The same as padding all sides and cropping at random (focal paper, appendix E), in one gather for the batch.

    Args:
        images: (n, channels, height, width), any dtype and device.
        generator: on the CPU, so that every device draws the same.
        crop_padding: pixels; 0 for no shift.
        flip: whether to mirror.

    Returns:
        The images, new.
    """
    count, _, height, width = images.shape
    offsets = torch.randint(0, 2 * crop_padding + 1, (2, count, 1), generator=generator)
    mirrored = torch.rand((count, 1), generator=generator) < 0.5
    rows = offsets[0] + torch.arange(height)
    columns = offsets[1] + torch.arange(width)
    if flip:
        columns = torch.where(mirrored, columns.flip(1), columns)
    padded = F.pad(images, (crop_padding,) * 4)
    index = (torch.arange(count)[:, None, None], rows[:, :, None], columns[:, None, :])
    # Channels last within the gather: each pixel's channels are moved together.
    moved = padded.permute(0, 2, 3, 1)[tuple(part.to(images.device) for part in index)]
    return moved.permute(0, 3, 1, 2)


def normalise(images: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """Pixels 0 to 255 as (pixel / 255 - mean) / std, float32, channels last in memory.

    Args:
        images: (n, 3, height, width) uint8.
        mean: one number for each channel, of pixels on the scale 0 to 1.
        std: likewise.
    """
    shift, scale = (_of_channels(tuple(values), images.device) for values in (mean, std))
    return images.to(torch.float32, memory_format=torch.channels_last).sub_(shift).div_(scale)


@cache  # A tensor made of Python's numbers takes as long as a convolution of a small batch.
def _of_channels(values: tuple[float, ...], device: torch.device) -> Tensor:
    """(1, channels, 1, 1) on the scale of pixels, 0 to 255."""
    return 255 * torch.tensor(values, device=device)[None, :, None, None]
