"""The embeddings of a user's image folder, through a backbone of params.yaml, timm or
torchvision.
"""

from collections.abc import Iterator, Sequence
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
from softmax_temperature.networks.backbones import LoadedBackbone, load_backbone
from softmax_temperature.networks.embeddings import extract
from softmax_temperature.networks.preprocess import torchvision_preprocess
from softmax_temperature.networks.registry import WEIGHTS, build_embedding_network
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
_LAYOUT = "Put the images of each class into a folder of its own, below this one or below its train/ and test/."


def rows_of_images(
    folder: Path, backbone: str, *, download: bool, device: str
) -> tuple[Arrays, Arrays | None]:
    """The embeddings and labels of an image folder: class folders, or `train` and
    `test` (or `all`) that hold some.
    """
    place = folder.resolve()
    if has_class_folders(place.parent, place.name):
        found = ClassFolders(place.parent, place.name).read()
        parts = {"train": found.train} | ({"test": found.test} if found.test else {})
    else:
        files = class_files(place.parent, place.name)
        if len(files) < 2:
            raise InputError(
                f"has {len(files)} class folders with images",
                where=str(folder),
                remedy=_LAYOUT,
            )
        parts = {"train": part_of(tuple(files), files)}
    network, arrays = load(backbone, download=download), {}
    for name, part in parts.items():
        batches = _batches([place.parent / str(path) for path in part.samples])
        pieces = list(
            extract(
                network.network,
                network.preprocess,
                batches,
                device=device,
                where=str(folder),
            )
        )
        arrays[name] = {"embeddings": torch.cat(pieces).numpy(), "labels": part.labels}
    return arrays["train"], arrays.get("test")


def load(name: str, *, download: bool) -> LoadedBackbone:
    """A backbone of params.yaml, or [LIBRARY/]ARCHITECTURE[.TAG] with the library's own
    weights.
    """
    params = read_params(PARAMS) if PARAMS.is_file() else None
    if params is None or name not in params.backbones:
        spec = _of_library(name, list(params.backbones) if params else [])
        locate_weights(spec, root=Path(), download=download)
        return load_backbone(spec, root=Path(), seed=0)
    spec, root = params.backbones[name], Path(params.data.root)
    locate_weights(spec, root=root, download=download)
    own = (
        open_artifact(pretrain.output / name).path(WEIGHTS)
        if spec.weights == "pretrain"
        else None
    )
    return load_backbone(
        spec, root=root, seed=seed_of(params.seed, "backbones", name), pretrained=own
    )


def _of_library(name: str, others: Sequence[str]) -> Backbone:
    """The description of a network of timm or torchvision with the weights that it
    comes with.
    """
    known = {
        "timm": timm.list_models(),
        "torchvision": models.list_models(module=models),
    }
    library, _, rest = name.rpartition("/")
    architecture, _, tag = rest.partition(".")
    holders = [
        one
        for one in ([library] if library else known)
        if architecture in known.get(one, ())
    ]
    if not holders:
        names = [*others, *(one for some in known.values() for one in some)]
        raise InputError(
            f"unknown network {name!r}", where="--backbone", remedy=nearest(rest, names)
        )
    try:
        if holders[0] == "timm":
            config: Any = timm.get_pretrained_cfg(rest)
            tag, size = str(config.tag), config.input_size[-1]
        else:
            weights = models.get_model_weights(architecture)
            chosen = weights[tag or weights.DEFAULT.name]
            tag, size = chosen.name, torchvision_preprocess(chosen).size
    except (KeyError, AttributeError) as error:
        what = f"{holders[0]} has no such weights, or does not say how their images are prepared"
        raise InputError(
            what, where=name, remedy="Describe it in params.yaml, under `backbones`."
        ) from error
    fields = {
        "library": holders[0],
        "architecture": architecture,
        "weights": "hub",
        "tag": tag,
        "embedding": 1,
    }
    spec = Backbone.model_validate(fields)
    try:
        network, _ = build_embedding_network(spec)
    except InputError:  # Without a linear layer: pooled.
        spec = spec.model_copy(update={"tensor": "mean_features"})
        network, _ = build_embedding_network(spec)
    with torch.inference_mode():
        return spec.model_copy(
            update={"embedding": network.eval()(torch.zeros(1, 3, size, size)).shape[1]}
        )


def _batches(paths: Sequence[Path]) -> Iterator[list[Tensor]]:
    progress = Progress()
    for start in range(0, len(paths), BATCH):
        progress(f"{start:,} of {len(paths):,} images")
        images = [
            read_image(path, sha256=None, channels=3, size_limit=None)
            for path in paths[start : start + BATCH]
        ]
        yield [torch.from_numpy(np.ascontiguousarray(image)) for image in images]
