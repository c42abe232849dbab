"""The U-Net, which classifies every pixel of an image."""

import torch
from torch import Tensor, nn

from softmax_temperature.networks.layers import Classifier

_LEVELS = 4

# Deviation: our U-Net is the cited network with 34 instead of 64 channels at full size,
# which gives 8.8 million parameters. Our U-Net has zero padding, so that the logits
# have the size of the images, and batch normalisation after each 3×3 convolution. The
# cooling paper says only that its U-Net is small, has about 9 million parameters and
# takes 256×256 images.


class UNet(Classifier):
    """Computes logits for every pixel.

    Four max-poolings halve the height and width of the feature maps, and four
    up-convolutions double them again. The output of each up-convolution is concatenated
    with the encoder's feature maps of the same size, taken before they were max-pooled.

    Args:
        num_classes: The number of logits per pixel.
        width: Channels at full size, which double with each halving.
    """

    def __init__(self, num_classes: int = 150, width: int = 34) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(_LEVELS + 1)]
        self.stem = _two_convolutions(3, width)
        self.pool = nn.MaxPool2d(2)
        self.encoders = nn.ModuleList()
        self.enlargers = nn.ModuleList()
        self.decoders = nn.ModuleList()
        for level in range(_LEVELS):
            self.encoders.append(_two_convolutions(widths[level], widths[level + 1]))
        for level in reversed(range(_LEVELS)):
            larger = nn.ConvTranspose2d(widths[level + 1], widths[level], 2, 2)
            self.enlargers.append(larger)
        for level in reversed(range(_LEVELS)):
            self.decoders.append(_two_convolutions(2 * widths[level], widths[level]))
        self.classifier = nn.Conv2d(width, num_classes, 1)

    def features(self, inputs: Tensor) -> Tensor:
        """The last layer's input, (n, width, image height, image width).

        Args:
            inputs: Images of shape (n, 3, height, width); height and width must be
                multiples of 16.
        """
        maps: Tensor = self.stem(inputs)
        before_halving: list[Tensor] = []
        for encode in self.encoders:
            before_halving.append(maps)
            maps = encode(self.pool(maps))
        for enlarge, decode in zip(self.enlargers, self.decoders, strict=True):
            maps = decode(torch.cat((before_halving.pop(), enlarge(maps)), dim=1))
        return maps


def _two_convolutions(inputs: int, outputs: int) -> nn.Sequential:
    layers = nn.Sequential()
    for channels in (inputs, outputs):
        layers.append(nn.Conv2d(channels, outputs, 3, padding=1, bias=False))
        layers.append(nn.BatchNorm2d(outputs))
        layers.append(nn.ReLU())
    return layers
