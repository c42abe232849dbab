"""Folders of shards with made-up embeddings, as `embed` leaves them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from softmax_temperature.networks.embeddings import write_embeddings
from softmax_temperature.runner.artifacts import new_artifact, write_json
from softmax_temperature.shards import ShardedEmbeddings
from softmax_temperature.shards.embed_shard import COUNTS
from softmax_temperature.shards.index import write_index

DIM, CLASSES = 6, 3


def made_shards(
    folder: Path,
    sizes: Sequence[int],
    *,
    dim: int = DIM,
    classes: int = CLASSES,
    noise: float = 1.0,
    test_every: int = 10,
    label: Callable[[int], int] = int,
    only_in_test: int | None = None,
) -> ShardedEmbeddings:
    """Rows around a centre for each class; every tenth is to test on, and perhaps one of a label of its own."""
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(classes, dim, generator=generator)
    for number, size in enumerate(sizes):
        kinds = torch.arange(size) % classes
        rows = centres[kinds] + noise * torch.randn(size, dim, generator=generator)
        labels = torch.tensor([label(int(kind)) for kind in kinds], dtype=torch.int64)
        held_out = torch.arange(size) % test_every == 0
        if only_in_test is not None:
            labels[held_out.nonzero()[0]] = only_in_test
        parts = {"train": ~held_out, "test": held_out}
        parts = {split: mask for split, mask in parts.items() if mask.any()}
        with new_artifact(folder / f"shards/s-{number}", kind="embed_shard", about={}) as output:
            write_embeddings(
                output,
                {split: (labels[mask], mask.nonzero().flatten()) for split, mask in parts.items()},  # type: ignore[misc]
                lambda split, rows=rows, parts=parts: [rows[parts[split]]],  # type: ignore[misc]
                {"dataset": "made", "embedding": dim},
            )
            write_json(output / COUNTS, {split: Counter(labels[mask].tolist()) for split, mask in parts.items()})
    write_index(folder, [f"s-{number}" for number in range(len(sizes))], None)
    return ShardedEmbeddings(folder)


def rows_of(folder: Path, split: str) -> tuple[Tensor, Tensor]:
    """All rows of a split, read in another way."""
    from safetensors.torch import load_file

    files = [load_file(path) for path in sorted(folder.glob("shards/*/embeddings.safetensors"))]
    return tuple(  # type: ignore[return-value]
        torch.cat([file[f"{split}.{column}"] for file in files if f"{split}.{column}" in file])
        for column in ("embeddings", "labels")
    )
