"""The networks of frozen backbones, whole or up to their embeddings."""

from collections import OrderedDict
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from torch import nn

from softmax_temperature.networks.cifar_resnet import CifarResNet
from softmax_temperature.networks.inception_resnet import HEAD, InceptionResnetV1
from softmax_temperature.params.network import Backbone
from softmax_temperature.runner.errors import InputError, nearest

Build = Callable[..., nn.Module]


def mobilenet_v1(
    width: float = 1.0, num_classes: int = 1000, **arguments: Any
) -> nn.Module:
    """Build MobileNetV1 (Howard et al. 2017) with `width` times the channels.

    Other arguments are passed to timm's generator. We call this generator directly,
    because timm has named models only for the widths 1 and 1.25.
    """
    from timm.models.efficientnet import _gen_mobilenet_v1

    build: Build = _gen_mobilenet_v1
    return build("mobilenetv1_100", width, num_classes=num_classes, **arguments)


def build_classifier(spec: Backbone, **more: Any) -> nn.Module:
    """Build the whole network of the backbone `spec`.

    The weights are random, unless `more` tells the library to load pretrained weights.

    Args:
        spec: The backbone.
        **more: Further arguments of the constructor, such as num_classes.

    Raises:
        InputError: If the library has no such network, or the network refuses the
            arguments.
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
    """Build the network of `spec` with its library and `arguments`."""
    if spec.library == "timm":
        # Imported here because timm is an optional package.
        import timm

        require_known(spec, spec.architecture, timm.list_models())
        name = f"{spec.architecture}.{spec.tag}" if spec.tag else spec.architecture
        return timm.create_model(name, **arguments)
    if spec.library == "torchvision":
        # Imported here because the import loads torch's compiler, which takes two
        # seconds.
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


# Deviation: we infer from the length of an embedding which tensor the paper uses,
# because it does not name the tensors. The 256 features of AlexNet can only be its
# pooled convolutional features. The 1,024 features of CLIP-RN50 must be the projected
# output of its attention pooling, the 768 of CLIP ViT-B/32 the input of its projection,
# and the 1,792 of FaceNet the pooled feature maps before its last linear layer.


def build_embedding_network(
    spec: Backbone, *, timm_file: Path | None = None
) -> tuple[nn.Module, tuple[str, ...]]:
    """Build the network that maps images to embeddings.

    Args:
        spec: The backbone.
        timm_file: Weights file for timm, or None for random weights.

    Returns:
        The network, and the prefixes of the names of weights that only the whole
        network has.

    Raises:
        InputError: If the network cannot be built, or has no tensor of the kind that
            `spec.tensor` names.
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
        # Remove the last layer with timm's own method, which keeps the pooling;
        # `forward_features` would leave the pooling out.
        whole.reset_classifier(0)  # type: ignore[operator]
        return whole, tuple(names_before - set(whole.state_dict()))
    return _without_last_linear(spec, whole)


def _mean_features(
    spec: Backbone, whole: nn.Module
) -> tuple[nn.Module, tuple[str, ...]]:
    """Build a network that averages the feature maps that `whole.features` returns.

    Also return the prefixes of the names of the other parts' weights.
    """
    features = getattr(whole, "features", None)
    if not isinstance(features, nn.Module):
        raise backbone_error(
            spec,
            "has no part `features`, so `tensor` cannot be mean_features",
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
    """Remove the last linear layer of `whole`; also return its weights' prefix."""
    linear_layers = [
        name for name, module in whole.named_modules() if isinstance(module, nn.Linear)
    ]
    if not linear_layers:
        raise backbone_error(
            spec,
            "has no linear layer, so `tensor` cannot be head_input",
            "Choose another tensor.",
        )
    last = linear_layers[-1]
    whole.set_submodule(last, nn.Identity())
    return whole, (f"{last}.",)


def require_known(
    spec: Backbone, name: str, known: Collection[str], what: str = "network"
) -> None:
    """Raise InputError unless the library has `name`; suggest a similar name."""
    if name not in known:
        raise backbone_error(spec, f"unknown {what}", nearest(name, known))


def backbone_error(spec: Backbone, what: str, remedy: str) -> InputError:
    """Make an InputError with `what` and `remedy` that names the backbone `spec`."""
    name = f"{spec.architecture}.{spec.tag}" if spec.tag else spec.architecture
    return InputError(what, where=f"backbone {name} of {spec.library}", remedy=remedy)
