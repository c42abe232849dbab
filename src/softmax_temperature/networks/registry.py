"""Networks by name: those that are trained from scratch, and the backbones with the
tensor that is the embedding.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from softmax_temperature.networks.convolutional import (
    HEAD,
    MLP,
    ConvNet,
    DenseNet,
    InceptionResnetV1,
    SmallVGG,
)
from softmax_temperature.networks.layers import drawn_from
from softmax_temperature.networks.resnets import (
    BottleneckResNet,
    CifarResNet,
    WideResNet,
)
from softmax_temperature.networks.texts import GRU, TextCNN, TreeLSTM
from softmax_temperature.params.network import Backbone, Network
from softmax_temperature.runner.errors import InputError, nearest

Build = Callable[..., nn.Module]
WEIGHTS = "weights.safetensors"
"""The file with the weights of a network that the pipeline trained."""

# Of networks that are trained from scratch; each takes `num_classes` and arguments of
# its own.
ARCHITECTURES: dict[str, Build] = {
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


def build_network(spec: Network, *, classes: int, seed: int) -> nn.Module:
    """A network with random weights that depend on the seed alone; InputError if it
    does not take the arguments.
    """
    arguments = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in spec.arguments.items()
    }
    with drawn_from(seed):
        try:
            return ARCHITECTURES[spec.architecture](**arguments, num_classes=classes)
        except (TypeError, ValueError) as error:
            what = f"does not take the arguments {spec.arguments} ({error})"
            raise InputError(
                what,
                where=f"network {spec.architecture!r}",
                remedy="Correct `arguments`.",
            ) from error


def check_network(spec: Network) -> nn.Module:
    """The network for two classes without its weights; refuses wrong arguments."""
    with torch.device("meta"):
        return build_network(spec, classes=2, seed=0)


def check_networks(networks: Mapping[str, Network], names: Iterable[str]) -> None:
    """Refuse those of some names that do not take their arguments: the parameters are
    wrong, not a cell.
    """
    for name in dict.fromkeys(names):
        check_network(networks[name])


def count_parameters(network: nn.Module) -> int:
    """The number of trainable parameters."""
    return sum(parameter.numel() for parameter in network.parameters())


def mobilenet_v1(
    width: float = 1.0, num_classes: int = 1000, **arguments: Any
) -> nn.Module:
    """MobileNetV1 (Howard et al. 2017) with `width` times the channels; other arguments
    go to timm's generator.
    """
    from timm.models.efficientnet import (
        _gen_mobilenet_v1,
    )  # timm itself names only widths 1 and 1.25.

    build: Build = _gen_mobilenet_v1
    return build("mobilenetv1_100", width, num_classes=num_classes, **arguments)


def _library(spec: Backbone) -> tuple[Collection[str], Build]:
    if spec.library == "timm":
        import timm  # Optional: other libraries have backbones too.

        tag = f".{spec.tag}" if spec.tag else ""
        return timm.list_models(), lambda name, **arguments: timm.create_model(
            name + tag, **arguments
        )
    if spec.library == "torchvision":
        from torchvision import models  # It imports torch's compiler: two seconds.

        return models.list_models(module=models), lambda name, **more: models.get_model(
            name, weights=None, **more
        )
    own: dict[str, Build] = {"inception_resnet_v1": InceptionResnetV1}
    if spec.library == "project":
        own = {"cifar_resnet": CifarResNet, "mobilenet_v1": mobilenet_v1}
    return own, lambda name, **arguments: own[name](**arguments)


def build_classifier(spec: Backbone, **more: Any) -> nn.Module:
    """The whole network with random weights and `more` arguments, such as num_classes;
    InputError if there is none.
    """
    arguments = spec.arguments | more
    names, build = _library(spec)
    require_known(spec, spec.architecture, names)
    try:
        return build(spec.architecture, **arguments)
    except (TypeError, ValueError) as error:
        what = f"does not take these arguments: {arguments} ({error})"
        raise backbone_error(spec, what, "Correct `arguments`.") from error


# Deviation: the paper gives lengths of embeddings, not tensors. AlexNet's 256 can only
# be its pooled convolutional features, CLIP-RN50's 1,024 the projected output of its
# attention pooling, CLIP ViT-B/32's 768 what enters its projection, FaceNet's 1,792 the
# pooled map before its last linear layer.


def build_embedding_network(
    spec: Backbone, *, timm_file: Path | None = None
) -> tuple[nn.Module, tuple[str, ...]]:
    """The network to embeddings, random or with weights of `timm_file`, and prefixes of
    weights that it lacks.
    """
    pretrained = (
        {"pretrained": True, "pretrained_cfg_overlay": {"file": str(timm_file)}}
        if timm_file
        else {}
    )
    whole = build_classifier(spec, **pretrained)
    if spec.library == "facenet":
        return whole, tuple(f"{name}." for name in HEAD)
    if spec.tensor == "output":
        return whole, ()
    if spec.tensor == "mean_features":
        if not isinstance(features := getattr(whole, "features", None), nn.Module):
            what = "has no part `features`, so tensor cannot be mean_features"
            raise backbone_error(spec, what, "Choose another tensor.")
        unused = tuple(
            f"{name}." for name, _ in whole.named_children() if name != "features"
        )
        pooled = {
            "features": features,
            "pool": nn.AdaptiveAvgPool2d(1),
            "flatten": nn.Flatten(),
        }
        return nn.Sequential(OrderedDict(pooled)), unused
    if spec.library == "timm":
        before = set(whole.state_dict())
        # Not `forward_features`, which would be unpooled.
        whole.reset_classifier(0)  # type: ignore[operator]
        return whole, tuple(before - set(whole.state_dict()))
    linear = [
        name for name, module in whole.named_modules() if isinstance(module, nn.Linear)
    ]
    if not linear:
        raise backbone_error(
            spec,
            "has no linear layer, so tensor cannot be head_input",
            "Choose another tensor.",
        )
    whole.set_submodule(linear[-1], nn.Identity())
    return whole, (f"{linear[-1]}.",)


def require_known(
    spec: Backbone, name: str, known: Collection[str], what: str = "network"
) -> None:
    """Refuse a name that the library does not have."""
    if name not in known:
        raise backbone_error(spec, f"no such {what}", nearest(name, known))


def backbone_error(spec: Backbone, what: str, remedy: str) -> InputError:
    """An error that names the backbone."""
    where = f"backbone {spec.architecture}{f'.{spec.tag}' if spec.tag else ''} of {spec.library}"
    return InputError(what, where=where, remedy=remedy)
