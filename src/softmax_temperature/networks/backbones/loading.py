"""Load a backbone: network, preprocessing, and the record of what they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from softmax_temperature.networks.backbones.networks import build_embedding_network, described
from softmax_temperature.networks.backbones.preprocessing import (
    Preprocess,
    described_preprocess,
    timm_preprocess,
    torchvision_preprocess,
)
from softmax_temperature.networks.backbones.weights import (
    digest_of_weights,
    load_weights,
    locate_weights,
    torchvision_weights,
)
from softmax_temperature.params.backbone import Backbone
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.errors import InputError


class LoadedBackbone(NamedTuple):
    """A backbone that is ready for use: frozen and in evaluation mode.

    `network` maps prepared images (n, 3, size, size) to embeddings (n, embedding), `preprocess` prepares them, and
    `provenance` holds JSON values: architecture, source and digest of the weights, tensor and its length, transform.
    """

    network: nn.Module
    preprocess: Preprocess
    provenance: dict[str, Any]


def load_backbone(spec: Backbone, *, root: Path, seed: int, pretrained: Path | None = None) -> LoadedBackbone:
    """Load a backbone without a network connection; `locate_weights` fetches what it lacks.

    Args:
        spec: what to load.
        root: the folder of the user's files (data.root).
        seed: of the random weights, for weights "untrained".
        pretrained: the safetensors file, for weights "pretrain".

    Raises:
        InputError: the weights are not there, damaged, or of another network; or the embedding has another length
            than the spec says.
        ValueError: weights are "pretrain" and `pretrained` is None.
    """
    path = pretrained if spec.weights == "pretrain" else locate_weights(spec, root=root, download=False)
    if spec.weights == "pretrain" and path is None:
        raise ValueError("pretrained: None, must be the file of the weights")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network, preprocess = _build(spec, path)
    network.eval().requires_grad_(False)
    _check_embedding(spec, network, preprocess)
    names = {"library", "architecture", "arguments", "weights", "tag", "file", "tensor", "embedding"}
    digest = digest_of_weights(network) if path is None else digest_of_file(path)
    provenance = {**spec.model_dump(include=names), "weights_sha256": digest, "transform": preprocess.describe()}
    return LoadedBackbone(network, preprocess, provenance)


def _build(spec: Backbone, path: Path | None) -> tuple[nn.Module, Preprocess]:
    hub = spec.weights == "hub"
    if hub and spec.library == "timm":
        network = build_embedding_network(spec, timm_file=path).network
        return network, timm_preprocess(network)
    network, unused = build_embedding_network(spec)
    if hub and hasattr(network, "transform_input"):
        # The weights of googlenet and inception_v3 expect images in the scale of their first training.
        setattr(network, "transform_input", True)  # noqa: B010
    if path is not None:
        load_weights(network, path, unused=unused)
    return network, torchvision_preprocess(torchvision_weights(spec)) if hub else described_preprocess(spec)


@torch.inference_mode()
def _check_embedding(spec: Backbone, network: nn.Module, preprocess: Preprocess) -> None:
    try:
        shape = tuple(network(torch.zeros(1, 3, preprocess.size, preprocess.size)).shape)
    except (RuntimeError, AssertionError) as error:
        what = f"does not take images of {preprocess.size} pixels ({error})"
        raise InputError(what, where=described(spec), remedy="Correct `input_size`.") from error
    if shape != (1, spec.embedding):
        what = f"{spec.tensor} of one image has the shape {shape}, but `embedding` says {spec.embedding}"
        remedy = "Correct `embedding`, or choose another `tensor`."
        raise InputError(what, where=described(spec), remedy=remedy)
