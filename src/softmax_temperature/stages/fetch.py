"""Stage fetch: find each data set, check it, split it, and store it in the form that
later stages read.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from softmax_temperature.data.division import Rules
from softmax_temperature.data.prepare import prepare
from softmax_temperature.data.raw import joined
from softmax_temperature.data.sources import check_known, find_archive, find_dataset
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import digest_of_text
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.errors import InputError
from softmax_temperature.stages import PREPARED, stage


@stage(None, PREPARED)
def fetch(params: Params) -> Iterator[Cell]:
    """One cell per data set; an unknown name is an InputError, any other fault an error
    of its cell.
    """
    root = Path(params.data.root)
    for name, own in params.datasets.items():
        sources = own.source if isinstance(own.source, list) else [own.source or name]
        for source in sources:
            check_known(source, root=root)
        plan = (
            own.model_dump()
            | params.data.model_dump()
            | {"source": sources, "dataset": name}
        )
        plan["validation_fraction"] = (
            own.validation_fraction or params.fetch.validation_fraction
        )
        plan |= {
            "image_size_limit": params.fetch.image_size_limit,
            "archive": _archive_digest(sources, root),
        }
        # The project's seed, so that a data set is the same in every stage that names
        # it.
        yield Cell(name, _fetch, plan | {"seed": params.seed})


def _archive_digest(sources: list[str], root: Path) -> str | None:
    """None without an archive, and for class folders that are not of the right form:
    the cell will say so.
    """
    try:
        digests = [
            archive.digest()
            for source in sources
            if (archive := find_archive(source, root=root))
        ]
    except InputError:
        return None
    return (
        digest_of_text("".join(digests))
        if len(digests) > 1
        else next(iter(digests), None)
    )


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
    """Prepare the data sets in `source`, joined, as `dataset`; `archive` is the digest
    of the user's.
    """
    raw = joined(
        [
            find_dataset(name, root=Path(root), download=download, seed=rules["seed"])
            for name in source
        ]
    )
    if rules.pop("pool"):
        if raw.form == "images":
            what = "is for texts: images keep their source's parts"
            raise InputError(
                what, where=f"datasets.{dataset}.pool", remedy="Leave it out."
            )
        raw = raw.pooled()
    prepare(
        raw,
        Rules(**rules),
        root=Path(root),
        output=job.output,
        name=dataset,
        source_sha256=archive,
    )
