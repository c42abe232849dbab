"""The small U-Net (Ronneberger et al. 2015) of the cooling paper's segmentation experiment (section 4.4)."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.fx import Proxy

from softmax_temperature.metrics.checks import check_count

HALVINGS = 4
FACTOR = 2**HALVINGS

# Deviation: the cooling paper says only that its U-Net is small, has about 9 million parameters and sees 256×256
# images. Here it is the cited network with 34 instead of 64 channels at full size, which makes 8.8 million; with zero
# padding, so that the logits have the size of the images, and with batch normalisation after each 3×3 convolution.


class UNet(nn.Module):
    """Logits for every pixel: four halvings, four up-convolutions, each joined with the halvings' maps of its size.

    Every level has two 3×3 convolutions with batch normalisation and ReLU; its channels double at each halving. Weights
    start as PyTorch's: uniform within ±1 / sqrt(inputs of a unit), batch normalisation with scale 1 and shift 0.

    Args:
        num_classes: Outputs of `classifier`; ADE20K has 150.
        width: Channels at full size.

    Raises:
        ValueError: If an argument is below 1.
    """

    def __init__(self, num_classes: int = 150, width: int = 34) -> None:
        super().__init__()
        check_count(num_classes, "num_classes", least=1)
        check_count(width, "width", least=1)
        widths = [width * 2**level for level in range(HALVINGS + 1)]
        levels = list(itertools.pairwise(widths))
        self.stem = _two_convolutions(3, width)
        self.pool = nn.MaxPool2d(2)
        self.encoders = nn.ModuleList(_two_convolutions(above, below) for above, below in levels)
        self.enlargers = nn.ModuleList(nn.ConvTranspose2d(below, above, 2, 2) for above, below in reversed(levels))
        self.decoders = nn.ModuleList(_two_convolutions(2 * above, above) for above, _ in reversed(levels))
        self.classifier = nn.Conv2d(width, num_classes, 1)

    def features(self, images: Tensor) -> Tensor:
        """What `classifier` reads: maps (n, width, h, w) of images (n, 3, h, w).

        Raises:
            ValueError: If h or w is not a multiple of 16.
        """
        _check_sides(images)
        maps = self.stem(images)
        passed = []
        for encode in self.encoders:
            passed.append(maps)
            maps = encode(self.pool(maps))
        for enlarge, decode, beside in zip(self.enlargers, self.decoders, reversed(passed), strict=True):
            maps = decode(torch.cat((beside, enlarge(maps)), dim=1))
        features: Tensor = maps
        return features

    def forward(self, images: Tensor) -> Tensor:
        """Logits (n, classes, h, w) of images (n, 3, h, w); h and w are multiples of 16, as for `features`."""
        logits: Tensor = self.classifier(self.features(images))
        return logits


def _two_convolutions(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(*_convolution(inputs, outputs), *_convolution(outputs, outputs))


def _convolution(inputs: int, outputs: int) -> tuple[nn.Module, ...]:
    return nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()


def _check_sides(images: Tensor) -> None:
    # A trace has no sizes to look at.
    if isinstance(images, Proxy):
        return
    height, width = images.shape[-2:]
    if height == 0 or width == 0 or height % FACTOR or width % FACTOR:
        raise ValueError(f"images must have a height and width that are multiples of {FACTOR}, got {height}×{width}")
