"""Preprocessing of images for frozen backbones."""

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
    """Turns uint8 images into a network's inputs.

    The result is within two grey levels of the library's own transform.
    `params.network.Backbone` explains the attributes; `size` is called `input_size`
    there.
    """

    size: int
    resize: int
    interpolation: Literal["bilinear", "bicubic"]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    channels: Literal["rgb", "bgr"] = "rgb"
    pixel_scale: float = 1.0

    def __call__(
        self, images: Tensor | Sequence[Tensor], *, device: str | torch.device = "cpu"
    ) -> Tensor:
        """Resize, crop and normalise.

        Args:
            images: A uint8 tensor of shape (n, 1 or 3, height, width), or a sequence of
                n uint8 tensors of shape (1 or 3, height, width), which may differ in
                size.
            device: The device of the result.

        Returns:
            A float32 tensor of shape (n, 3, size, size), with channels last in memory.

        Raises:
            ValueError: If the images have a different dtype or shape.
        """
        if isinstance(images, Tensor):
            squares = self._square(images.to(device))
        else:
            single = [self._square(image[None].to(device)) for image in images]
            squares = torch.cat(single)
        pixels = squares.to(torch.float32, memory_format=torch.channels_last)
        mean, std = self._mean_and_std(pixels.device)
        return pixels.mul_(self.pixel_scale / 255).sub_(mean).div_(std)

    def _mean_and_std(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """The mean and the standard deviation, (1, 3, 1, size), channels last.

        Each is repeated along a row of pixels, because arithmetic on only three numbers
        at a time is slow.
        """
        values = channels((*self.mean, *self.std), device).view(2, 3, 1, 1)
        rows = values.expand(2, 3, 1, self.size)
        mean, std = rows.contiguous(memory_format=torch.channels_last).split(1)
        return mean, std

    def _square(self, images: Tensor) -> Tensor:
        """Convert to three channels, resize and crop, to (n, 3, size, size) uint8."""
        # Imported here because the import loads torch's compiler, which takes two
        # seconds.
        from torchvision.transforms.v2 import functional

        is_images = images.dtype == torch.uint8 and images.ndim == 4
        if not is_images or images.shape[1] not in (1, 3):
            raise ValueError(
                "images must be uint8 of shape (n, 1 or 3, height, width), got "
                f"{images.dtype} of shape {tuple(images.shape)}"
            )
        colour = images.expand(-1, 3, -1, -1)
        if self.channels == "bgr":
            colour = colour.flip(1)
        # Put channels last, which makes resizing twice as fast and the later conversion
        # to float five times as fast.
        colour = colour.contiguous(memory_format=torch.channels_last)
        # Deviation: we enlarge images smaller than a network's input with the same
        # interpolation that shrinks larger images; the paper does not say how it
        # resized them.
        if min(colour.shape[-2:]) != self.resize:
            mode = functional.InterpolationMode(self.interpolation)
            colour = functional.resize(
                colour, [self.resize], interpolation=mode, antialias=True
            )
        square: Tensor = functional.center_crop(colour, [self.size, self.size])
        return square


def described_preprocess(spec: Backbone) -> Preprocess:
    """Return the preprocessing that the parameters in `spec` describe."""
    assert spec.input_size is not None
    assert spec.mean is not None
    assert spec.std is not None
    return Preprocess(
        size=spec.input_size,
        resize=spec.resize or spec.input_size,
        interpolation=spec.interpolation,
        mean=tuple(spec.mean),
        std=tuple(spec.std),
        channels=spec.channels,
        pixel_scale=spec.pixel_scale,
    )


def timm_preprocess(network: nn.Module) -> Preprocess:
    """Return the evaluation transform of a timm network's weights.

    Raises:
        InputError: If the transform is not a square centre crop, or its interpolation
            is neither bilinear nor bicubic.
    """
    # Imported here because timm is an optional package.
    from timm.data.config import resolve_model_data_config

    config: dict[str, Any] = resolve_model_data_config(network)
    height, width = config["input_size"][1:]
    is_centred_square = config["crop_mode"] == "center" and height == width
    if not is_centred_square or config["interpolation"] not in ("bilinear", "bicubic"):
        raise InputError(
            f"its own transform is not supported ({config})",
            where="timm weights",
            remedy="Choose weights with a square, centred crop.",
        )
    return Preprocess(
        size=height,
        resize=math.floor(height / config["crop_pct"]),
        interpolation=config["interpolation"],
        mean=tuple(config["mean"]),
        std=tuple(config["std"]),
    )


def torchvision_preprocess(weights: WeightsEnum) -> Preprocess:
    """Return the evaluation transform of torchvision's pretrained weights."""
    transform = weights.transforms()
    (size,) = transform.crop_size
    (resize,) = transform.resize_size
    return Preprocess(
        size=size,
        resize=resize,
        interpolation=transform.interpolation.value,
        mean=tuple(transform.mean),
        std=tuple(transform.std),
    )
