"""Frozen backbones: networks with weights, preprocessing and provenance."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

from softmax_temperature.data.seeds import drawn_from
from softmax_temperature.networks.backbone_networks import (
    backbone_error,
    build_embedding_network,
)
from softmax_temperature.networks.preprocess import (
    Preprocess,
    described_preprocess,
    timm_preprocess,
    torchvision_preprocess,
)
from softmax_temperature.networks.weights import (
    digest_of_weights,
    load_weights,
    locate_weights,
    torchvision_weights,
)
from softmax_temperature.params.network import Backbone
from softmax_temperature.runner.artifacts import digest_of_file

# The parameters of a backbone that are copied into its provenance.
_IDENTITY = {
    "library",
    "architecture",
    "arguments",
    "weights",
    "tag",
    "file",
    "package",
    "tensor",
    "embedding",
}


class LoadedBackbone(NamedTuple):
    """A frozen network, its preprocessing, and a description of both.

    Attributes:
        network: Maps images (n, 3, size, size) to embeddings (n, embedding).
        preprocess: Turns images into the network's inputs.
        provenance: Identity, weights digest and transform, as JSON values.
    """

    network: nn.Module
    preprocess: Preprocess
    provenance: dict[str, Any]


def load_backbone(
    spec: Backbone, *, root: Path, seed: int, pretrained: Path | None = None
) -> LoadedBackbone:
    """Load a backbone in evaluation mode, without access to the internet.

    The weights must already be on this machine; `locate_weights` can download them.

    Args:
        spec: The backbone.
        root: The folder with the user's data (the parameter `data.root`).
        seed: The seed of "untrained" weights.
        pretrained: The safetensors file of "pretrain" weights.

    Raises:
        MissingInput: If the weights are missing.
        InputError: If the weights or the embedding do not match `spec`.
    """
    path = locate_weights(spec, root=root, download=False)
    if spec.weights == "pretrain":
        path = pretrained
    with drawn_from(seed):
        network, preprocess = _build(spec, path)
    network.eval().requires_grad_(False)
    _check_embedding(spec, network, preprocess)
    digest = digest_of_weights(network) if path is None else digest_of_file(path)
    provenance = {
        **spec.model_dump(include=_IDENTITY),
        "weights_sha256": digest,
        "transform": asdict(preprocess),
    }
    return LoadedBackbone(network, preprocess, provenance)


def _build(spec: Backbone, path: Path | None) -> tuple[nn.Module, Preprocess]:
    is_hub = spec.weights == "hub"
    if is_hub and spec.library == "timm":
        network, _ = build_embedding_network(spec, timm_file=path)
        return network, timm_preprocess(network)
    network, unused = build_embedding_network(spec)
    if path is not None:
        load_weights(network, path, unused)
    if not is_hub:
        return network, described_preprocess(spec)
    if hasattr(network, "transform_input"):
        # torchvision's googlenet and inception_v3 were trained on pixels from -1 to 1.
        # With `transform_input`, they convert images to this range after torchvision's
        # transform has normalised them differently.
        setattr(network, "transform_input", True)  # noqa: B010
    return network, torchvision_preprocess(torchvision_weights(spec))


@torch.inference_mode()
def _check_embedding(
    spec: Backbone, network: nn.Module, preprocess: Preprocess
) -> None:
    """Raise InputError unless embeddings have the length that `spec` states.

    The check embeds one image whose preprocessed pixels are all 0.
    """
    image = torch.zeros(1, 3, preprocess.size, preprocess.size)
    try:
        shape = tuple(network(image).shape)
    except (RuntimeError, AssertionError) as error:
        raise backbone_error(
            spec,
            f"does not take images of {preprocess.size} pixels ({error})",
            "Correct `input_size`.",
        ) from error
    if shape != (1, spec.embedding):
        raise backbone_error(
            spec,
            f"{spec.tensor} of one image has the shape {shape}, but `embedding` says "
            f"{spec.embedding}",
            "Correct `embedding`, or choose another `tensor`.",
        )
