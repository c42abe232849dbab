"""The small U-Net (Ronneberger et al. 2015) of the cooling paper's segmentation experiment (section 4.4)."""

import torch
from torch import Tensor, nn

from softmax_temperature.networks.layers import Classifier

HALVINGS = 4

# Deviation: the cooling paper says only that its U-Net is small, has about 9 million parameters and sees 256×256
# images. Here it is the cited network with 34 instead of 64 channels at full size, which makes 8.8 million; with zero
# padding, so that the logits have the size of the images, and with batch normalisation after each 3×3 convolution.


class UNet(Classifier):
    """Logits for every pixel: four halvings, four up-convolutions, each joined with the halvings' maps of its size."""

    def __init__(self, num_classes: int = 150, width: int = 34) -> None:
        super().__init__()
        levels = [(width * 2**level, width * 2 ** (level + 1)) for level in range(HALVINGS)]
        self.stem = _two_convolutions(3, width)
        self.pool = nn.MaxPool2d(2)
        self.encoders = nn.ModuleList(_two_convolutions(above, below) for above, below in levels)
        self.enlargers = nn.ModuleList(nn.ConvTranspose2d(below, above, 2, 2) for above, below in reversed(levels))
        self.decoders = nn.ModuleList(_two_convolutions(2 * above, above) for above, _ in reversed(levels))
        self.classifier = nn.Conv2d(width, num_classes, 1)

    def features(self, inputs: Tensor) -> Tensor:
        """Maps (n, width, h, w) of images (n, 3, h, w), both multiples of 16; the logits are (n, num_classes, h, w)."""
        passed: list[Tensor] = [self.stem(inputs)]
        for encode in self.encoders:
            passed.append(encode(self.pool(passed[-1])))
        maps = passed.pop()
        for enlarge, decode in zip(self.enlargers, self.decoders, strict=True):
            maps = decode(torch.cat((passed.pop(), enlarge(maps)), dim=1))
        return maps


def _two_convolutions(inputs: int, outputs: int) -> nn.Sequential:
    layers = nn.Sequential()
    for channels in (inputs, outputs):
        convolution = nn.Conv2d(channels, outputs, 3, padding=1, bias=False)
        layers.extend([convolution, nn.BatchNorm2d(outputs), nn.ReLU()])
    return layers
