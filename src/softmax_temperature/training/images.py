"""Images on the device, and what happens to a batch of them before the network: augmentation and normalisation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.params.recipe import Recipe
from softmax_temperature.training.samples import Samples

RGB = 3


@dataclass(frozen=True)
class ImageSet(Samples):
    """Images: inputs (n, 3, height, width) uint8; labels (n,) int64, or (n, height, width), one for each pixel."""

    def __post_init__(self) -> None:
        shape, dtype = tuple(self.inputs.shape), self.inputs.dtype
        if len(shape) != 4 or shape[1] != RGB or dtype != torch.uint8:
            raise ValueError(f"images must be (n, 3, height, width) uint8, got {shape} {dtype}; see to_rgb")
        count, _, *sides = shape
        if tuple(self.labels.shape) not in {(count,), (count, *sides)}:
            own = tuple(self.labels.shape)
            raise ValueError(f"labels must have shape ({count},), or one for each pixel {(count, *sides)}, got {own}")

    def check(self, recipe: Recipe) -> None:
        """Refuse a recipe without normalisation, or one that augments images whose every pixel has a label."""
        if recipe.mean is None or recipe.std is None:
            raise ValueError(f"recipe must normalise images, got {recipe.mean=}, {recipe.std=}")
        if self.labels.ndim > 1 and (recipe.crop_padding or recipe.flip):
            raise ValueError(f"recipe must not augment pixels with labels, got {recipe.crop_padding=}, {recipe.flip=}")

    def batch(self, rows: Tensor, generator: torch.Generator, recipe: Recipe) -> Tensor:
        """Some images, augmented and normalised: (b, 3, height, width) float32."""
        images = self.inputs[rows]
        if recipe.crop_padding or recipe.flip:
            images = augment(images, generator, crop_padding=recipe.crop_padding, flip=recipe.flip)
        return self.prepare(images, recipe)

    def prepare(self, inputs: Tensor, recipe: Recipe) -> Tensor:
        """Images (b, 3, height, width) uint8, normalised."""
        assert recipe.mean is not None, "check refuses a recipe without"
        assert recipe.std is not None, "check refuses a recipe without"
        return normalise(inputs, recipe.mean, recipe.std)


def to_rgb(images: Tensor, size: int | None = None) -> Tensor:
    """Grey images as RGB, brought to squares of `size` pixels where that differs.

    Args:
        images: (n, 1 or 3, height, width) uint8.
        size: None leaves height and width as they are. Otherwise bilinear, antialiased, as torchvision resizes.

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
        mean: one number per channel, of pixels on the scale 0 to 1.
        std: as `mean`.
    """
    shift, scale = (255 * torch.tensor(values, device=images.device)[None, :, None, None] for values in (mean, std))
    return images.to(torch.float32, memory_format=torch.channels_last).sub_(shift).div_(scale)
