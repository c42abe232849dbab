"""Networks by name: those that are trained from scratch, and frozen backbones."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from softmax_temperature.networks.bottleneck_resnet import BottleneckResNet
from softmax_temperature.networks.cifar_resnet import CifarResNet
from softmax_temperature.networks.densenet import DenseNet
from softmax_temperature.networks.gru import GRU
from softmax_temperature.networks.inception_resnet import HEAD, InceptionResnetV1
from softmax_temperature.networks.layers import drawn_from
from softmax_temperature.networks.small import MLP, ConvNet
from softmax_temperature.networks.text_cnn import TextCNN
from softmax_temperature.networks.tree_lstm import TreeLSTM
from softmax_temperature.networks.vgg import SmallVGG
from softmax_temperature.networks.wide_resnet import WideResNet
from softmax_temperature.params.network import Backbone, Network
from softmax_temperature.runner.errors import InputError, nearest

Build = Callable[..., nn.Module]
WEIGHTS = "weights.safetensors"
"""The file with the weights of a network that the pipeline trained."""

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
"""Networks that are trained from scratch; each takes `num_classes` and arguments."""

_DRAWING = ("normal_", "uniform_", "div_")


def build_network(spec: Network, *, classes: int, seed: int) -> nn.Module:
    """A network with random weights that depend on the seed alone.

    Args:
        spec: The network.
        classes: The number of classes.
        seed: The seed of its weights.

    Raises:
        InputError: If the network does not take the arguments.
    """
    build = ARCHITECTURES[spec.architecture]
    arguments = {
        key: tuple(value) if isinstance(value, list) else value
        for key, value in spec.arguments.items()
    }
    with drawn_from(seed):
        try:
            return build(**arguments, num_classes=classes)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"does not take the arguments {spec.arguments} ({error})",
                where=f"network {spec.architecture!r}",
                remedy="Correct `arguments`.",
            ) from error


def check_network(spec: Network) -> nn.Module:
    """The network for two classes on the device "meta", without weights.

    Raises:
        InputError: If the network does not take the arguments.
    """
    with torch.device("meta"), _NoDraws():
        return build_network(spec, classes=2, seed=0)


def check_networks(networks: Mapping[str, Network], names: Iterable[str]) -> None:
    """Raise InputError if a named network does not take its arguments.

    The parameters are wrong then, which no cell should find out.
    """
    for name in dict.fromkeys(names):
        check_network(networks[name])


class _NoDraws(TorchFunctionMode):
    """Leave weights undrawn.

    Drawing on the device "meta" imports torch's compiler, which takes two seconds.
    """

    def __torch_function__(
        self, func: Any, _: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func.__name__ in _DRAWING:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


def count_parameters(network: nn.Module) -> int:
    """The number of trainable parameters."""
    return sum(parameter.numel() for parameter in network.parameters())


def mobilenet_v1(
    width: float = 1.0, num_classes: int = 1000, **arguments: Any
) -> nn.Module:
    """MobileNetV1 (Howard et al. 2017) with `width` times the channels.

    Other arguments go to timm's generator, as timm itself names only widths 1 and 1.25.
    """
    from timm.models.efficientnet import _gen_mobilenet_v1

    build: Build = _gen_mobilenet_v1
    return build("mobilenetv1_100", width, num_classes=num_classes, **arguments)


def build_classifier(spec: Backbone, **more: Any) -> nn.Module:
    """A backbone's whole network with random weights.

    Args:
        spec: The backbone.
        **more: Further arguments of its constructor, such as num_classes.

    Raises:
        InputError: If the library has no such network, or it refuses the arguments.
    """
    arguments = spec.arguments | more
    try:
        return _create(spec, arguments)
    except (TypeError, ValueError) as error:
        raise backbone_error(
            spec,
            f"does not take these arguments: {arguments} ({error})",
            "Correct `arguments`.",
        ) from error


def _create(spec: Backbone, arguments: dict[str, Any]) -> nn.Module:
    """Build a network of the backbone's library."""
    if spec.library == "timm":
        # Optional: other libraries have backbones too.
        import timm

        require_known(spec, spec.architecture, timm.list_models())
        name = f"{spec.architecture}.{spec.tag}" if spec.tag else spec.architecture
        return timm.create_model(name, **arguments)
    if spec.library == "torchvision":
        # It imports torch's compiler: two seconds.
        from torchvision import models

        require_known(spec, spec.architecture, models.list_models(module=models))
        network: nn.Module = models.get_model(
            spec.architecture, weights=None, **arguments
        )
        return network
    if spec.library == "project":
        networks: dict[str, Build] = {
            "cifar_resnet": CifarResNet,
            "mobilenet_v1": mobilenet_v1,
        }
    else:
        networks = {"inception_resnet_v1": InceptionResnetV1}
    require_known(spec, spec.architecture, networks)
    return networks[spec.architecture](**arguments)


# Deviation: the paper gives lengths of embeddings, not tensors. AlexNet's 256 can only
# be its pooled convolutional features, CLIP-RN50's 1,024 the projected output of its
# attention pooling, CLIP ViT-B/32's 768 the input of its projection, FaceNet's 1,792
# the pooled map before its last linear layer.


def build_embedding_network(
    spec: Backbone, *, timm_file: Path | None = None
) -> tuple[nn.Module, tuple[str, ...]]:
    """A network from images to embeddings.

    Args:
        spec: The backbone.
        timm_file: Weights for timm to load; None draws random ones.

    Returns:
        The network, and the prefixes of the whole network's weights that it lacks.

    Raises:
        InputError: If the network has no such embedding.
    """
    pretrained: dict[str, Any] = {}
    if timm_file is not None:
        pretrained["pretrained"] = True
        pretrained["pretrained_cfg_overlay"] = {"file": str(timm_file)}
    whole = build_classifier(spec, **pretrained)
    if spec.library == "facenet":
        return whole, tuple(f"{name}." for name in HEAD)
    if spec.tensor == "output":
        return whole, ()
    if spec.tensor == "mean_features":
        return _mean_features(spec, whole)
    if spec.library == "timm":
        names_before = set(whole.state_dict())
        # Not `forward_features`, which would be unpooled.
        whole.reset_classifier(0)  # type: ignore[operator]
        return whole, tuple(names_before - set(whole.state_dict()))
    return _without_last_linear(spec, whole)


def _mean_features(
    spec: Backbone, whole: nn.Module
) -> tuple[nn.Module, tuple[str, ...]]:
    """The part `features` of a network, averaged over positions."""
    features = getattr(whole, "features", None)
    if not isinstance(features, nn.Module):
        raise backbone_error(
            spec,
            "has no part `features`, so tensor cannot be mean_features",
            "Choose another tensor.",
        )
    layers = OrderedDict(
        features=features, pool=nn.AdaptiveAvgPool2d(1), flatten=nn.Flatten()
    )
    unused = [name for name, _ in whole.named_children() if name != "features"]
    return nn.Sequential(layers), tuple(f"{name}." for name in unused)


def _without_last_linear(
    spec: Backbone, whole: nn.Module
) -> tuple[nn.Module, tuple[str, ...]]:
    """A network whose last linear layer is the identity."""
    linear_layers = [
        name for name, module in whole.named_modules() if isinstance(module, nn.Linear)
    ]
    if not linear_layers:
        raise backbone_error(
            spec,
            "has no linear layer, so tensor cannot be head_input",
            "Choose another tensor.",
        )
    last = linear_layers[-1]
    whole.set_submodule(last, nn.Identity())
    return whole, (f"{last}.",)


def require_known(
    spec: Backbone, name: str, known: Collection[str], what: str = "network"
) -> None:
    """Raise InputError with the nearest valid name unless the library has `name`."""
    if name not in known:
        raise backbone_error(spec, f"no such {what}", nearest(name, known))


def backbone_error(spec: Backbone, what: str, remedy: str) -> InputError:
    """An error that names the backbone."""
    name = f"{spec.architecture}.{spec.tag}" if spec.tag else spec.architecture
    return InputError(what, where=f"backbone {name} of {spec.library}", remedy=remedy)
