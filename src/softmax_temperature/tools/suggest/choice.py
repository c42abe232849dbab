"""The backbone that a user names: one of a parameter file, or a network of timm or torchvision with its own weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, ValidationError

from softmax_temperature.networks.backbones.loading import LoadedBackbone, load_backbone
from softmax_temperature.networks.backbones.networks import build_embedding_network
from softmax_temperature.networks.backbones.preprocessing import torchvision_preprocess
from softmax_temperature.networks.backbones.weights import NotCachedError, locate_weights
from softmax_temperature.params.backbone import Backbone
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.cells import seed_of
from softmax_temperature.runner.errors import InputError, nearest
from softmax_temperature.runner.folders import BACKBONES
from softmax_temperature.runner.reading import read_yaml
from softmax_temperature.stages.embed import WEIGHTS


@dataclass(frozen=True)
class Wish:
    """What the user says of the backbone.

    Attributes:
        name: of a backbone in the parameter file; or ARCHITECTURE, ARCHITECTURE.TAG, LIBRARY/ARCHITECTURE, ...
        weights: a safetensors file for a network of a library; None for the library's own.
        download: whether the library may fetch its weights.
        params: the parameter file; it may be absent.
    """

    name: str
    weights: Path | None
    download: bool
    params: Path


@dataclass(frozen=True)
class Choice:
    """A backbone whose weights are there.

    Attributes:
        name: what the user called it.
        spec: what it is.
        root: the folder that a file of weights is relative to.
        seed: of random weights.
    """

    name: str
    spec: Backbone
    root: Path
    seed: int

    def load(self) -> LoadedBackbone:
        """The network and its preprocessing.

        Raises:
            InputError: the weights are not its own.
        """
        # Those that the pipeline has trained, if it is the one that trains them.
        own = self.spec.weights == "pretrain"
        pretrained = open_artifact(BACKBONES / self.name).path(WEIGHTS) if own else None
        return load_backbone(self.spec, root=self.root, seed=self.seed, pretrained=pretrained)


def choose(wish: Wish) -> Choice:
    """Find the backbone.

    Raises:
        InputError: there is none of that name, or its weights are not there.
    """
    params = _parameters(wish.params)
    if wish.name not in params.backbones:
        return Choice(wish.name, _fetched(_of_library(wish, list(params.backbones)), Path(), wish), Path(), 0)
    if wish.weights is not None:
        what = f"is given, and {wish.params} says where the weights of {wish.name} lie"
        raise InputError(what, where="--weights", remedy="Leave it out, or name a network of timm or torchvision.")
    spec, root = _validated(params.backbones[wish.name], wish), Path(params.data.root)
    return Choice(wish.name, _fetched(spec, root, wish), root, seed_of(params.seed, "backbones", wish.name))


def load_choice(wish: Wish) -> LoadedBackbone:
    """Find and load the backbone.

    Raises:
        InputError: there is none of that name, or its weights are not there or not its own.
    """
    return choose(wish).load()


class _Data(BaseModel):
    """The section `data`, as far as it is needed."""

    root: str


class _Parameters(BaseModel):
    """What is needed of a parameter file; one beside older results may lack sections that have come since."""

    model_config = ConfigDict(strict=True)

    seed: int
    data: _Data
    backbones: dict[str, dict[str, Any]] = {}


def _parameters(path: Path) -> _Parameters:
    if not path.is_file():
        return _Parameters(seed=0, data=_Data(root="."))
    try:
        return _Parameters.model_validate(read_yaml(path, kind="safe"))
    except ValidationError as error:
        first = error.errors()[0]
        where = f"{path}: {'.'.join(str(part) for part in first['loc'])}"
        raise InputError(first["msg"], where=where, remedy="Correct it, or apply a profile again.") from error


def _validated(description: Any, wish: Wish) -> Backbone:
    try:
        return Backbone.model_validate(description)
    except ValidationError as error:
        first = error.errors()[0]
        where = f"{wish.params}: backbones.{wish.name}"
        raise InputError(f"{first['loc']}: {first['msg']}", where=where, remedy="Correct it.") from error


def _fetched(spec: Backbone, root: Path, wish: Wish) -> Backbone:
    """The same, once its weights are there."""
    try:
        locate_weights(spec, root=root, download=wish.download)
    except NotCachedError as error:
        remedy = "Give --download, copy them there from another machine, or give a file of weights with --weights."
        raise InputError(error.what, where=error.where, remedy=remedy) from error
    return spec


def _of_library(wish: Wish, others: list[str]) -> Backbone:
    """The description of a network of a library.

    Its preprocessing is the one of the library's own weights: weights in a file of the user's are taken to be trained
    with it, and provenance says what it is.
    """
    library, architecture, tag = _named(wish.name, others)
    tag, own = (_of_timm if library == "timm" else _of_torchvision)(architecture, tag)
    fields: dict[str, Any] = {"library": library, "architecture": architecture, "embedding": 1}
    if wish.weights is None:
        fields |= {"weights": "hub", "tag": tag}
    elif not wish.weights.is_file():
        raise InputError("no such file", where=str(wish.weights), remedy="Give a safetensors file.")
    else:
        fields |= {"weights": "file", "file": str(wish.weights.resolve()), **own}
    return _measured(Backbone.model_validate(fields), own["input_size"])


def _measured(spec: Backbone, input_size: int) -> Backbone:
    """The same with the length of its embedding; a network without a linear layer is pooled."""
    try:
        network = build_embedding_network(spec).network
    except InputError:
        spec = spec.model_copy(update={"tensor": "mean_features"})
        network = build_embedding_network(spec).network
    with torch.inference_mode():
        shape = tuple(network.eval()(torch.zeros(1, 3, input_size, input_size)).shape)
    return spec.model_copy(update={"embedding": shape[1]})


def _named(name: str, others: list[str]) -> tuple[str, str, str | None]:
    """Library, architecture and tag of a name."""
    import timm
    from torchvision import models

    library, _, rest = name.rpartition("/")
    architecture, _, tag = rest.partition(".")
    known = {"timm": timm.list_models(), "torchvision": models.list_models(module=models)}
    if library not in ("", *known):
        raise InputError(f"unknown library {library!r}", where="--backbone", remedy=nearest(library, known))
    for candidate in [library] if library else known:
        if architecture in known[candidate]:
            return candidate, architecture, tag or None
    valid = [*others, *(architecture for candidate in known for architecture in known[candidate])]
    remedy = nearest(name, others) if not library and nearest(name, others).startswith("Did") else nearest(rest, valid)
    raise InputError(f"unknown network {name!r}", where="--backbone", remedy=remedy)


def _of_timm(architecture: str, tag: str | None) -> tuple[str, dict[str, Any]]:
    """The tag of its weights, by default timm's own choice, and their preprocessing."""
    import timm

    tags = [name.partition(".")[2] for name in timm.list_pretrained(f"{architecture}.*")]
    if not tags:
        raise _undescribed(f"timm/{architecture}")
    if tag is not None and tag not in tags:
        raise InputError(f"no weights {tag!r}", where=f"timm/{architecture}", remedy=nearest(tag, tags))
    config = timm.get_pretrained_cfg(f"{architecture}.{tag}" if tag else architecture)
    if config is None or config.interpolation not in ("bilinear", "bicubic"):
        raise _undescribed(f"timm/{architecture}")
    size = config.input_size[-1]
    own = {"input_size": size, "resize": math.floor(size / config.crop_pct), "interpolation": config.interpolation}
    return str(config.tag), own | {"mean": list(config.mean), "std": list(config.std)}


def _of_torchvision(architecture: str, tag: str | None) -> tuple[str, dict[str, Any]]:
    """The tag of its weights, by default torchvision's own choice, and their preprocessing."""
    from torchvision import models

    weights = models.get_model_weights(architecture)
    if tag is not None and tag not in weights.__members__:
        remedy = nearest(tag, weights.__members__)
        raise InputError(f"no weights {tag!r}", where=f"torchvision/{architecture}", remedy=remedy)
    chosen = weights[tag or weights.DEFAULT.name]
    found = torchvision_preprocess(chosen)
    own = {"input_size": found.size, "resize": found.resize, "interpolation": found.interpolation}
    return chosen.name, own | {"mean": list(found.mean), "std": list(found.std)}


def _undescribed(name: str) -> InputError:
    what = "the library does not say how its images are prepared"
    return InputError(what, where=name, remedy="Describe it in params.yaml, under `backbones`.")
