"""Stage embed: every image of a prepared data set through every backbone."""

from collections.abc import Iterator
from pathlib import Path

from torch import Tensor

from softmax_temperature.data.prepared import PreparedData, open_prepared
from softmax_temperature.data.splits import SplitName
from softmax_temperature.networks.backbones.loading import load_backbone, locate_weights
from softmax_temperature.networks.embeddings import extract, write_embeddings
from softmax_temperature.params import Params
from softmax_temperature.params.backbone import Backbone
from softmax_temperature.params.shared import Embed
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.cells import Cell, Job, seed_of
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.folders import BACKBONES, EMBEDDINGS, PREPARED
from softmax_temperature.runner.machine import resolve_precision

PAPER = "classifier_temperature"
OUTPUT = EMBEDDINGS
WEIGHTS = "weights.safetensors"


class EmbedCell(Embed):
    """What a cell is given; `weights_sha256` is that of the backbone's weights file, if it has one."""

    backbone: str
    spec: Backbone
    root: str
    weights_sha256: str | None
    seed: int


def cells(params: Params) -> list[Cell]:
    """One cell per data set and backbone; missing weights are fetched, or refused, now.

    Raises:
        InputError: weights are missing, cannot be fetched, or are damaged.
    """
    pairs = params.embedded_pairs()
    plans = {name: _plan(params, name) for name in dict.fromkeys(name for _, name in pairs)}
    return [_cell(dataset, plans[name]) for dataset, name in pairs]


def _plan(params: Params, name: str) -> EmbedCell:
    path = locate_weights(params.backbones[name], root=Path(params.data.root), download=params.data.download)
    return EmbedCell(
        backbone=name,
        spec=params.backbones[name],
        root=params.data.root,
        weights_sha256=digest_of_file(path) if path else None,
        # One for all data sets: an untrained backbone is the same network on each.
        seed=seed_of(params.seed, "backbones", name),
        **params.embed.model_dump(),
    )


def _cell(dataset: str, plan: EmbedCell) -> Cell:
    inputs = {"images": PREPARED / dataset}
    if plan.spec.weights == "pretrain":
        inputs["weights"] = BACKBONES / plan.backbone
    return Cell(f"{dataset}/{plan.backbone}", run, plan, inputs, gpu_share=1.0)


def run(job: Job, plan: EmbedCell) -> None:
    """Embed one data set with one backbone; writes `embeddings.safetensors` and `provenance.json`."""
    images = open_prepared(job.inputs["images"], root=Path(plan.root))
    pretrained = job.inputs["weights"].path(WEIGHTS) if "weights" in job.inputs else None
    loaded = load_backbone(plan.spec, root=Path(plan.root), seed=plan.seed, pretrained=pretrained)
    if plan.weights_sha256 not in (None, loaded.provenance["weights_sha256"]):
        where = f"backbones.{plan.backbone}"
        raise InputError("the weights changed during the run", where=where, remedy="Run it again.")
    batches = _Counted(job, images, plan.batch_size)

    precision = resolve_precision(plan.precision, job.device)

    def embed(split: SplitName) -> Iterator[Tensor]:
        where = f"{images.name}/{split} with {plan.backbone}"
        how = {"device": job.device, "precision": precision, "where": where}
        return extract(loaded.network, loaded.preprocess, batches.of(split), **how)  # type: ignore[arg-type]

    rows = {split: (images.labels(split), images.index(split)) for split in images.splits}
    about = {"dataset": images.name, "backbone": plan.backbone, "precision": precision}
    write_embeddings(job.output, rows, embed, loaded.provenance | about)


class _Counted:
    """The images of a data set, split by split, counted for the display of progress."""

    def __init__(self, job: Job, images: PreparedData, batch_size: int) -> None:
        self.job, self.images, self.batch_size = job, images, batch_size
        self.done, self.total = 0, sum(len(images.labels(split)) for split in images.splits)

    def of(self, split: SplitName) -> Iterator[Tensor | list[Tensor]]:
        for batch in self.images.batches(split, self.batch_size):
            yield batch
            self.done += len(batch)
            self.job.progress(self.done, self.total)
