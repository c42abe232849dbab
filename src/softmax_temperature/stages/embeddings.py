"""Stage embed: all images through all backbones."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor

from softmax_temperature.data.prepared import open_prepared
from softmax_temperature.data.seeds import seed_of
from softmax_temperature.data.splits import SplitName
from softmax_temperature.networks.backbones import load_backbone
from softmax_temperature.networks.embeddings import extract, write_embeddings
from softmax_temperature.networks.registry import WEIGHTS
from softmax_temperature.networks.weights import locate_weights
from softmax_temperature.params import Params
from softmax_temperature.params.network import Backbone
from softmax_temperature.params.shared import Embed
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.machine import resolve_precision
from softmax_temperature.stages import BACKBONES, EMBEDDINGS, PREPARED, stage


@stage("classifier_temperature", EMBEDDINGS)
def embed(params: Params) -> Iterator[Cell]:
    """One cell per data set and backbone; weights that are missing are fetched now, or
    refused by an InputError.
    """
    digests: dict[str, str | None] = {}
    for data, name in params.embedded_pairs():
        spec, root = params.backbones[name], params.data.root
        if name not in digests:
            path = locate_weights(spec, root=Path(root), download=params.data.download)
            digests[name] = digest_of_file(path) if path else None
        plan = {
            "backbone": name,
            "spec": spec,
            "how": params.embed,
            "root": root,
            "weights_sha256": digests[name],
        }
        # One seed for all data sets: an untrained backbone is the same network on each.
        plan["seed"] = seed_of(params.seed, "backbones", name)
        weights = {"weights": BACKBONES / name} if spec.weights == "pretrain" else {}
        yield Cell(
            f"{data}/{name}",
            _embed,
            plan,
            {"images": PREPARED / data, **weights},
            gpu_share=1.0,
        )


def _embed(
    job: Job,
    *,
    backbone: str,
    spec: Backbone,
    how: Embed,
    root: str,
    weights_sha256: str | None,
    seed: int,
) -> None:
    """Embed one data set with one backbone; writes the files of `write_embeddings`."""
    images = open_prepared(job.inputs["images"], root=Path(root))
    pretrained = (
        job.inputs["weights"].path(WEIGHTS) if "weights" in job.inputs else None
    )
    network, preprocess, provenance = load_backbone(
        spec, root=Path(root), seed=seed, pretrained=pretrained
    )
    if weights_sha256 not in (None, provenance["weights_sha256"]):
        where = f"backbones.{backbone}"
        raise InputError(
            "the weights changed during the run", where=where, remedy="Run it again."
        )
    precision = resolve_precision(how.precision, job.device)
    done, total = 0, sum(len(images.labels(split)) for split in images.splits)

    def embeddings(split: SplitName) -> Iterator[Tensor]:
        nonlocal done
        options: Any = {
            "device": job.device,
            "precision": precision,
            "where": f"{images.name}/{split} with {backbone}",
        }
        for batch in extract(
            network, preprocess, images.batches(split, how.batch_size), **options
        ):
            yield batch
            done += len(batch)
            job.progress(done, total)

    rows = {
        split: (images.labels(split), images.index(split)) for split in images.splits
    }
    about = {"dataset": images.name, "backbone": backbone, "precision": precision}
    write_embeddings(job.output, rows, embeddings, provenance | about)
