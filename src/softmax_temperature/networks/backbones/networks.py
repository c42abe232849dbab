"""Networks by name, and the tensor of each that is the embedding."""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from softmax_temperature.networks.inception_resnet_v1 import HEAD, InceptionResnetV1
from softmax_temperature.networks.resnets import CifarResNet
from softmax_temperature.params.network import Backbone
from softmax_temperature.runner.errors import InputError, nearest


def build_classifier(spec: Backbone, **more: Any) -> nn.Module:
    """The whole network with random weights and `more` arguments, such as num_classes; InputError if there is none."""
    arguments = spec.arguments | more
    try:
        if spec.library == "timm":
            import timm  # Optional: other libraries have backbones too.

            require_known(spec, spec.architecture, timm.list_models())
            return timm.create_model(spec.architecture + (f".{spec.tag}" if spec.tag else ""), **arguments)
        if spec.library == "torchvision":
            from torchvision import models  # It imports torch's compiler: two seconds.

            require_known(spec, spec.architecture, models.list_models(module=models))
            network: nn.Module = models.get_model(spec.architecture, weights=None, **arguments)
            return network
        own: dict[str, Callable[..., nn.Module]] = {"cifar_resnet": CifarResNet, "mobilenet_v1": mobilenet_v1}
        require_known(spec, spec.architecture, own)
        return own[spec.architecture](**arguments)
    except (TypeError, ValueError) as error:
        raise backbone_error(
            spec, f"does not take these arguments: {arguments} ({error})", "Correct `arguments`."
        ) from error


def build_embedding_network(spec: Backbone, *, timm_file: Path | None = None) -> tuple[nn.Module, tuple[str, ...]]:
    """The network from images (n, 3, size, size) to embeddings, and prefixes of weights that it lacks.

    Weights are random or, of timm, those of a file, which timm may convert. InputError if there is no such tensor.
    """
    if spec.library == "facenet":
        require_known(spec, spec.architecture, {"inception_resnet_v1"})
        return InceptionResnetV1(), tuple(f"{name}." for name in HEAD)
    pretrained = {"pretrained": True, "pretrained_cfg_overlay": {"file": str(timm_file)}} if timm_file else {}
    whole = build_classifier(spec, **pretrained)
    # Deviation: the paper gives lengths of embeddings, not tensors. AlexNet's 256 can only be its pooled convolutional
    # features, CLIP-RN50's 1,024 the projected output of its attention pooling, CLIP ViT-B/32's 768 what enters its
    # projection, FaceNet's 1,792 the pooled map before its last linear layer.
    if spec.tensor == "output":
        return whole, ()
    if spec.tensor == "mean_features":
        features = getattr(whole, "features", None)
        if not isinstance(features, nn.Module):
            raise backbone_error(
                spec, "has no part `features`, so tensor cannot be mean_features", "Choose another tensor."
            )
        unused = tuple(f"{name}." for name, _ in whole.named_children() if name != "features")
        return _MeanFeatures(features), unused
    if spec.library == "timm":
        # Not `forward_features`, which would be unpooled.
        before = set(whole.state_dict())
        whole.reset_classifier(0)  # type: ignore[operator]
        return whole, tuple(before - set(whole.state_dict()))
    linear = [name for name, module in whole.named_modules() if isinstance(module, nn.Linear)]
    if not linear:
        raise backbone_error(spec, "has no linear layer, so tensor cannot be head_input", "Choose another tensor.")
    whole.set_submodule(linear[-1], nn.Identity())
    return whole, (f"{linear[-1]}.",)


class _MeanFeatures(nn.Module):
    """The mean over all positions of a convolutional network's last map."""

    def __init__(self, features: nn.Module) -> None:
        super().__init__()
        self.features = features

    def forward(self, images: Tensor) -> Tensor:
        embeddings: Tensor = self.features(images).mean((2, 3))
        return embeddings


def mobilenet_v1(width: float = 1.0, num_classes: int = 1000, **arguments: Any) -> nn.Module:
    """MobileNetV1 (Howard et al. 2017) with `width` times the channels; other arguments go to timm's generator."""
    from timm.models.efficientnet import _gen_mobilenet_v1  # timm itself names only widths 1 and 1.25.

    build: Callable[..., nn.Module] = _gen_mobilenet_v1
    return build("mobilenetv1_100", width, num_classes=num_classes, **arguments)


def require_known(spec: Backbone, name: str, known: Collection[str], what: str = "network") -> None:
    """Refuse a name that the library does not have."""
    if name not in known:
        raise backbone_error(spec, f"no such {what}", nearest(name, known))


def backbone_error(spec: Backbone, what: str, remedy: str) -> InputError:
    """An error that names the backbone."""
    where = f"backbone {spec.architecture}{f'.{spec.tag}' if spec.tag else ''} of {spec.library}"
    return InputError(what, where=where, remedy=remedy)
