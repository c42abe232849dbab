"""Embed one shard: a cell, so that it runs once, anywhere, and is not repeated after whatever interrupts the others.

Its artifact holds what `softmax_temperature.networks.embeddings` says, and besides

    names.txt               the image of each row, one a line, in the order of the shard: line {split}.index, from 0
    counts.json             by split and label, how many rows
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softmax_temperature.params.backbone import Backbone
from softmax_temperature.runner.errors import InputError
from softmax_temperature.shards.held_out import RULE, divided
from softmax_temperature.shards.source import open_shard

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.data.splits import SplitName
    from softmax_temperature.networks.embeddings import Precision
    from softmax_temperature.runner.cells import Job
    from softmax_temperature.shards.images import ShardImages

WEIGHTS = "weights.safetensors"
COUNTS, NAMES = "counts.json", "names.txt"


def run(
    job: Job,
    *,
    root: str,
    name: str,
    shard: dict[str, Any],
    spec: dict[str, Any],
    weights_root: str,
    weights_sha256: str,
    seed: int,
    batch_size: int,
    precision: Precision,
) -> None:
    """Embed the images of a shard.

    Args:
        job: reads the artifact "weights", for weights that the pipeline has trained.
        root: the folder that the images are in.
        name: of the shard.
        shard: where it lies, and its digest.
        spec: the backbone, as JSON.
        weights_root: the folder that a file of weights is relative to.
        weights_sha256: of the weights when the work was planned.
        seed: of random weights.
        batch_size: the most images at a time.
        precision: of the network.
    """
    import torch  # which `--help` must not wait for

    from softmax_temperature.networks.backbones.loading import load_backbone
    from softmax_temperature.networks.embeddings import extract, write_embeddings
    from softmax_temperature.runner.artifacts import write_json, write_text

    pretrained = job.inputs["weights"].path(WEIGHTS) if "weights" in job.inputs else None
    backbone = load_backbone(Backbone.model_validate(spec), root=Path(weights_root), seed=seed, pretrained=pretrained)
    if weights_sha256 != backbone.provenance["weights_sha256"]:
        raise InputError("the weights changed during the run", where=spec["architecture"], remedy="Run it again.")
    with open_shard(Path(root), name, shard) as images:
        parts, labels = divided(images.names), torch.tensor(images.labels)
        counted = _Counted(job, images, batch_size)

        def embed(split: SplitName) -> Iterator[Tensor]:
            batches, where = counted.batches(parts[split]), f"{Path(root) / name}: {split}"
            return extract(
                backbone.network, backbone.preprocess, batches, device=job.device, precision=precision, where=where
            )

        rows = {split: (labels[part], torch.tensor(part)) for split, part in parts.items()}
        about = {"dataset": name, "precision": precision, "split": RULE}
        write_embeddings(job.output, rows, embed, backbone.provenance | about)
        write_text(job.output / NAMES, "".join(f"{image}\n" for image in images.names))
        write_json(job.output / COUNTS, {split: Counter(found.tolist()) for split, (found, _) in rows.items()})


class _Counted:
    """The images of a shard, part by part, counted for the display of progress."""

    def __init__(self, job: Job, images: ShardImages, size: int) -> None:
        self._job, self._images, self._size, self._done = job, images, size, 0

    def batches(self, rows: list[int]) -> Iterator[Tensor | list[Tensor]]:
        from softmax_temperature.shards.images import batches

        for batch in batches(self._images, rows, self._size):
            yield batch
            self._done += len(batch)
            self._job.progress(self._done, len(self._images.names))
