"""The small VGG-like network of the cooling paper."""

from collections.abc import Sequence

from torch import nn

from softmax_temperature.networks.layers import (
    Classifier,
    check_choice,
    rectifier,
    redraw,
)

# Deviation: we use zero padding, max-pooling after each pair of convolutions and, by
# default, no normalisation. The cooling paper gives the widths and about 620,000
# parameters for 32×32 images and 10 classes, but not the padding, the pooling or
# whether there is normalisation. Our candidates have 550,570 (ReLU, flatten), 304,810
# (ReLU, average), 1,099,690 (CReLU, flatten) and 608,170 parameters (CReLU, average).
# None has 620,000; "flatten" is the default because VGG uses it, and because its count
# is nearer to 620,000 with ReLU.
# Deviation: we use Keras's default initial weights, uniform within ±sqrt(6 / (fan-in +
# fan-out)) with biases 0, because the paper trains in TensorFlow and does not state its
# initial weights. PyTorch's default weights are smaller. With PyTorch's weights, the
# network is still at chance level after an epoch with a learning rate of 0.01 (loss
# 2.303), the fitted temperature is noise (0.07 to 0.22 in two runs), and Cooling acts
# like a larger learning rate.


class SmallVGG(Classifier):
    """3×3 convolutions with max-pooling after each pair, a dense layer, a classifier.

    Every hidden layer is followed by the activation. After CReLU, the next layer has
    twice as many input channels.

    Args:
        num_classes: The number of logits.
        activation: "relu" or "crelu".
        pooling: "flatten", where the dense layer reads every value of the last feature
            maps, or "average", where it reads only the mean of each feature map.
        batch_norm: Whether each convolution has batch normalisation instead of a bias.
        widths: Output channels of each convolution.
        dense: Units of the dense layer.
        image_size: Height and width of images in pixels, which each max-pooling
            halves, rounding down.
    """

    def __init__(
        self,
        num_classes: int = 10,
        activation: str = "relu",
        pooling: str = "flatten",
        batch_norm: bool = False,
        widths: Sequence[int] = (32, 32, 64, 64, 128, 128),
        dense: int = 128,
        image_size: int = 32,
    ) -> None:
        super().__init__()
        make_activation, copies = rectifier(activation)
        check_choice("pooling", pooling, ("flatten", "average"))
        self.convolutions = nn.Sequential()
        inputs = 3
        for number, width in enumerate(widths, start=1):
            convolution = nn.Conv2d(inputs, width, 3, padding=1, bias=not batch_norm)
            self.convolutions.append(convolution)
            if batch_norm:
                self.convolutions.append(nn.BatchNorm2d(width))
            is_pooled = number % 2 == 0
            self.convolutions.extend(_activated(activation, is_pooled=is_pooled))
            inputs = copies * width
        self.pool: nn.Module
        if pooling == "flatten":
            self.pool = nn.Identity()
            side = image_size // 2 ** (len(widths) // 2)
        else:
            self.pool = nn.AdaptiveAvgPool2d(1)
            side = 1
        self.flatten = nn.Flatten()
        self.dense = nn.Linear(inputs * side**2, dense)
        self.activation = make_activation()
        self.classifier = nn.Linear(copies * dense, num_classes)
        redraw(self, nn.init.xavier_uniform_)


def _activated(activation: str, *, is_pooled: bool) -> list[nn.Module]:
    """List the activation after a convolution, and the max-pooling if `is_pooled`."""
    make_activation, _ = rectifier(activation)
    if not is_pooled:
        return [make_activation()]
    pool = nn.MaxPool2d(2)
    # Pool before ReLU: a monotonic activation commutes with the maximum, so outputs and
    # gradients are the same bit for bit. After pooling, the activation processes only a
    # quarter of the values. CReLU must come before pooling, because the maximum of -x
    # is not minus the maximum of x.
    if activation == "relu":
        return [pool, make_activation()]
    return [make_activation(), pool]
