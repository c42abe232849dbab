"""Where the weights of backbones lie: a local file, or the cache of the library's hub.

`locate_weights` is called before any work, and is the only thing here that may use the network.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError, safe_open

from softmax_temperature.data import downloads
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.errors import InputError, disk_faults, nearest

if TYPE_CHECKING:
    from torchvision.models import WeightsEnum

    from softmax_temperature.params.backbone import Backbone

_HUB_FILE = "model.safetensors"
_OTHER_DIGEST = "damaged (its sha256 is not the one in its name)"
_PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def locate_weights(spec: Backbone, *, root: Path, download: bool) -> Path | None:
    """The file that holds a backbone's weights; call it before any work, because only it may use the network.

    Args:
        spec: the backbone.
        root: the folder of the user's files (data.root).
        download: whether missing weights may be fetched from the library's hub into its cache.

    Returns:
        The file, or None for weights that the pipeline makes itself.

    Raises:
        InputError: it is not there and cannot be fetched; or it is a damaged file of the hub.
    """
    if spec.weights == "hub":
        return _timm_file(spec, download) if spec.library == "timm" else _torchvision_file(spec, download)
    if spec.weights != "file" or spec.file is None:
        return None
    path = root / spec.file
    if not path.is_file():
        what = f"no such file: the weights of {spec.architecture}"
        raise InputError(what, where=str(path), remedy="Put it there, or leave out the backbones that use it.")
    return whole_safetensors(path)


def whole_safetensors(path: Path) -> Path:
    """The path, after comparing the file's header with its length.

    Raises:
        InputError: it is a pickle, truncated, or otherwise not whole.
    """
    try:
        with path.open("rb") as file:
            start = file.read(4)
        if start.startswith(_PICKLES):
            raise InputError("is a pickle, which could run code", where=str(path), remedy=_CONVERT)
        with safe_open(path, framework="np"):
            return path
    except (SafetensorError, OSError) as error:
        remedy = "It is truncated or damaged; copy it again."
        raise InputError(f"not a whole safetensors file ({error})", where=str(path), remedy=remedy) from error


_CONVERT = (
    "Convert it once to safetensors: "
    "safetensors.torch.save_file(torch.load('weights.pt', weights_only=True), 'weights.safetensors')."
)


def torchvision_weights(spec: Backbone) -> WeightsEnum:
    """The description, in torchvision, of the weights that a spec names.

    Raises:
        InputError: there are none of that architecture or tag.
    """
    from torchvision import models

    known = models.list_models(module=models)
    if spec.architecture not in known:
        raise InputError("no such network", where=_where(spec), remedy=nearest(spec.architecture, known))
    weights = models.get_model_weights(spec.architecture)
    if spec.tag not in weights.__members__:
        raise InputError("no such weights", where=_where(spec), remedy=nearest(str(spec.tag), weights.__members__))
    return weights[spec.tag]


def _timm_file(spec: Backbone, download: bool) -> Path:
    """The cached file of the Hugging Face hub; asked for without a request, since even a cached one costs one."""
    from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache
    from huggingface_hub.errors import HfHubHTTPError

    repository = _timm_repository(spec)
    cached = try_to_load_from_cache(repository, _HUB_FILE)
    if isinstance(cached, str):
        return _whole_blob(Path(cached))
    if not download:
        raise _not_cached(spec, f"{_HUB_FILE} of {repository} in the cache of the Hugging Face hub")
    try:
        with disk_faults(Path(constants.HF_HUB_CACHE)):
            return _whole_blob(Path(hf_hub_download(repository, _HUB_FILE)))
    except (HfHubHTTPError, OSError) as error:
        raise _not_fetched(spec, f"{repository}/{_HUB_FILE}", error) from error


def _whole_blob(path: Path) -> Path:
    """The path, after comparing the file with its name in the hub's cache, which is its sha256."""
    blob = path.resolve()
    if re.fullmatch("[0-9a-f]{64}", blob.name) and digest_of_file(blob) != blob.name:
        raise InputError(_OTHER_DIGEST, where=str(blob), remedy="Delete the file.")
    return whole_safetensors(path)


def _timm_repository(spec: Backbone) -> str:
    import timm

    if not timm.is_model(spec.architecture):
        raise InputError("no such network", where=_where(spec), remedy=nearest(spec.architecture, timm.list_models()))
    tags = [name.partition(".")[2] for name in timm.list_pretrained(f"{spec.architecture}.*")]
    if spec.tag not in tags:
        raise InputError("no such weights", where=_where(spec), remedy=nearest(str(spec.tag), tags))
    config = timm.get_pretrained_cfg(f"{spec.architecture}.{spec.tag}")
    if config is None or config.hf_hub_id is None:
        raise InputError("not published as safetensors", where=_where(spec), remedy="Choose another tag.")
    return config.hf_hub_id


def _torchvision_file(spec: Backbone, download: bool) -> Path:
    import torch.hub

    url: str = torchvision_weights(spec).url
    path = Path(torch.hub.get_dir()) / "checkpoints" / url.rpartition("/")[2]
    prefix = re.search(r"-([0-9a-f]{8,})\.", path.name)
    if prefix is None:
        what = f"pretrained weights are published without a digest ({path.name})"
        raise InputError(what, where=_where(spec), remedy="Choose another tag, or use `weights: file`.")
    expected = downloads.Expected("sha256", prefix[1])
    if path.is_file():
        if not expected.fits(path):
            raise InputError(_OTHER_DIGEST, where=str(path), remedy="Delete the file.")
        return path
    if not download:
        raise _not_cached(spec, str(path))
    try:
        downloads.download([url], path, expected)
    except OSError as error:
        raise _not_fetched(spec, url, error) from error
    return path


class NotCachedError(InputError):
    """Weights of a library are not on this machine, and may not be fetched."""


def _not_cached(spec: Backbone, place: str) -> NotCachedError:
    what = f"pretrained weights are not on this machine ({place})"
    remedy = "Set data.download to true, copy them there from another machine, or use `weights: file`."
    return NotCachedError(what, where=_where(spec), remedy=remedy)


def _not_fetched(spec: Backbone, source: str, error: Any) -> InputError:
    what = f"pretrained weights could not be fetched from {source} ({type(error).__name__})"
    remedy = "Try again when the network is there, copy them into the cache, or use a file of weights."
    return InputError(what, where=_where(spec), remedy=remedy)


def _where(spec: Backbone) -> str:
    tag = f".{spec.tag}" if spec.tag else ""
    return f"backbone {spec.architecture}{tag} of {spec.library}"
