"""Stage embed: every image of a prepared data set through every backbone."""

from collections.abc import Iterator
from pathlib import Path

from torch import Tensor

from softmax_temperature.data.prepared import open_prepared
from softmax_temperature.data.seeds import seed_of
from softmax_temperature.data.splits import SplitName
from softmax_temperature.networks.backbones.loading import load_backbone, locate_weights
from softmax_temperature.networks.embeddings import extract, write_embeddings
from softmax_temperature.params import Params
from softmax_temperature.params.network import Backbone
from softmax_temperature.params.shared import Embed
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.cells import Cell, Job
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
    """One cell per data set and backbone; weights that are missing are fetched now, or refused by an InputError."""
    pairs = params.embedded_pairs()
    plans = {name: _plan(params, name) for name in dict.fromkeys(name for _, name in pairs)}
    weights = {name: {"weights": BACKBONES / name} for name, plan in plans.items() if plan.spec.weights == "pretrain"}
    return [
        Cell(f"{data}/{name}", run, plans[name], {"images": PREPARED / data, **weights.get(name, {})}, gpu_share=1.0)
        for data, name in pairs
    ]


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


def run(job: Job, plan: EmbedCell) -> None:
    """Embed one data set with one backbone; writes the files of `write_embeddings`."""
    images = open_prepared(job.inputs["images"], root=Path(plan.root))
    pretrained = job.inputs["weights"].path(WEIGHTS) if "weights" in job.inputs else None
    loaded = load_backbone(plan.spec, root=Path(plan.root), seed=plan.seed, pretrained=pretrained)
    if plan.weights_sha256 not in (None, loaded.provenance["weights_sha256"]):
        where = f"backbones.{plan.backbone}"
        raise InputError("the weights changed during the run", where=where, remedy="Run it again.")
    precision = resolve_precision(plan.precision, job.device)
    done, total = 0, sum(len(images.labels(split)) for split in images.splits)

    def embed(split: SplitName) -> Iterator[Tensor]:
        nonlocal done
        where, batches = f"{images.name}/{split} with {plan.backbone}", images.batches(split, plan.batch_size)
        how = {"device": job.device, "precision": precision, "where": where}
        for batch in extract(loaded.network, loaded.preprocess, batches, **how):  # type: ignore[arg-type]
            yield batch
            done += len(batch)
            job.progress(done, total)

    rows = {split: (images.labels(split), images.index(split)) for split in images.splits}
    about = {"dataset": images.name, "backbone": plan.backbone, "precision": precision}
    write_embeddings(job.output, rows, embed, loaded.provenance | about)
