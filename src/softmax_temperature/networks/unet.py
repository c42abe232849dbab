"""The small U-Net (Ronneberger et al. 2015) of the cooling paper's segmentation experiment (section 4.4)."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.fx import Proxy

from softmax_temperature.networks.layers import Classifier, check_sizes

HALVINGS = 4
FACTOR = 2**HALVINGS

# Deviation: the cooling paper says only that its U-Net is small, has about 9 million parameters and sees 256×256
# images. Here it is the cited network with 34 instead of 64 channels at full size, which makes 8.8 million; with zero
# padding, so that the logits have the size of the images, and with batch normalisation after each 3×3 convolution.


class UNet(Classifier):
    """Logits for every pixel: four halvings, four up-convolutions, each joined with the halvings' maps of its size.

    Every level has two 3×3 convolutions with batch normalisation and ReLU; its channels double at each halving. Weights
    start as PyTorch's.
    """

    def __init__(self, num_classes: int = 150, width: int = 34) -> None:
        super().__init__()
        check_sizes(num_classes=num_classes, width=width)
        widths = [width * 2**level for level in range(HALVINGS + 1)]
        levels = list(itertools.pairwise(widths))
        self.stem = _two_convolutions(3, width)
        self.pool = nn.MaxPool2d(2)
        self.encoders = nn.ModuleList(_two_convolutions(above, below) for above, below in levels)
        self.enlargers = nn.ModuleList(nn.ConvTranspose2d(below, above, 2, 2) for above, below in reversed(levels))
        self.decoders = nn.ModuleList(_two_convolutions(2 * above, above) for above, _ in reversed(levels))
        self.classifier = nn.Conv2d(width, num_classes, 1)

    def features(self, inputs: Tensor) -> Tensor:
        """Maps (n, width, h, w) of images (n, 3, h, w); the logits are (n, num_classes, h, w).

        Raises:
            ValueError: If h or w is not a multiple of 16.
        """
        if not isinstance(inputs, Proxy):  # A trace has no sizes to look at.
            height, width = inputs.shape[-2:]
            if height == 0 or width == 0 or height % FACTOR or width % FACTOR:
                multiples = f"a height and width that are multiples of {FACTOR}"
                raise ValueError(f"images must have {multiples}, got {height}×{width}")
        maps = self.stem(inputs)
        passed = []
        for encode in self.encoders:
            passed.append(maps)
            maps = encode(self.pool(maps))
        for enlarge, decode, beside in zip(self.enlargers, self.decoders, reversed(passed), strict=True):
            maps = decode(torch.cat((beside, enlarge(maps)), dim=1))
        features: Tensor = maps
        return features


def _two_convolutions(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(*_convolution(inputs, outputs), *_convolution(outputs, outputs))


def _convolution(inputs: int, outputs: int) -> tuple[nn.Module, ...]:
    return nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
