"""The stage `fetch`: find each data set, check it, split it, and store it in the form that later stages read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from softmax_temperature.data.prepare import Rules, prepare
from softmax_temperature.data.raw import joined
from softmax_temperature.data.sources import check_known, find_archive, find_dataset
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import digest_of_text
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.folders import PREPARED

PAPER = None
OUTPUT = PREPARED


def cells(params: Params) -> list[Cell]:
    """One cell per data set, named by it; the digest of the user's archive is among its parameters.

    Raises:
        InputError: a name is that of no data set. What else one of them lacks is an error of its cell.
    """
    return [_cell(params, name) for name in params.datasets]


def _cell(params: Params, dataset: str) -> Cell:
    root, limits = Path(params.data.root), params.datasets[dataset]
    sources = [limits.source or dataset] if not isinstance(limits.source, list) else limits.source
    for source in sources:
        check_known(source, root=root)
    parameters = {
        "dataset": dataset,
        "sources": sources,
        "root": params.data.root,
        "archive": _archive_digest(sources, root),
        "download": params.data.download,
        **limits.model_dump(exclude={"source"}),
        "validation_fraction": limits.validation_fraction or params.fetch.validation_fraction,
        "image_size_limit": params.fetch.image_size_limit,
        "seed": params.seed,
    }
    return Cell(dataset, run, parameters)


def _archive_digest(sources: list[str], root: Path) -> str | None:
    """None without an archive, and for class folders that are not of the right form: the cell will say so."""
    try:
        digests = [archive.digest() for source in sources if (archive := find_archive(source, root=root))]
    except InputError:
        return None
    return digest_of_text("".join(digests)) if len(digests) > 1 else next(iter(digests), None)


def run(
    job: Job,
    *,
    dataset: str,
    sources: list[str],
    root: str,
    archive: str | None,
    download: bool,
    seed: int,
    pool: bool,
    **limits: Any,
) -> None:
    """Prepare the data sets `sources` as one under the name `dataset`; `limits` are the other fields of `Rules`.

    `seed` is the project's, not the cell's, so that a data set is the same in every stage that names it.

    Raises:
        InputError: the data set is missing or not of the right form, or a limit leaves too little of it.
    """
    raw = joined([find_dataset(source, root=Path(root), download=download, seed=seed) for source in sources])
    if pool and raw.form == "images":
        what = "is for texts: images keep their source's parts"
        raise InputError(what, where=f"datasets.{dataset}.pool", remedy="Leave it out.")
    raw, rules = raw.pooled() if pool else raw, Rules(**limits, seed=seed)
    prepare(raw, rules, root=Path(root), output=job.output, name=dataset, source_sha256=archive)
