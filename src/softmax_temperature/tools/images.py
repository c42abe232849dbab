"""Embed the images in a user's folder with a backbone."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import timm
import torch
from torch import Tensor
from torchvision import models

from softmax_temperature.data.class_folders import (
    ClassFolders,
    class_files,
    has_class_folders,
    part_of,
)
from softmax_temperature.data.image_files import read_image
from softmax_temperature.data.seeds import seed_of
from softmax_temperature.networks.backbone_networks import build_embedding_network
from softmax_temperature.networks.backbones import LoadedBackbone, load_backbone
from softmax_temperature.networks.embeddings import extract
from softmax_temperature.networks.preprocess import torchvision_preprocess
from softmax_temperature.networks.registry import WEIGHTS
from softmax_temperature.networks.weights import locate_weights
from softmax_temperature.params import read_params
from softmax_temperature.params.network import Backbone
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.errors import InputError, nearest
from softmax_temperature.runner.progress import Progress
from softmax_temperature.stages.pretraining import pretrain
from softmax_temperature.tools.arrays import Arrays

BATCH = 64
PARAMS = Path("params.yaml")
_LAYOUT = (
    "Put the images of each class into a folder of its own, below this one or below "
    "its train/ and test/."
)


def rows_of_images(
    folder: Path, backbone: str, *, download: bool, device: str
) -> tuple[Arrays, Arrays | None]:
    """Embed the training and test images in a folder, and read their labels.

    The folder holds one folder per class, or folders `train` and `test` (or `all`) that
    hold one folder per class.

    Args:
        folder: The image folder.
        backbone: See `load`.
        download: Whether a library may download the backbone's weights.
        device: Device on which the images are embedded.

    Returns:
        The training rows, and the test rows or None if there are no test images.

    Raises:
        InputError: If the folder has fewer than two classes, an image cannot be read,
            there is no such backbone, or its weights are missing.
    """
    place = folder.resolve()
    if has_class_folders(place.parent, place.name):
        dataset = ClassFolders(place.parent, place.name).read()
        parts = {"train": dataset.train}
        if dataset.test:
            parts["test"] = dataset.test
    else:
        files = class_files(place.parent, place.name)
        if len(files) < 2:
            raise InputError(
                f"needs at least 2 class folders with images, has {len(files)}",
                where=str(folder),
                remedy=_LAYOUT,
            )
        parts = {"train": part_of(tuple(files), files)}
    loaded = load(backbone, download=download)
    arrays = {}
    for name, part in parts.items():
        batches = _batches([place.parent / str(path) for path in part.samples])
        pieces = extract(
            loaded.network,
            loaded.preprocess,
            batches,
            device=device,
            where=str(folder),
        )
        embeddings = torch.cat(list(pieces)).numpy()
        arrays[name] = {"embeddings": embeddings, "labels": part.labels}
    return arrays["train"], arrays.get("test")


def load(name: str, *, download: bool) -> LoadedBackbone:
    """Load the backbone `name`, with its weights.

    Args:
        name: A backbone in params.yaml, or [LIBRARY/]ARCHITECTURE[.TAG] for a network
            of timm or torchvision with that library's weights.
        download: Whether the library may download the weights.

    Raises:
        InputError: If there is no such backbone, or its weights are missing.
    """
    params = read_params(PARAMS) if PARAMS.is_file() else None
    if params is None or name not in params.backbones:
        spec = _of_library(name, list(params.backbones) if params else [])
        locate_weights(spec, root=Path(), download=download)
        return load_backbone(spec, root=Path(), seed=0)
    spec = params.backbones[name]
    root = Path(params.data.root)
    locate_weights(spec, root=root, download=download)
    pretrained = None
    if spec.weights == "pretrain":
        pretrained = open_artifact(pretrain.output / name).path(WEIGHTS)
    seed = seed_of(params.seed, "backbones", name)
    return load_backbone(spec, root=root, seed=seed, pretrained=pretrained)


def _of_library(name: str, backbones: Sequence[str]) -> Backbone:
    """Describe the network `name` of a library, with weights that the library has."""
    architectures = {
        "timm": timm.list_models(),
        "torchvision": models.list_models(module=models),
    }
    library, _, rest = name.rpartition("/")
    architecture, _, tag = rest.partition(".")
    candidates = [library] if library else list(architectures)
    holders = [
        candidate
        for candidate in candidates
        if architecture in architectures.get(candidate, ())
    ]
    if not holders:
        names = [*backbones, *chain.from_iterable(architectures.values())]
        raise InputError(
            f"unknown network {name!r}", where="--backbone", remedy=nearest(rest, names)
        )
    holder = holders[0]
    try:
        if holder == "timm":
            tag, size = _timm_weights(rest)
        else:
            tag, size = _torchvision_weights(architecture, tag)
    except (KeyError, AttributeError) as error:
        raise InputError(
            f"{holder} has no such weights, or does not describe their preprocessing",
            where=name,
            remedy="Describe it in params.yaml, under `backbones`.",
        ) from error
    fields = {
        "library": holder,
        "architecture": architecture,
        "weights": "hub",
        "tag": tag,
        "embedding": 1,
    }
    spec = Backbone.model_validate(fields)
    try:
        network, _ = build_embedding_network(spec)
    except InputError:
        # The network has no linear layer, so its pooled features are the embeddings.
        spec = spec.model_copy(update={"tensor": "mean_features"})
        network, _ = build_embedding_network(spec)
    with torch.inference_mode():
        embedding = network.eval()(torch.zeros(1, 3, size, size))
    return spec.model_copy(update={"embedding": embedding.shape[1]})


def _timm_weights(name: str) -> tuple[str, int]:
    """The tag of the timm network's weights, and the image size that they expect."""
    config: Any = timm.get_pretrained_cfg(name)
    return str(config.tag), config.input_size[-1]


def _torchvision_weights(architecture: str, tag: str) -> tuple[str, int]:
    """The tag of torchvision's weights, and the image size that they expect."""
    weights = models.get_model_weights(architecture)
    chosen = weights[tag or weights.DEFAULT.name]
    return chosen.name, torchvision_preprocess(chosen).size


def _batches(paths: Sequence[Path]) -> Iterator[list[Tensor]]:
    progress = Progress()
    for start in range(0, len(paths), BATCH):
        progress(f"{start:,} of {len(paths):,} images")
        images = [
            read_image(path, sha256=None, channels=3, size_limit=None)
            for path in paths[start : start + BATCH]
        ]
        yield [torch.from_numpy(np.ascontiguousarray(image)) for image in images]
