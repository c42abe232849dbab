"""The stage `fetch`: find each data set, check it, split it, and store it in the form that later stages read."""

from dataclasses import fields
from pathlib import Path

from softmax_temperature.data.prepare import Rules, prepare
from softmax_temperature.data.sources import check_known, find_archive, find_dataset
from softmax_temperature.data.splits import joined
from softmax_temperature.params import Params
from softmax_temperature.params.shared import Dataset
from softmax_temperature.runner.artifacts import digest_of_text
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.folders import PREPARED
from softmax_temperature.runner.section import Fraction

PAPER = None
OUTPUT = PREPARED


class FetchCell(Dataset):
    """What a cell is given: the sets in `source`, joined, become `dataset`.

    `archive` is the digest of the user's archive. `seed` is the project's, so that a data set is the same in every
    stage that names it.
    """

    source: list[str]
    validation_fraction: Fraction
    image_size_limit: int | None
    dataset: str
    root: str
    archive: str | None
    download: bool
    seed: int


def cells(params: Params) -> list[Cell]:
    """One cell per data set; the name of none is an InputError, what else one of them lacks an error of its cell."""
    return [Cell(name, run, _plan(params, name)) for name in params.datasets]


def _plan(params: Params, dataset: str) -> FetchCell:
    root, own = Path(params.data.root), params.datasets[dataset]
    sources = own.source if isinstance(own.source, list) else [own.source or dataset]
    for source in sources:
        check_known(source, root=root)
    changes = {"source": sources, "validation_fraction": own.validation_fraction or params.fetch.validation_fraction}
    return FetchCell(
        **own.model_dump() | changes | params.data.model_dump(),
        image_size_limit=params.fetch.image_size_limit,
        dataset=dataset,
        archive=_archive_digest(sources, root),
        seed=params.seed,
    )


def _archive_digest(sources: list[str], root: Path) -> str | None:
    """None without an archive, and for class folders that are not of the right form: the cell will say so."""
    try:
        digests = [archive.digest() for source in sources if (archive := find_archive(source, root=root))]
    except InputError:
        return None
    return digest_of_text("".join(digests)) if len(digests) > 1 else next(iter(digests), None)


def run(job: Job, plan: FetchCell) -> None:
    """Prepare one data set; an InputError if it is missing or malformed, or a limit leaves too little of it."""
    root = Path(plan.root)
    raw = joined([find_dataset(source, root=root, download=plan.download, seed=plan.seed) for source in plan.source])
    if plan.pool and raw.form == "images":
        what = "is for texts: images keep their source's parts"
        raise InputError(what, where=f"datasets.{plan.dataset}.pool", remedy="Leave it out.")
    rules = Rules(**plan.model_dump(include={field.name for field in fields(Rules)}))
    raw = raw.pooled() if plan.pool else raw
    prepare(raw, rules, root=root, output=job.output, name=plan.dataset, source_sha256=plan.archive)
