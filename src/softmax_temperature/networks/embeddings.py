"""Embeddings: images through a frozen network, one batch at a time, into a file that grows on disk.

An artifact of embeddings holds

    embeddings.safetensors  {split}.labels (n,) int64, {split}.index (n,) int64 and {split}.embeddings (n, dim) float32
                            for the splits train, validation and test; rows in the order of the prepared data set
    provenance.json         data set, backbone, weights digest, transform, which tensor, its length, precision

Memory is bounded by the batch, not by the data set.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from softmax_temperature.data.splits import SPLITS, Part, SplitName
from softmax_temperature.networks.backbones.preprocessing import Preprocess
from softmax_temperature.runner.artifacts import Artifact, write_json
from softmax_temperature.runner.errors import InputError

EMBEDDINGS = "embeddings.safetensors"
PROVENANCE = "provenance.json"
_COLUMNS = ("labels", "index")
_ALIGNMENT = 8

Batches = Iterable[Tensor | Sequence[Tensor]]
Precision = Literal["float32", "bfloat16"]


def extract(
    network: nn.Module,
    preprocess: Preprocess,
    batches: Batches,
    *,
    device: str | torch.device = "cpu",
    precision: Precision = "float32",
    where: str = "embeddings",
) -> Iterator[Tensor]:
    """Embed images as they arrive.

    Args:
        network: prepared images (n, 3, size, size) to embeddings (n, dim); it is moved to the device.
        preprocess: prepares them.
        batches: what `preprocess` takes.
        device: where to compute.
        precision: of the network's products; "bfloat16" keeps weights and normalisation in float32.
        where: data set, split and backbone, for the error.

    Yields:
        (n, dim) float32 on the CPU, one for each batch.

    Raises:
        InputError: an embedding is not finite or all zero; neither has a direction for the cosine.
    """
    network = network.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    done = 0
    for images in batches:
        embeddings = _embed(network, preprocess(images, device=device), precision)
        for fault, rows in (("not finite", ~embeddings.isfinite().all(1)), ("all zero", ~embeddings.any(1))):
            if rows.any():
                what = f"the embedding of row {done + int(rows.int().argmax())} is {fault}"
                remedy = "Look at that image; if it is sound, the backbone's weights or preprocessing are not."
                raise InputError(what, where=where, remedy=remedy)
        done += len(embeddings)
        yield embeddings


# Not around the loop of `extract`: a generator would carry the mode into its caller.
@torch.inference_mode()
def _embed(network: nn.Module, images: Tensor, precision: Precision) -> Tensor:
    with torch.autocast(images.device.type, torch.bfloat16, enabled=precision == "bfloat16"):
        embeddings: Tensor = network(images)
    return embeddings.float().cpu()


def write_embeddings(
    folder: Path,
    rows: Mapping[SplitName, tuple[Tensor, Tensor]],
    embed: Callable[[SplitName], Iterable[Tensor]],
    provenance: Mapping[str, Any],
) -> None:
    """Write the two files of an artifact of embeddings.

    Args:
        folder: where to.
        rows: by split, labels (n,) and index (n,), int64.
        embed: the embeddings of a split, (b, dim) float32 in batches.
        provenance: JSON values; "dataset" and "embedding" (dim) must be among them.

    Raises:
        ValueError: there are more or fewer embeddings than rows.
    """
    dim = int(provenance["embedding"])
    sizes = {split: len(labels) for split, (labels, _) in rows.items()}
    shapes = {f"{split}.{column}": [size] for split, size in sizes.items() for column in _COLUMNS}
    shapes |= {f"{split}.embeddings": [size, dim] for split, size in sizes.items()}
    with (folder / EMBEDDINGS).open("wb") as file:
        header, size = _header(shapes)
        file.write(header)
        for labels, index in rows.values():
            file.write(labels.numpy().data)
            file.write(index.numpy().data)
        for split in rows:
            for batch in embed(split):
                file.write(batch.contiguous().numpy().data)
        if file.tell() != size:
            raise ValueError(f"embed must give (n, {dim}) embeddings for each split, got a file of {file.tell()} bytes")
    write_json(folder / PROVENANCE, dict(provenance))


def _header(shapes: Mapping[str, list[int]]) -> tuple[bytes, int]:
    """The header of a safetensors file, whose library needs all tensors in memory; and the size of the file."""
    entries, end = {}, 0
    for name, shape in shapes.items():
        dtype, width = ("F32", 4) if name.endswith("embeddings") else ("I64", 8)
        start, end = end, end + math.prod(shape) * width
        entries[name] = {"dtype": dtype, "shape": shape, "data_offsets": [start, end]}
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    header = len(text).to_bytes(8, "little") + text
    return header, len(header) + end


def open_embeddings(artifact: Artifact) -> dict[SplitName, Part]:
    """Read embeddings back: by split, a part with data (n, dim) float32, mapped from disk.

    Raises:
        ArtifactError: a file is missing or damaged.
    """
    dataset = artifact.json(PROVENANCE)["dataset"]
    tensors = artifact.tensors(EMBEDDINGS)
    return {
        split: Part(dataset, split, *(tensors[f"{split}.{column}"] for column in ("embeddings", *_COLUMNS)))
        for split in SPLITS
        if f"{split}.labels" in tensors
    }
