"""Embed a data set of any size: its shards are cells of the pipeline's own runner; an index is written last."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softmax_temperature.runner.cells import Cell, CellsFailed, run_cells
from softmax_temperature.runner.errors import InputError, disk_faults
from softmax_temperature.runner.folders import BACKBONES
from softmax_temperature.shards.embed_shard import run
from softmax_temperature.shards.index import INDEX, SHARDS, write_index
from softmax_temperature.shards.source import find_source

if TYPE_CHECKING:
    from softmax_temperature.networks.embeddings import Precision
    from softmax_temperature.params import Compute
    from softmax_temperature.shards.source import Source
    from softmax_temperature.tools.suggest.choice import Choice

BATCH_SIZE = 64
IMAGES_PER_SHARD = 10_000
_WORK = "work"


@dataclass(frozen=True)
class Extraction:
    """How images become embeddings.

    Attributes:
        batch_size: the most images at a time in a worker.
        images_per_shard: of class folders; a tar file is one shard.
        precision: of the network.
    """

    batch_size: int = BATCH_SIZE
    images_per_shard: int = IMAGES_PER_SHARD
    precision: Precision = "float32"

    def __post_init__(self) -> None:
        for option in ("batch_size", "images_per_shard"):
            if (value := getattr(self, option)) < 1:
                raise InputError(f"is {value}", where=f"--{option.replace('_', '-')}", remedy="Give at least 1.")


def embed_data_set(
    source: Path, choice: Choice, output: Path, *, compute: Compute, extraction: Extraction
) -> dict[str, Any]:
    """Embed every image of a data set.

    A run that was interrupted, however, and is started again makes the shards that are missing, and ends with the same
    bytes. Each worker holds one batch of images, not a shard.

    Args:
        source: see `source.find_source`.
        choice: the backbone.
        output: the folder to fill; see `index`.
        compute: engine, workers, device.
        extraction: all else.

    Returns:
        JSON values: `folder`, `shards`, `rows` ("train" and "test"), `classes`, `dim` and `backbone`.

    Raises:
        InputError: the data set, an image or the backbone is not as it should be; or the place cannot be written.
    """
    _refuse_other_folder(output)
    found = find_source(source, images_per_shard=extraction.images_per_shard)
    cells = _cells(found, choice, extraction)
    with disk_faults(output):
        try:
            run_cells(cells, output=output / SHARDS, compute=compute, seed=choice.seed)
        except CellsFailed as error:
            raise _as_one_line(error, len(cells)) from error
        index = write_index(output, list(found.shards), found.class_names)
    return {
        "folder": str(output),
        "shards": len(index.shards),
        "rows": {split: sum(getattr(index, split).values()) for split in ("train", "test")},
        "classes": len(index.train.keys() | index.test.keys()),
        "dim": index.dim,
        "backbone": index.backbone,
    }


def _cells(source: Source, choice: Choice, extraction: Extraction) -> list[Cell]:
    parameters = {
        "root": str(source.root),
        "spec": choice.spec.model_dump(),
        "weights_root": str(choice.root),
        "weights_sha256": choice.load().provenance["weights_sha256"],
        "seed": choice.seed,
        "batch_size": extraction.batch_size,
        "precision": extraction.precision,
    }
    inputs = {"weights": BACKBONES / choice.name} if choice.spec.weights == "pretrain" else {}
    return [
        Cell(name, run, {**parameters, "name": name, "shard": shard}, inputs) for name, shard in source.shards.items()
    ]


def _refuse_other_folder(output: Path) -> None:
    """What stands where the shards shall stand is replaced, so it must be ours."""
    ours = (output / INDEX).is_file() or (output / _WORK / SHARDS).is_dir()
    if (output / SHARDS).exists() and not ours:
        what = "is there, and was not made by this command"
        raise InputError(what, where=str(output / SHARDS), remedy="Choose another folder to write to.")


def _as_one_line(error: CellsFailed, total: int) -> InputError:
    (name, reason), count = next(iter(error.failures.items())), len(error.failures)
    what = f"{count} of {total} shards were not embedded, the others are kept; {name}: {' '.join(reason.split())}"
    return InputError(what.rstrip("."), where="embed", remedy="Then run the same command again.")
