"""The stage `fetch`: find each data set, check it, split it, and store it in the form that later stages read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from softmax_temperature.data.division import Rules
from softmax_temperature.data.prepare import prepare
from softmax_temperature.data.sources import check_known, find_archive, find_dataset
from softmax_temperature.params import Params
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.errors import InputError, nearest
from softmax_temperature.runner.folders import PREPARED

PAPER = None
OUTPUT = PREPARED


def _cell(params: Params, dataset: str) -> Cell:
    """The one cell of a data set; the digest of the user's archive is among its parameters.

    Raises:
        InputError: no data set has this name, or its archive is not readable.
    """
    root = Path(params.data.root)
    if dataset not in params.datasets:
        raise InputError(f"no entry {dataset!r}", where="datasets", remedy=nearest(dataset, params.datasets))
    limits = params.datasets[dataset]
    source = limits.source or dataset
    check_known(source, root=root)
    archive = find_archive(source, root=root)
    parameters = {
        "dataset": dataset,
        "source": source,
        "root": params.data.root,
        "archive": archive.digest() if archive else None,
        "download": params.data.download,
        "train_limit": limits.train_limit,
        "test_limit": limits.test_limit,
        "class_limit": limits.class_limit,
        "validation_fraction": limits.validation_fraction or params.fetch.validation_fraction,
        "image_size_limit": params.fetch.image_size_limit,
        "seed": params.seed,
        # Only where it is asked for: what was prepared without it stays as it is.
        **({"pool": True} if limits.pool else {}),
    }
    return Cell(dataset, run, parameters)


def cells(params: Params) -> list[Cell]:
    """One cell per data set."""
    return [_cell(params, name) for name in params.datasets]


def run(
    job: Job,
    *,
    dataset: str,
    source: str,
    root: str,
    archive: str | None,
    download: bool,
    seed: int,
    pool: bool = False,
    **limits: Any,
) -> None:
    """Prepare the data set `source` under the name `dataset`; `limits` are the other fields of `Rules`.

    `seed` is the project's, not the cell's, so that a data set is the same in every stage that names it.

    Raises:
        InputError: the data set is missing or not of the right form, a limit leaves too little of it, or its parts
            cannot be put together.
    """
    rules = Rules(**limits, seed=seed)
    raw = find_dataset(source, root=Path(root), download=download, seed=seed)
    if pool and raw.form == "images":
        where, remedy = f"datasets.{dataset}.pool", "Leave it out."
        raise InputError("is for texts: images keep their source's parts", where=where, remedy=remedy)
    raw = raw.pooled() if pool else raw
    prepare(raw, rules, root=Path(root), output=job.output, name=dataset, source_sha256=archive)
