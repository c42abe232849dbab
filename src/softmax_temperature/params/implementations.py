"""Tables of the losses and networks that params.yaml names, with their modules.

A cell's code includes only the classes that the cell names, so a new entry here reruns
no existing cell.
"""

from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator

from softmax_temperature.runner.errors import nearest
from softmax_temperature.runner.implementations import REFERENCE

LOSSES = {
    "brier": "softmax_temperature.losses.brier:BrierLoss",
    "cross_entropy": "softmax_temperature.losses.cross_entropy:CrossEntropyLoss",
    "focal": "softmax_temperature.losses.focal:FocalLoss",
    "label_smoothing": "softmax_temperature.losses.label_smoothing:LabelSmoothingLoss",
    "mmce": "softmax_temperature.losses.mmce_loss:MMCELoss",
    "sample_dependent_focal": (
        "softmax_temperature.losses.sample_dependent_focal:SampleDependentFocalLoss"
    ),
    "scheduled_focal": "softmax_temperature.losses.scheduled_focal:ScheduledFocalLoss",
    "tempered_cross_entropy": (
        "softmax_temperature.losses.tempered_cross_entropy:TemperedCrossEntropyLoss"
    ),
}

NETWORKS = {
    "bottleneck_resnet": (
        "softmax_temperature.networks.bottleneck_resnet:BottleneckResNet"
    ),
    "cifar_resnet": "softmax_temperature.networks.cifar_resnet:CifarResNet",
    "convnet": "softmax_temperature.networks.small:ConvNet",
    "densenet": "softmax_temperature.networks.densenet:DenseNet",
    "gru": "softmax_temperature.networks.gru:GRU",
    "mlp": "softmax_temperature.networks.small:MLP",
    "preactivation_resnet": (
        "softmax_temperature.networks.preactivation_resnet:PreactivationResNet"
    ),
    "text_cnn": "softmax_temperature.networks.text_cnn:TextCNN",
    "tree_lstm": "softmax_temperature.networks.tree_lstm:TreeLSTM",
    "vgg": "softmax_temperature.networks.vgg:SmallVGG",
    "wide_resnet": "softmax_temperature.networks.wide_resnet:WideResNet",
}
REGISTRIES = {
    "softmax_temperature.losses.registry": LOSSES,
    "softmax_temperature.networks.registry": NETWORKS,
}
"""The tables, keyed by the module that looks classes up in each of them."""


def _named_in(table: Mapping[str, str], kind: str) -> AfterValidator:
    def check(name: str) -> str:
        if name not in table and not REFERENCE.fullmatch(name):
            raise ValueError(
                f"unknown {kind} {name!r}. {nearest(name, table)} Write a class of "
                "your own as package.module:Class."
            )
        return name

    return AfterValidator(check)


LossName = Annotated[str, _named_in(LOSSES, "loss")]
NetworkName = Annotated[str, _named_in(NETWORKS, "architecture")]
