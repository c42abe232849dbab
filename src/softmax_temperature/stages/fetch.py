"""The stage `fetch`: find, check, split and store each data set for later stages."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from softmax_temperature.data.division import Rules
from softmax_temperature.data.prepare import prepare
from softmax_temperature.data.raw import joined
from softmax_temperature.data.sources import find_dataset, source_digest
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import digest_of_text
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages import stage


@stage
def fetch(params: Params) -> Iterator[Cell]:
    """Yield one cell per data set, except for data sets that only unused papers name.

    If a data set has an error, its cell reports the error.
    """
    root = Path(params.data.root)
    for name, dataset in params.datasets_to_prepare().items():
        source = dataset.source or name
        sources = source if isinstance(source, list) else [source]
        fraction = dataset.validation_fraction or params.fetch.validation_fraction
        plan = dataset.model_dump() | {
            "source": sources,
            "dataset": name,
            "validation_fraction": fraction,
            "image_size_limit": params.fetch.image_size_limit,
            "archive": _digest_to_plan(sources, root),
            # Use the project's seed, so that a data set is the same in every stage.
            "seed": params.seed,
        }
        yield Cell(name, _fetch, plan, places=params.data.model_dump())


def sources_digest(sources: list[str], root: Path) -> str | None:
    """Compute one digest over the files of all `sources`; None if there are no files.

    Raises:
        InputError: If class folders have a wrong form, or a file cannot be read.
    """
    digests = [source_digest(source, root=root) for source in sources]
    present = [digest for digest in digests if digest]
    if not present:
        return None
    if len(present) == 1:
        return present[0]
    return digest_of_text("".join(present))


def _digest_to_plan(sources: list[str], root: Path) -> str | None:
    """Compute the digest of the files of all `sources`, for the cell's plan.

    Returns None if no source has files, or if a source is invalid. The cell then
    reports the error.
    """
    with suppress(InputError):
        return sources_digest(sources, root)
    return None


def _fetch(
    job: Job,
    *,
    source: list[str],
    dataset: str,
    root: str,
    archive: str | None,
    download: bool,
    **rules: Any,
) -> None:
    """Join the data sets in `source`, and prepare the result as `dataset`.

    `archive` is the digest of the files that the data sets are read from.
    """
    seed = rules["seed"]
    parts = [
        find_dataset(name, root=Path(root), download=download, seed=seed)
        for name in source
    ]
    raw = joined(parts)
    if rules.pop("pool"):
        if raw.form == "images":
            what = "applies to texts only; images keep their source's parts"
            where = f"datasets.{dataset}.pool"
            raise InputError(what, where=where, remedy="Remove it.")
        raw = raw.pooled()
    prepare(
        raw,
        Rules(**rules),
        root=Path(root),
        output=job.output,
        name=dataset,
        source_sha256=archive,
    )
