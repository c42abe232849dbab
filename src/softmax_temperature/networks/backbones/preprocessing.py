"""Preprocessing of images for a network, in batches of tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import torch
from torch import Tensor, nn

from softmax_temperature.networks.layers import channels
from softmax_temperature.params.network import Backbone
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from torchvision.models import WeightsEnum


@dataclass(frozen=True)
class Preprocess:
    """From uint8 images to what a network expects (`params.network`), within two grey levels of the library's own."""

    size: int
    resize: int
    interpolation: Literal["bilinear", "bicubic"]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    channels: Literal["rgb", "bgr"] = "rgb"
    pixel_scale: float = 1.0

    def __call__(self, images: Tensor | Sequence[Tensor], *, device: str | torch.device = "cpu") -> Tensor:
        """Prepare images (n, channels, height, width) uint8, or n tensors (channels, height, width); 1 or 3 channels.

        Returns (n, 3, size, size) float32 on `device`, channels last in memory.
        """
        batches = [images] if isinstance(images, Tensor) else [image[None] for image in images]
        squares = torch.cat([self._square(batch.to(device)) for batch in batches])
        pixels = squares.to(torch.float32, memory_format=torch.channels_last)
        # One value per channel, repeated along a row of pixels: arithmetic on three numbers at a time is slow.
        both = channels((*self.mean, *self.std), pixels.device).view(2, 3, 1, 1).expand(2, 3, 1, self.size)
        mean, std = both.contiguous(memory_format=torch.channels_last).split(1)
        return pixels.mul_(self.pixel_scale / 255).sub_(mean).div_(std)

    def _square(self, images: Tensor) -> Tensor:
        """Repeat grey, order the channels, resize and crop; (n, 1 or 3, height, width) to (n, 3, size, size) uint8."""
        from torchvision.transforms.v2 import functional  # It imports torch's compiler: two seconds.

        if images.dtype != torch.uint8 or images.ndim != 4 or images.shape[1] not in (1, 3):
            raise ValueError(f"images: {images.dtype} of shape {tuple(images.shape)}, must be uint8, 1 or 3 channels")
        colour = images.expand(-1, 3, -1, -1)
        # Channels last makes the resizing twice as fast, and the conversion to float after it five times.
        colour = (colour.flip(1) if self.channels == "bgr" else colour).contiguous(memory_format=torch.channels_last)
        # Deviation: the paper does not say how images that are smaller than a network's input were brought to its size.
        # They are enlarged, by the same interpolation that makes larger ones smaller.
        if min(colour.shape[-2:]) != self.resize:
            mode = functional.InterpolationMode(self.interpolation)
            colour = functional.resize(colour, [self.resize], interpolation=mode, antialias=True)
        square: Tensor = functional.center_crop(colour, [self.size, self.size])
        return square


def described_preprocess(spec: Backbone) -> Preprocess:
    """The preprocessing that the parameters of weights other than the hub's describe."""
    assert spec.input_size and spec.mean and spec.std  # noqa: PT018
    size, mean, std = spec.input_size, tuple(spec.mean), tuple(spec.std)
    resize = spec.resize or size
    return Preprocess(size, resize, spec.interpolation, mean, std, spec.channels, spec.pixel_scale)


def timm_preprocess(network: nn.Module) -> Preprocess:
    """The evaluation transform of a timm network's weights; InputError unless it is a square, centred crop."""
    from timm.data.config import resolve_model_data_config  # Optional: other libraries have backbones too.

    config: dict[str, Any] = resolve_model_data_config(network)
    height, width = config["input_size"][1:]
    if config["crop_mode"] != "center" or height != width or config["interpolation"] not in ("bilinear", "bicubic"):
        what = f"its own transform is not supported ({config})"
        raise InputError(what, where="timm weights", remedy="Choose weights with a square, centred crop.")
    resize = math.floor(height / config["crop_pct"])
    return Preprocess(height, resize, config["interpolation"], tuple(config["mean"]), tuple(config["std"]))


def torchvision_preprocess(weights: WeightsEnum) -> Preprocess:
    """The evaluation transform that belongs to torchvision's pretrained weights."""
    transform = weights.transforms()
    (size,), (resize,) = transform.crop_size, transform.resize_size
    return Preprocess(size, resize, transform.interpolation.value, tuple(transform.mean), tuple(transform.std))
