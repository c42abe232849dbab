"""What the command `suggest` reads: files of embeddings, or folders of images through a backbone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import timm
import torch
from pydantic import ValidationError
from torch import Tensor
from torchvision import models

from softmax_temperature.data.class_folders import ClassFolders, class_files, has_class_folders, part_of
from softmax_temperature.data.image_files import read_image
from softmax_temperature.data.raw import RawPart
from softmax_temperature.data.sampling import balanced_subset, generator_for
from softmax_temperature.networks.backbones.loading import LoadedBackbone, load_backbone
from softmax_temperature.networks.backbones.networks import build_embedding_network
from softmax_temperature.networks.backbones.preprocessing import torchvision_preprocess
from softmax_temperature.networks.backbones.weights import locate_weights
from softmax_temperature.networks.embeddings import extract
from softmax_temperature.params import read_params
from softmax_temperature.params.backbone import Backbone
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.cells import seed_of
from softmax_temperature.runner.errors import InputError, nearest
from softmax_temperature.runner.progress import counting
from softmax_temperature.stages import pretrain
from softmax_temperature.tools.arrays import read_arrays
from softmax_temperature.tools.suggest import Rows, checked_rows

BATCH = 64
_LAYOUT = "Put the images of each class into a folder of its own, below this one or below its train/ and test/."
_FORM = "Embeddings are floats of shape (n, dim), labels whole numbers of shape (n,)."


@dataclass(frozen=True)
class BackboneChoice:
    """What the user says of the backbone.

    Attributes:
        name: Of a backbone in the parameter file; or ARCHITECTURE, ARCHITECTURE.TAG, LIBRARY/ARCHITECTURE, ...
        weights: A file of weights for a network of a library; None for the library's own.
        download: Whether the library may fetch its weights.
        params: The parameter file; it may be absent.
    """

    name: str
    weights: Path | None
    download: bool
    params: Path


def rows_of_files(
    embeddings: Path, labels: Path | None = None, test: Path | None = None, test_labels: Path | None = None
) -> tuple[Rows, Rows | None]:
    """Rows to describe and train on, and rows to test on if there are any.

    Raises:
        InputError: A file or an array is not as it should be.
    """
    within = ("test_embeddings", "test_labels")
    train = _pair(embeddings, labels, optional=within)
    own = {key.removeprefix("test_"): train.pop(key) for key in within if key in train}
    if test and own:
        what = f"is given, and {embeddings} holds test_embeddings of its own"
        raise InputError(what, where="--test", remedy="Leave it out.")
    if len(own) == 1 or (test_labels and not test):
        raise InputError("test embeddings or test labels are missing", where=str(embeddings), remedy="Give both.")
    return _checked(train, _pair(test, test_labels) if test else own or None, str(embeddings))


def rows_of_images(
    folder: Path, choice: BackboneChoice, *, limit: int | None, seed: int, device: str
) -> tuple[Rows, Rows | None]:
    """The embeddings of an image folder: class folders, or `train` and `test` (or `all`) that hold class folders.

    Raises:
        InputError: There are no class folders, an image is damaged, or the backbone or its weights are not there.
    """
    place = folder.resolve()
    if has_class_folders(place.parent, place.name):
        found = ClassFolders(place.parent, place.name).read()
        parts = {"train": found.train} | ({"test": found.test} if found.test else {})
    else:
        files = class_files(place.parent, place.name)
        if len(files) < 2:
            raise InputError(f"has {len(files)} class folders with images", where=str(folder), remedy=_LAYOUT)
        parts = {"train": part_of(tuple(files), files)}
    if limit is not None:
        parts = {name: _limited(part, limit, seed) for name, part in parts.items()}
    backbone = load(choice)
    arrays = {}
    with counting("images", sum(len(part.labels) for part in parts.values())) as advance:
        for name, part in parts.items():
            pieces = []
            batches = _batches(place.parent, [str(path) for path in part.samples])
            for piece in extract(backbone.network, backbone.preprocess, batches, device=device, where=str(folder)):
                pieces.append(piece)
                advance(len(piece))
            arrays[name] = {"embeddings": torch.cat(pieces).numpy(), "labels": part.labels}
    return _checked(arrays["train"], arrays.get("test"), str(folder))


def load(choice: BackboneChoice) -> LoadedBackbone:
    """Find and load the backbone.

    Raises:
        InputError: There is none of that name, or its weights are not there or not its own.
    """
    params = read_params(choice.params) if choice.params.is_file() else None
    if params is None or choice.name not in params.backbones:
        spec = _of_library(choice, list(params.backbones) if params else [])
        locate_weights(spec, root=Path(), download=choice.download)
        return load_backbone(spec, root=Path(), seed=0)
    if choice.weights is not None:
        what = f"is given, and {choice.params} says where the weights of {choice.name} lie"
        raise InputError(what, where="--weights", remedy="Leave it out, or name a network of timm or torchvision.")
    spec, root = params.backbones[choice.name], Path(params.data.root)
    locate_weights(spec, root=root, download=choice.download)
    own = open_artifact(pretrain.OUTPUT / choice.name).path(pretrain.WEIGHTS) if spec.weights == "pretrain" else None
    return load_backbone(spec, root=root, seed=seed_of(params.seed, "backbones", choice.name), pretrained=own)


def _of_library(choice: BackboneChoice, others: Sequence[str]) -> Backbone:
    """The description of a network of timm or torchvision; weights in a file are prepared for as the library's own."""
    known = {"timm": timm.list_models(), "torchvision": models.list_models(module=models)}
    library, _, rest = choice.name.rpartition("/")
    architecture, _, tag = rest.partition(".")
    holders = [name for name in ([library] if library else known) if architecture in known.get(name, ())]
    if not holders:
        names = [*others, *(name for some in known.values() for name in some)]
        raise InputError(f"unknown network {choice.name!r}", where="--backbone", remedy=nearest(rest, names))
    library = holders[0]
    try:
        tag, own = (_timm_weights if library == "timm" else _torchvision_weights)(architecture, tag)
    except (KeyError, AttributeError) as error:
        what = f"{library} has no such weights, or does not say how their images are prepared"
        raise InputError(what, where=choice.name, remedy="Describe it in params.yaml, under `backbones`.") from error
    fields: dict[str, Any] = {"library": library, "architecture": architecture, "embedding": 1}
    if choice.weights is None:
        fields |= {"weights": "hub", "tag": tag}
    else:
        fields |= {"weights": "file", "file": str(choice.weights.resolve()), **own}
    try:
        spec = Backbone.model_validate(fields)
    except ValidationError as error:
        raise InputError(str(error.errors()[0]["msg"]), where=choice.name, remedy="Choose another network.") from error
    return _measured(spec, own["input_size"])


def _measured(spec: Backbone, size: int) -> Backbone:
    """The same with the length of its embedding; a network without a linear layer is pooled."""
    try:
        network = build_embedding_network(spec).network
    except InputError:
        spec = spec.model_copy(update={"tensor": "mean_features"})
        network = build_embedding_network(spec).network
    with torch.inference_mode():
        return spec.model_copy(update={"embedding": network.eval()(torch.zeros(1, 3, size, size)).shape[1]})


def _timm_weights(architecture: str, tag: str) -> tuple[str, dict[str, Any]]:
    config: Any = timm.get_pretrained_cfg(f"{architecture}.{tag}" if tag else architecture)
    size = config.input_size[-1]
    own = {"input_size": size, "resize": math.floor(size / config.crop_pct), "interpolation": config.interpolation}
    return str(config.tag), own | {"mean": list(config.mean), "std": list(config.std)}


def _torchvision_weights(architecture: str, tag: str) -> tuple[str, dict[str, Any]]:
    weights = models.get_model_weights(architecture)
    chosen = weights[tag or weights.DEFAULT.name]
    found = torchvision_preprocess(chosen)
    own = {"input_size": found.size, "resize": found.resize, "interpolation": found.interpolation}
    return chosen.name, own | {"mean": list(found.mean), "std": list(found.std)}


def _pair(path: Path, labels: Path | None, *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    required = ("embeddings",) if labels else ("embeddings", "labels")
    arrays = read_arrays(path, "embeddings", required=required, optional=optional)
    return arrays | (read_arrays(labels, "embeddings", required=("labels",)) if labels else {})


def _checked(train: dict[str, Any], test: dict[str, Any] | None, where: str) -> tuple[Rows, Rows | None]:
    try:
        rows = checked_rows(train["embeddings"], train["labels"])
        classes = np.unique(np.asarray(train["labels"])).tolist()
        held = checked_rows(test["embeddings"], test["labels"], classes) if test else None
    except ValueError as error:
        raise InputError(str(error), where=where, remedy=_FORM) from error
    if held is not None and held[0].shape[1] != rows[0].shape[1]:
        what = f"test embeddings have {held[0].shape[1]} dimensions, the others {rows[0].shape[1]}"
        raise InputError(what, where=where, remedy="Give embeddings of one backbone.")
    return rows, held


def _limited(part: RawPart, limit: int, seed: int) -> RawPart:
    rows = balanced_subset(part.labels, limit, generator_for(seed, "suggest", "limit"))
    return RawPart(tuple(str(part.samples[row]) for row in rows), part.labels[rows])


def _batches(root: Path, paths: Sequence[str]) -> Iterator[list[Tensor]]:
    for start in range(0, len(paths), BATCH):
        images = (
            read_image(root / path, sha256=None, channels=3, size_limit=None) for path in paths[start : start + BATCH]
        )
        yield [torch.from_numpy(np.ascontiguousarray(image)) for image in images]
