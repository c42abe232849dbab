"""Stage embed: every image of a prepared data set through every backbone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softmax_temperature.data.prepared import open_prepared
from softmax_temperature.networks.backbones.weights import locate_weights
from softmax_temperature.params.backbone import Backbone
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.folders import BACKBONES, EMBEDDINGS, PREPARED
from softmax_temperature.runner.jobs import Cell, Job, seed_of

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.data.prepared import PreparedData
    from softmax_temperature.data.splits import SplitName
    from softmax_temperature.networks.embeddings import Precision
    from softmax_temperature.params import Params

OUTPUT = EMBEDDINGS
WEIGHTS = "weights.safetensors"


def cells(params: Params) -> list[Cell]:
    """One cell per data set and backbone; weights that are not there are fetched, or refused, now.

    Raises:
        InputError: weights are missing, cannot be fetched, or are not whole.
    """
    pairs = params.embedded_pairs()
    weights = {name: _weights(params, name) for name in dict.fromkeys(name for _, name in pairs)}
    return [_cell(params, dataset, name, weights[name]) for dataset, name in pairs]


def _weights(params: Params, name: str) -> str | None:
    """The sha256 of a backbone's weights file, if it has one."""
    path = locate_weights(params.backbones[name], root=Path(params.data.root), download=params.data.download)
    return digest_of_file(path) if path else None


def _cell(params: Params, dataset: str, name: str, weights_sha256: str | None) -> Cell:
    spec = params.backbones[name]
    parameters = {
        "backbone": name,
        "spec": spec.model_dump(),
        "root": params.data.root,
        "weights_sha256": weights_sha256,
        # One for all data sets: an untrained backbone is the same network on each.
        "seed": seed_of(params.seed, "backbones", name),
        "batch_size": params.embed.batch_size,
        "precision": params.embed.precision,
    }
    inputs = {"images": PREPARED / dataset}
    if spec.weights == "pretrain":
        inputs["weights"] = BACKBONES / name
    return Cell(f"{dataset}/{name}", run, parameters, inputs)


def run(
    job: Job,
    *,
    backbone: str,
    spec: dict[str, Any],
    root: str,
    weights_sha256: str | None,
    seed: int,
    batch_size: int,
    precision: Precision,
) -> None:
    """Embed one data set with one backbone; writes `embeddings.safetensors` and `provenance.json`.

    Args:
        job: reads the artifacts "images" and, for weights of the stage pretrain, "weights".
        backbone: its name in the parameters.
        spec: what it is, as JSON.
        root: the folder of the user's files.
        weights_sha256: of the file of its weights when the cell was planned; None when there is no such file.
        seed: of random weights.
        batch_size: images at a time.
        precision: of the network.
    """
    from softmax_temperature.networks.backbones.loading import load_backbone  # torch, which `--help` must not wait for
    from softmax_temperature.networks.embeddings import extract, write_embeddings

    images = open_prepared(job.inputs["images"], root=Path(root))
    pretrained = job.inputs["weights"].path(WEIGHTS) if "weights" in job.inputs else None
    loaded = load_backbone(Backbone.model_validate(spec), root=Path(root), seed=seed, pretrained=pretrained)
    if weights_sha256 not in (None, loaded.provenance["weights_sha256"]):
        raise InputError("the weights changed during the run", where=f"backbones.{backbone}", remedy="Run it again.")
    batches = _Counted(job, images, batch_size)

    def embed(split: SplitName) -> Iterator[Tensor]:
        where = f"{images.name}/{split} with {backbone}"
        network, preprocess, _ = loaded
        return extract(network, preprocess, batches.of(split), device=job.device, precision=precision, where=where)

    rows = {split: (images.labels(split), images.index(split)) for split in images.splits}
    about = {"dataset": images.name, "backbone": backbone, "precision": precision}
    write_embeddings(job.output, rows, embed, loaded.provenance | about)


class _Counted:
    """The images of a data set, split by split, counted for the display of progress."""

    def __init__(self, job: Job, images: PreparedData, batch_size: int) -> None:
        self.job, self.images, self.batch_size = job, images, batch_size
        self.done, self.total = 0, sum(images.size(split) for split in images.splits)

    def of(self, split: SplitName) -> Iterator[Tensor | list[Tensor]]:
        for batch in self.images.batches(split, self.batch_size):
            yield batch
            self.done += len(batch)
            self.job.progress(self.done, self.total)
