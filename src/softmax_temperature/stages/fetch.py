"""Stage fetch: find each data set, check it, split it, and store it in the form that later stages read."""

from collections.abc import Iterator
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
from softmax_temperature.stages import stage


class _Plan(Dataset):
    source: list[str]  # These data sets, joined, become `dataset`.
    validation_fraction: Fraction
    image_size_limit: int | None
    dataset: str
    root: str
    archive: str | None  # The digest of the user's archive.
    download: bool
    seed: int  # The project's, so that a data set is the same in every stage that names it.


@stage(None, PREPARED)
def fetch(params: Params) -> Iterator[Cell]:
    """One cell per data set; an unknown name is an InputError, any other fault an error of its cell."""
    root = Path(params.data.root)
    for name, own in params.datasets.items():
        sources = own.source if isinstance(own.source, list) else [own.source or name]
        for source in sources:
            check_known(source, root=root)
        fraction = own.validation_fraction or params.fetch.validation_fraction
        changes = {**params.data.model_dump(), "source": sources, "validation_fraction": fraction}
        changes |= {"image_size_limit": params.fetch.image_size_limit, "archive": _archive_digest(sources, root)}
        yield Cell(name, _fetch, _Plan(**own.model_dump() | changes, dataset=name, seed=params.seed))


def _archive_digest(sources: list[str], root: Path) -> str | None:
    """None without an archive, and for class folders that are not of the right form: the cell will say so."""
    try:
        digests = [archive.digest() for source in sources if (archive := find_archive(source, root=root))]
    except InputError:
        return None
    return digest_of_text("".join(digests)) if len(digests) > 1 else next(iter(digests), None)


def _fetch(job: Job, plan: _Plan) -> None:
    root = Path(plan.root)
    raw = joined([find_dataset(source, root=root, download=plan.download, seed=plan.seed) for source in plan.source])
    if plan.pool and raw.form == "images":
        what = "is for texts: images keep their source's parts"
        raise InputError(what, where=f"datasets.{plan.dataset}.pool", remedy="Leave it out.")
    rules = Rules(**plan.model_dump(include={field.name for field in fields(Rules)}))
    raw = raw.pooled() if plan.pool else raw
    prepare(raw, rules, root=root, output=job.output, name=plan.dataset, source_sha256=plan.archive)
