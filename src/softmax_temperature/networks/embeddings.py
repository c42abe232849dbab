"""Embeddings: images through a frozen network, one batch at a time, into a file that
grows on disk.

An artifact of embeddings holds `embeddings.npy`, (n, dim) float32 of all splits one
after the other, each in the order of the prepared data set; `rows.safetensors`,
{split}.labels (n,) and {split}.index (n,) int64; and `provenance.json`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
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
    from softmax_temperature.networks.backbones import Preprocess

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
    """Embed batches of images as they arrive, (n, dim) float32 on the CPU; errors name
    them as `where`.
    """
    network = network.to(device=device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    done = 0
    for images in batches:
        prepared = preprocess(images, device=device)
        # Not around the loop: a generator would carry the modes into its caller.
        with (
            torch.inference_mode(),
            torch.autocast(
                prepared.device.type, torch.bfloat16, precision == "bfloat16"
            ),
        ):
            embeddings = network(prepared).float().cpu()
        for fault, rows in (
            ("not finite", ~embeddings.isfinite().all(1)),
            ("all zero", ~embeddings.any(1)),
        ):
            if rows.any():
                what = (
                    f"the embedding of row {done + int(rows.int().argmax())} is {fault}"
                )
                remedy = "Look at that image; if it is sound, the backbone's weights or preprocessing are not."
                raise InputError(what, where=where, remedy=remedy)
        done += len(embeddings)
        yield embeddings


def write_embeddings(
    folder: Path,
    rows: Mapping[SplitName, tuple[Tensor, Tensor]],
    embed: Callable[[SplitName], Iterable[Tensor]],
    provenance: Mapping[str, Any],
) -> None:
    """Write an artifact of each split's labels and index, (n,) int64, and embeddings in
    batches, (b, dim) float32.
    """
    splits = [split for split in SPLITS if split in rows]
    shape = sum(len(rows[split][0]) for split in splits), int(provenance["embedding"])
    with (folder / EMBEDDINGS).open("wb") as file:
        np.lib.format.write_array_header_1_0(
            file, {"descr": "<f4", "fortran_order": False, "shape": shape}
        )
        for batch in chain.from_iterable(map(embed, splits)):
            file.write(batch.contiguous().numpy().data)
    labels = {f"{split}.labels": labels for split, (labels, _) in rows.items()}
    save_file(
        labels | {f"{split}.index": index for split, (_, index) in rows.items()},
        folder / ROWS,
    )
    write_json(folder / PROVENANCE, dict(provenance))


def open_embeddings(artifact: Artifact) -> dict[SplitName, Part]:
    """Read embeddings back: by split, a part with data (n, dim) float32, mapped from
    disk.
    """
    dataset, rows = artifact.json(PROVENANCE)["dataset"], artifact.tensors(ROWS)
    splits = [split for split in SPLITS if f"{split}.labels" in rows]
    embeddings = torch.from_numpy(np.load(artifact.path(EMBEDDINGS), mmap_mode="c"))
    data = embeddings.split([len(rows[f"{split}.labels"]) for split in splits])
    return {
        split: Part(
            dataset, split, part, rows[f"{split}.labels"], rows[f"{split}.index"]
        )
        for split, part in zip(splits, data, strict=True)
    }
