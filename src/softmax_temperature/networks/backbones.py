"""Frozen backbones: their weights, networks and preprocessing, and the record of what
they are.
"""

from __future__ import annotations

import hashlib
import math
import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import torch
import torch.hub
from huggingface_hub import hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError
from safetensors.torch import load_file
from torch import Tensor, nn

from softmax_temperature.networks.layers import channels, drawn_from
from softmax_temperature.networks.registry import (
    backbone_error,
    build_embedding_network,
    require_known,
)
from softmax_temperature.params.network import Backbone
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from torchvision.models import WeightsEnum

_HUB_FILE = "model.safetensors"


@dataclass(frozen=True)
class Preprocess:
    """From uint8 images to what a network expects (`params.network`), within two grey
    levels of the library's own.
    """

    size: int
    resize: int
    interpolation: Literal["bilinear", "bicubic"]
    mean: tuple[float, ...]
    std: tuple[float, ...]
    channels: Literal["rgb", "bgr"] = "rgb"
    pixel_scale: float = 1.0

    def __call__(
        self, images: Tensor | Sequence[Tensor], *, device: str | torch.device = "cpu"
    ) -> Tensor:
        """Images (n, 1 or 3, height, width) uint8, or n tensors, as (n, 3, size, size)
        float32, channels last.
        """
        batches = (
            [images]
            if isinstance(images, Tensor)
            else [image[None] for image in images]
        )
        squares = torch.cat([self._square(batch.to(device)) for batch in batches])
        pixels = squares.to(torch.float32, memory_format=torch.channels_last)
        # One value per channel, repeated along a row of pixels: arithmetic on three
        # numbers at a time is slow.
        both = (
            channels((*self.mean, *self.std), pixels.device)
            .view(2, 3, 1, 1)
            .expand(2, 3, 1, self.size)
        )
        mean, std = both.contiguous(memory_format=torch.channels_last).split(1)
        return pixels.mul_(self.pixel_scale / 255).sub_(mean).div_(std)

    def _square(self, images: Tensor) -> Tensor:
        """Repeat grey, order the channels, resize and crop; (n, 1 or 3, height, width)
        to (n, 3, size, size) uint8.
        """
        from torchvision.transforms.v2 import (
            functional,
        )  # It imports torch's compiler: two seconds.

        if (
            images.dtype != torch.uint8
            or images.ndim != 4
            or images.shape[1] not in (1, 3)
        ):
            raise ValueError(
                f"images: {images.dtype} of shape {tuple(images.shape)}, must be uint8, 1 or 3 channels"
            )
        colour = images.expand(-1, 3, -1, -1)
        # Channels last makes the resizing twice as fast, and the conversion to float
        # after it five times.
        colour = (colour.flip(1) if self.channels == "bgr" else colour).contiguous(
            memory_format=torch.channels_last
        )
        # Deviation: the paper does not say how images that are smaller than a network's
        # input were brought to its size. They are enlarged, by the same interpolation
        # that makes larger ones smaller.
        if min(colour.shape[-2:]) != self.resize:
            mode = functional.InterpolationMode(self.interpolation)
            colour = functional.resize(
                colour, [self.resize], interpolation=mode, antialias=True
            )
        square: Tensor = functional.center_crop(colour, [self.size, self.size])
        return square


def described_preprocess(spec: Backbone) -> Preprocess:
    """The preprocessing that the parameters of weights other than the hub's describe."""
    assert spec.input_size and spec.mean and spec.std  # noqa: PT018
    size, mean, std = spec.input_size, tuple(spec.mean), tuple(spec.std)
    resize = spec.resize or size
    return Preprocess(
        size, resize, spec.interpolation, mean, std, spec.channels, spec.pixel_scale
    )


def timm_preprocess(network: nn.Module) -> Preprocess:
    """The evaluation transform of a timm network's weights; InputError unless it is a
    square, centred crop.
    """
    from timm.data.config import (
        resolve_model_data_config,
    )  # Optional: other libraries have backbones too.

    config: dict[str, Any] = resolve_model_data_config(network)
    height, width = config["input_size"][1:]
    if (
        config["crop_mode"] != "center"
        or height != width
        or config["interpolation"] not in ("bilinear", "bicubic")
    ):
        what = f"its own transform is not supported ({config})"
        raise InputError(
            what,
            where="timm weights",
            remedy="Choose weights with a square, centred crop.",
        )
    resize = math.floor(height / config["crop_pct"])
    return Preprocess(
        height,
        resize,
        config["interpolation"],
        tuple(config["mean"]),
        tuple(config["std"]),
    )


def torchvision_preprocess(weights: WeightsEnum) -> Preprocess:
    """The evaluation transform that belongs to torchvision's pretrained weights."""
    transform = weights.transforms()
    (size,), (resize,) = transform.crop_size, transform.resize_size
    return Preprocess(
        size,
        resize,
        transform.interpolation.value,
        tuple(transform.mean),
        tuple(transform.std),
    )


# ---- weights


class LoadedBackbone(NamedTuple):
    """A frozen network from prepared images (n, 3, size, size) to embeddings (n,
    embedding), and JSON about it.
    """

    network: nn.Module
    preprocess: Preprocess
    provenance: dict[str, Any]


def load_backbone(
    spec: Backbone, *, root: Path, seed: int, pretrained: Path | None = None
) -> LoadedBackbone:
    """Load a backbone in evaluation mode, without a network connection;
    `locate_weights` fetches what it lacks.

    `root` is the folder of the user's files (data.root), `seed` that of weights
    "untrained", and `pretrained` the safetensors file of weights "pretrain". Raises
    InputError if the weights or the embedding are not as described.
    """
    path = (
        pretrained
        if spec.weights == "pretrain"
        else locate_weights(spec, root=root, download=False)
    )
    with drawn_from(seed):
        network, preprocess = _build(spec, path)
    network.eval().requires_grad_(False)
    _check_embedding(spec, network, preprocess)
    names = {
        "library",
        "architecture",
        "arguments",
        "weights",
        "tag",
        "file",
        "tensor",
        "embedding",
    }
    digest = _digest_of_weights(network) if path is None else digest_of_file(path)
    provenance = {
        **spec.model_dump(include=names),
        "weights_sha256": digest,
        "transform": asdict(preprocess),
    }
    return LoadedBackbone(network, preprocess, provenance)


def _build(spec: Backbone, path: Path | None) -> tuple[nn.Module, Preprocess]:
    hub = spec.weights == "hub"
    if hub and spec.library == "timm":
        network, _ = build_embedding_network(spec, timm_file=path)
        return network, timm_preprocess(network)
    network, unused = build_embedding_network(spec)
    if path is not None:
        _load_weights(network, path, unused)
    if not hub:
        return network, described_preprocess(spec)
    if hasattr(network, "transform_input"):
        # The weights of googlenet and inception_v3 expect images in the scale of their
        # first training.
        setattr(network, "transform_input", True)  # noqa: B010
    return network, torchvision_preprocess(_torchvision_weights(spec))


@torch.inference_mode()
def _check_embedding(
    spec: Backbone, network: nn.Module, preprocess: Preprocess
) -> None:
    try:
        shape = tuple(
            network(torch.zeros(1, 3, preprocess.size, preprocess.size)).shape
        )
    except (RuntimeError, AssertionError) as error:
        what = f"does not take images of {preprocess.size} pixels ({error})"
        raise backbone_error(spec, what, "Correct `input_size`.") from error
    if shape != (1, spec.embedding):
        what = f"{spec.tensor} of one image has the shape {shape}, but `embedding` says {spec.embedding}"
        raise backbone_error(
            spec, what, "Correct `embedding`, or choose another `tensor`."
        )


def locate_weights(spec: Backbone, *, root: Path, download: bool) -> Path | None:
    """The file of a backbone's weights, None for the pipeline's own; `download` lets
    the library fetch missing ones.
    """
    if spec.weights == "hub":
        return (
            _timm_file(spec, download)
            if spec.library == "timm"
            else _torchvision_file(spec, download)
        )
    if spec.weights != "file" or spec.file is None:
        return None
    path = root / spec.file
    if not path.is_file():
        what = f"no such file: the weights of {spec.architecture}"
        raise InputError(
            what,
            where=str(path),
            remedy="Put it there, or leave out the backbones that use it.",
        )
    return path


def _load_weights(network: nn.Module, path: Path, unused: tuple[str, ...]) -> None:
    own = network.state_dict()
    given = {
        name: value
        for name, value in _read_weights(path).items()
        if name in own or not name.startswith(unused)
    }
    try:
        network.load_state_dict(given)
    except RuntimeError as error:
        what = f"does not fit {type(network).__name__} ({textwrap.shorten(str(error), 400)})"
        remedy = "Give the architecture and arguments that it was made for."
        raise InputError(what, where=str(path), remedy=remedy) from error


def _read_weights(path: Path) -> dict[str, Tensor]:
    """Tensors by name, of a safetensors file or one that torch has saved; nothing else
    is unpickled.
    """
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        return dict(torch.load(path, map_location="cpu", weights_only=True))
    except (
        Exception
    ) as error:  # A damaged file can make either library stumble over anything.
        what = f"is not a whole file of weights ({type(error).__name__}: {textwrap.shorten(str(error), 400)})"
        remedy = "Fetch or copy it again; a file saved by torch ends in .pt or .pth and holds tensors by name."
        raise InputError(what, where=str(path), remedy=remedy) from error


def _digest_of_weights(network: nn.Module) -> str:
    digest = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.contiguous().numpy().tobytes())
    return digest.hexdigest()


def _timm_file(spec: Backbone, download: bool) -> Path:
    import timm  # Optional: other libraries have backbones too.

    require_known(spec, spec.architecture, timm.list_models())
    tags = [
        name.partition(".")[2]
        for name in timm.list_pretrained(f"{spec.architecture}.*")
    ]
    require_known(spec, str(spec.tag), tags, "weights")
    config = timm.get_pretrained_cfg(f"{spec.architecture}.{spec.tag}")
    repository = config.hf_hub_id if config else None
    if repository is None:
        raise backbone_error(
            spec, "not published as safetensors", "Choose another tag."
        )
    cached = try_to_load_from_cache(
        repository, _HUB_FILE
    )  # The library's own look at its cache makes a request.
    if isinstance(cached, str):
        return Path(cached)
    place = f"{_HUB_FILE} of {repository} in the cache of the Hugging Face hub"
    return _fetched(
        spec, place, download, lambda: hf_hub_download(repository, _HUB_FILE)
    )


def _torchvision_weights(spec: Backbone) -> WeightsEnum:
    from torchvision import models  # It imports torch's compiler: two seconds.

    require_known(spec, spec.architecture, models.list_models(module=models))
    weights = models.get_model_weights(spec.architecture)
    require_known(spec, str(spec.tag), weights.__members__, "weights")
    return weights[str(spec.tag)]


def _torchvision_file(spec: Backbone, download: bool) -> Path:
    url: str = _torchvision_weights(spec).url
    path = Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]
    if path.is_file():
        return path

    def fetch() -> Path:
        digest = re.search(r"-([0-9a-f]{8,})\.", path.name)
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(
            url, str(path), hash_prefix=digest[1] if digest else None
        )
        return path

    return _fetched(spec, str(path), download, fetch)


def _fetched(
    spec: Backbone, place: str, download: bool, fetch: Callable[[], str | Path]
) -> Path:
    why = ""
    try:
        if download:
            return Path(fetch())
    except (
        HfHubHTTPError,
        OSError,
        RuntimeError,
    ) as error:  # RuntimeError: the digest is another.
        why = f", and could not be fetched: {error}"
    what = f"pretrained weights are not on this machine ({place}{why})"
    remedy = "Set data.download to true, copy them there from another machine, or use `weights: file`."
    raise backbone_error(spec, what, remedy)
