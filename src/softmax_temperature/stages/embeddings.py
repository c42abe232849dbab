"""The stage `embed`: embed classifier_temperature's data sets with its backbones."""

from collections.abc import Iterator
from contextlib import suppress
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
from softmax_temperature.stages import BACKBONES, PREPARED, stage


@stage
def embed(params: Params) -> Iterator[Cell]:
    """Yield one cell per data set and backbone.

    If a backbone's weights are missing, only the cells of that backbone fail.
    """
    root = params.data.root
    digests: dict[str, str | None] = {}
    for data, name in params.embedded_pairs():
        spec = params.backbones[name]
        if name not in digests:
            digests[name] = _digest_of_weights(spec, Path(root))
        plan = {
            "backbone": name,
            "spec": spec,
            "how": params.embed,
            "weights_sha256": digests[name],
            # Use one seed for all data sets, so that an untrained backbone is the same
            # network in each.
            "seed": seed_of(params.seed, "backbones", name),
        }
        inputs = {"images": PREPARED / data}
        if spec.weights == "pretrain":
            inputs["weights"] = BACKBONES / name
        yield Cell(
            f"{data}/{name}",
            _embed,
            plan,
            inputs,
            gpu_share=1.0,
            places={"root": root},
        )


def _digest_of_weights(spec: Backbone, root: Path) -> str | None:
    with suppress(InputError):
        path = locate_weights(spec, root=root, download=False)
        return digest_of_file(path) if path else None
    return None


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
    """Embed one data set with the backbone `backbone`, and write the embeddings."""
    images = open_prepared(job.inputs["images"], root=Path(root))
    pretrained = None
    if "weights" in job.inputs:
        pretrained = job.inputs["weights"].path(WEIGHTS)
    network, preprocess, provenance = load_backbone(
        spec, root=Path(root), seed=seed, pretrained=pretrained
    )
    if weights_sha256 not in (None, provenance["weights_sha256"]):
        what = "the backbone's weights changed during the run"
        where = f"backbones.{backbone}"
        raise InputError(what, where=where, remedy="Run the stage again.")
    precision: Any = resolve_precision(how.precision, job.device)
    total = sum(len(images.labels(split)) for split in images.splits)
    done = 0

    def embeddings(split: SplitName) -> Iterator[Tensor]:
        nonlocal done
        for batch in extract(
            network,
            preprocess,
            images.batches(split, how.batch_size),
            device=job.device,
            precision=precision,
            where=f"{images.name}/{split} with {backbone}",
        ):
            yield batch
            done += len(batch)
            job.progress(done, total)

    rows = {
        split: (images.labels(split), images.index(split)) for split in images.splits
    }
    about = {"dataset": images.name, "backbone": backbone, "precision": precision}
    write_embeddings(job.output, rows, embeddings, provenance | about)
