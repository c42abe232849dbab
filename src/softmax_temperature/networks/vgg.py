"""The small VGG-style network of the cooling paper (section 4.2)."""

from collections.abc import Sequence

from torch import nn

from softmax_temperature.networks.layers import Classifier, check_choice, rectifier, redraw

# Deviation: the cooling paper gives the widths and about 620,000 parameters for 32×32 images and 10 classes, but not
# the padding, the pooling or whether there is normalisation. With zero padding, max-pooling after each pair and no
# normalisation, the candidates have 550,570 (ReLU, flatten), 304,810 (ReLU, average), 1,099,690 (CReLU, flatten) and
# 608,170 parameters (CReLU, average). None is 620,000; "flatten" is the default as VGG's own, and the nearest for ReLU.
# Deviation: the paper trains in TensorFlow and does not say how weights start; "glorot" is what Keras draws if nothing
# is said. PyTorch's own start is smaller: after an epoch with a learning rate of 0.01 this network still guesses (loss
# 2.303), a temperature fitted to it is noise (0.07 to 0.22 in two trainings), and Cooling then acts as a larger step.


class SmallVGG(Classifier):
    """3×3 convolutions with max-pooling after each pair, a dense layer and the classifier.

    Every hidden layer is followed by the activation, "relu" or "crelu"; after CReLU, the next layer reads twice the
    channels. With `batch_norm`, each convolution has no bias and is followed by batch normalisation. `weights` start as
    Keras draws them ("glorot": uniform within ±sqrt(6 / (fan-in + fan-out)), biases 0) or as PyTorch does ("pytorch").

    The dense layer reads every value of the last maps (`pooling` "flatten") or each map's mean ("average"). Images have
    `image_size` pixels in height and width, which each max-pooling halves, rounding down.
    """

    def __init__(
        self,
        num_classes: int = 10,
        activation: str = "relu",
        pooling: str = "flatten",
        batch_norm: bool = False,
        widths: Sequence[int] = (32, 32, 64, 64, 128, 128),
        dense: int = 128,
        weights: str = "glorot",
        image_size: int = 32,
    ) -> None:
        super().__init__()
        build, copies = rectifier(activation)
        check_choice("pooling", pooling, ("flatten", "average"))
        check_choice("weights", weights, ("glorot", "pytorch"))
        self.convolutions = nn.Sequential()
        inputs = 3
        for number, width in enumerate(widths, start=1):
            self.convolutions.append(nn.Conv2d(inputs, width, 3, padding=1, bias=not batch_norm))
            if batch_norm:
                self.convolutions.append(nn.BatchNorm2d(width))
            # An activation that never falls commutes with the maximum, bit by bit and in its gradient, and behind it
            # has a quarter of the values. CReLU falls: the maximum of -x is not minus the maximum of x.
            pool = [nn.MaxPool2d(2)] if number % 2 == 0 else []
            self.convolutions.extend([*pool, build()] if activation == "relu" else [build(), *pool])
            inputs = copies * width
        self.pool = nn.Identity() if pooling == "flatten" else nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        side = image_size >> (len(widths) // 2) if pooling == "flatten" else 1
        self.dense = nn.Linear(inputs * side**2, dense)
        self.activation = build()
        self.classifier = nn.Linear(copies * dense, num_classes)
        if weights == "glorot":
            redraw(self, nn.init.xavier_uniform_)
