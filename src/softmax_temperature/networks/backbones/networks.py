"""Networks by name, and the tensor of each that is the embedding."""

from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torch import Tensor, nn

from softmax_temperature.runner.errors import InputError, nearest

if TYPE_CHECKING:
    from softmax_temperature.params.backbone import Backbone


class EmbeddingNetwork(NamedTuple):
    """A network that returns embeddings.

    Attributes:
        network: images (n, 3, size, size) to embeddings (n, embedding).
        unused: prefixes of parameter names that weights for the whole architecture have besides those of `network`.
    """

    network: nn.Module
    unused: tuple[str, ...]


def build_classifier(spec: Backbone, *, classes: int) -> nn.Module:
    """The whole network with random weights, for training it on `classes` classes; returns logits (n, classes).

    Raises:
        InputError: the library has no such network, or it does not take the arguments.
    """
    return _whole_network(spec, num_classes=classes)


def build_embedding_network(spec: Backbone, *, timm_file: Path | None = None) -> EmbeddingNetwork:
    """The network up to its embedding, with random weights.

    Args:
        spec: what to build.
        timm_file: pretrained weights of a timm network, which timm then loads; they may need its own conversion.

    Raises:
        InputError: the library has no such network, it does not take the arguments, or has no such tensor.
    """
    if spec.library == "facenet":
        return _facenet(spec)
    pretrained = {"pretrained": True, "pretrained_cfg_overlay": {"file": str(timm_file)}} if timm_file else {}
    whole = _whole_network(spec, **pretrained)
    # Deviation: the paper gives lengths of embeddings, not tensors. AlexNet's 256 can only be its pooled convolutional
    # features, CLIP-RN50's 1,024 the projected output of its attention pooling, CLIP ViT-B/32's 768 what enters its
    # projection, FaceNet's 1,792 the pooled map before its last linear layer.
    if spec.tensor == "output":
        return EmbeddingNetwork(whole, ())
    if spec.tensor == "mean_features":
        return _mean_features(spec, whole)
    return _timm_head_input(whole) if spec.library == "timm" else _head_input(spec, whole)


class MeanFeatures(nn.Module):
    """The mean over all positions of a convolutional network's last map.

    Attributes:
        features: images to maps (n, embedding, height, width).
    """

    def __init__(self, features: nn.Module) -> None:
        super().__init__()
        self.features = features

    def forward(self, images: Tensor) -> Tensor:
        """Embeddings (n, embedding)."""
        embeddings: Tensor = self.features(images).mean((2, 3))
        return embeddings


def _mean_features(spec: Backbone, whole: nn.Module) -> EmbeddingNetwork:
    features = getattr(whole, "features", None)
    if not isinstance(features, nn.Module):
        what = "has no part `features`, so tensor cannot be mean_features"
        raise InputError(what, where=_where(spec), remedy="Choose head_input or output.")
    unused = tuple(f"{name}." for name, _ in whole.named_children() if name != "features")
    return EmbeddingNetwork(MeanFeatures(features), unused)


def _timm_head_input(whole: nn.Module) -> EmbeddingNetwork:
    # What every timm network calls pooled, pre-logits features; `forward_features` would be unpooled.
    before = set(whole.state_dict())
    whole.reset_classifier(0)  # type: ignore[operator]
    return EmbeddingNetwork(whole, tuple(before - set(whole.state_dict())))


def _head_input(spec: Backbone, whole: nn.Module) -> EmbeddingNetwork:
    linear = [name for name, module in whole.named_modules() if isinstance(module, nn.Linear)]
    if not linear:
        what = "has no linear layer, so tensor cannot be head_input"
        raise InputError(what, where=_where(spec), remedy="Choose mean_features or output.")
    parent, _, child = linear[-1].rpartition(".")
    setattr(whole.get_submodule(parent), child, nn.Identity())
    return EmbeddingNetwork(whole, (f"{linear[-1]}.",))


def _facenet(spec: Backbone) -> EmbeddingNetwork:
    from softmax_temperature.networks.inception_resnet_v1 import HEAD, InceptionResnetV1

    _require_known(spec, {"inception_resnet_v1"})
    return EmbeddingNetwork(InceptionResnetV1(), tuple(f"{name}." for name in HEAD))


def _whole_network(spec: Backbone, **arguments: Any) -> nn.Module:
    build = {"timm": _timm, "torchvision": _torchvision, "project": _project}.get(spec.library)
    if build is None:
        raise InputError("cannot be trained here", where=_where(spec), remedy="Choose a network of another library.")
    try:
        return build(spec, spec.arguments | arguments)
    except (TypeError, ValueError) as error:
        what = f"does not take these arguments: {spec.arguments | arguments} ({error})"
        raise InputError(what, where=_where(spec), remedy="Correct `arguments`.") from error


def _timm(spec: Backbone, arguments: dict[str, Any]) -> nn.Module:
    import timm

    if not timm.is_model(spec.architecture):
        _require_known(spec, timm.list_models())
    tag = f".{spec.tag}" if spec.tag else ""
    network: nn.Module = timm.create_model(spec.architecture + tag, **arguments)
    return network


def _torchvision(spec: Backbone, arguments: dict[str, Any]) -> nn.Module:
    from torchvision import models

    _require_known(spec, models.list_models(module=models))
    network: nn.Module = models.get_model(spec.architecture, weights=None, **arguments)
    return network


def _project(spec: Backbone, arguments: dict[str, Any]) -> nn.Module:
    from softmax_temperature.networks.cifar_resnet import CifarResNet
    from softmax_temperature.networks.mobilenet_v1 import mobilenet_v1

    builders: dict[str, Callable[..., nn.Module]] = {"cifar_resnet": CifarResNet, "mobilenet_v1": mobilenet_v1}
    _require_known(spec, builders)
    return builders[spec.architecture](**arguments)


def _require_known(spec: Backbone, names: Collection[str]) -> None:
    if spec.architecture not in names:
        raise InputError("no such network", where=_where(spec), remedy=nearest(spec.architecture, names))


def _where(spec: Backbone) -> str:
    return f"backbone {spec.architecture!r} of {spec.library}"
