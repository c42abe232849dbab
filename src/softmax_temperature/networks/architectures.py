"""The networks that are trained from scratch, by the names that params.yaml uses."""

from collections.abc import Callable

from torch import nn

from softmax_temperature.networks.densenet import DenseNet
from softmax_temperature.networks.resnets import BottleneckResNet, CifarResNet, WideResNet
from softmax_temperature.networks.small_networks import MLP, ConvNet
from softmax_temperature.networks.texts import GRU, TextCNN
from softmax_temperature.networks.tree_lstm import TreeLSTM
from softmax_temperature.networks.vgg import SmallVGG

ARCHITECTURES: dict[str, Callable[..., nn.Module]] = {
    "bottleneck_resnet": BottleneckResNet,
    "cifar_resnet": CifarResNet,
    "convnet": ConvNet,
    "densenet": DenseNet,
    "gru": GRU,
    "mlp": MLP,
    "text_cnn": TextCNN,
    "tree_lstm": TreeLSTM,
    "vgg": SmallVGG,
    "wide_resnet": WideResNet,
}
"""Constructors of networks that are trained from scratch; each takes `num_classes` and arguments of its own."""
