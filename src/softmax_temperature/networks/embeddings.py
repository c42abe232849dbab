"""Embeddings of images from a frozen network, written to disk as they are computed.

An artifact of embeddings holds

- `embeddings.npy`: a float32 array (n, dim) of all splits in sequence, each in the
  order of the prepared data set;
- `rows.safetensors`: `SPLIT.labels` and `SPLIT.index`, int64 tensors of shape (n,);
- `provenance.json`: the data set, the backbone and its weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from softmax_temperature.data.splits import SPLITS, Part, SplitName
from softmax_temperature.runner.artifacts import Artifact, write_json
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from softmax_temperature.networks.preprocess import Preprocess

EMBEDDINGS = "embeddings.npy"
ROWS = "rows.safetensors"
PROVENANCE = "provenance.json"


def extract(
    network: nn.Module,
    preprocess: Preprocess,
    batches: Iterable[Tensor | Sequence[Tensor]],
    *,
    device: str | torch.device = "cpu",
    precision: Literal["float32", "bfloat16"] = "float32",
    where: str = "embeddings",
) -> Iterator[Tensor]:
    """Embed batches of images as they arrive.

    Args:
        network: Maps images to embeddings.
        preprocess: Maps images to the network's inputs.
        batches: Each batch is a uint8 tensor (b, 1 or 3, height, width), or a sequence
            of b uint8 tensors (1 or 3, height, width), which may differ in size.
        device: The device to compute on.
        precision: The precision of matrix products.
        where: Name of the embeddings in error messages.

    Yields:
        Embeddings as float32 tensors of shape (b, dim), on the CPU.

    Raises:
        InputError: If an embedding is not finite, or all zero.
    """
    network = network.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    is_bfloat16 = precision == "bfloat16"
    first_row = 0
    for images in batches:
        prepared = preprocess(images, device=device)
        device_type = prepared.device.type
        # Enter the two modes separately for each batch. If they enclosed the loop, they
        # would stay switched on in the generator's caller between batches.
        with (
            torch.inference_mode(),
            torch.autocast(device_type, torch.bfloat16, is_bfloat16),
        ):
            embeddings = network(prepared).float().cpu()
        _check(embeddings, first_row, where)
        first_row += len(embeddings)
        yield embeddings


def _check(embeddings: Tensor, first_row: int, where: str) -> None:
    faults = {
        "not finite": ~embeddings.isfinite().all(1),
        "all zero": ~embeddings.any(1),
    }
    for fault, rows in faults.items():
        if rows.any():
            row = first_row + int(rows.int().argmax())
            raise InputError(
                f"the embedding of row {row} is {fault}",
                where=where,
                remedy=(
                    "Check that image. If it is valid, the backbone's weights or "
                    "preprocessing are wrong."
                ),
            )


def write_embeddings(
    folder: Path,
    rows: Mapping[SplitName, tuple[Tensor, Tensor]],
    embed: Callable[[SplitName], Iterable[Tensor]],
    provenance: Mapping[str, Any],
) -> None:
    """Write an artifact of embeddings.

    Args:
        folder: An existing folder.
        rows: The labels and the index of each split, int64 tensors of shape (n,).
        embed: Computes the embeddings of a split in batches, which are float32 tensors
            of shape (b, dim).
        provenance: JSON values about the backbone; the value of `embedding` is dim.
    """
    splits = [split for split in SPLITS if split in rows]
    size = sum(len(rows[split][0]) for split in splits)
    shape = (size, int(provenance["embedding"]))
    header = {"descr": "<f4", "fortran_order": False, "shape": shape}
    with (folder / EMBEDDINGS).open("wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        for split in splits:
            for batch in embed(split):
                file.write(batch.contiguous().numpy().data)
    columns: dict[str, Tensor] = {}
    for split, (labels, index) in rows.items():
        columns[f"{split}.labels"] = labels
        columns[f"{split}.index"] = index
    save_file(columns, folder / ROWS)
    write_json(folder / PROVENANCE, dict(provenance))


def open_embeddings(artifact: Artifact) -> dict[SplitName, Part]:
    """Open the embeddings of each split; the data, (n, dim) float32, stay on disk."""
    dataset = artifact.json(PROVENANCE)["dataset"]
    rows = artifact.tensors(ROWS)
    splits = [split for split in SPLITS if f"{split}.labels" in rows]
    sizes = [len(rows[f"{split}.labels"]) for split in splits]
    embeddings = torch.from_numpy(np.load(artifact.path(EMBEDDINGS), mmap_mode="c"))
    parts: dict[SplitName, Part] = {}
    for split, data in zip(splits, embeddings.split(sizes), strict=True):
        labels = rows[f"{split}.labels"]
        index = rows[f"{split}.index"]
        parts[split] = Part(dataset, split, data, labels, index)
    return parts
