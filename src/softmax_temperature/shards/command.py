"""The command `embed`: what the user says, as the runner takes it, and what the user is told."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from softmax_temperature.params.shared import Compute
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.reading import read_yaml
from softmax_temperature.shards.embedding import Extraction, embed_data_set
from softmax_temperature.tools.suggest.choice import choose

if TYPE_CHECKING:
    from collections.abc import Mapping

    from softmax_temperature.tools.suggest.choice import Wish

_DEFAULTS = {
    "engine": "processes",
    "workers": 1,
    "threads_per_cell": 1,
    "device": "auto",
    "checkpoint_seconds": 60.0,
    "ray_address": None,
    "gpus_per_cell": 0.0,
}
"""Where there is no parameter file."""


def embed_for_user(
    source: Path, wish: Wish, output: Path, *, options: Mapping[str, Any], extraction: Extraction
) -> dict[str, Any]:
    """Embed a data set with the backbone that a user names; returns what `embed_data_set` does.

    Args:
        source: the data set.
        wish: the backbone, and the parameter file.
        output: the folder to fill.
        options: entries of the section `compute` that take the place of the file's; None for those not given.
        extraction: all else.

    Raises:
        InputError: something is not as it should be.
    """
    compute = compute_of(wish.params, options)
    return embed_data_set(source, choose(wish), output, compute=compute, extraction=extraction)


def compute_of(params: Path, options: Mapping[str, Any]) -> Compute:
    """How to run: what the parameter file says, if it is there, but for the options that were given.

    Raises:
        InputError: the file or an option is not as it should be.
    """
    section = read_yaml(params, kind="safe") if params.is_file() else {}
    said = section.get("compute", {}) if isinstance(section, dict) else {}
    if not isinstance(said, dict):
        raise InputError("is no section", where=f"{params}: compute", remedy="Apply a profile again.")
    given = {name: value for name, value in options.items() if value is not None}
    try:
        return Compute.model_validate({**_DEFAULTS, **said, **given})
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        where = f"--{name}" if name in given else f"{params}: compute.{name}"
        raise InputError(f"is {first['input']!r}: {first['msg'].lower()}", where=where, remedy="Correct it.") from error


def summary(found: dict[str, Any]) -> str:
    """What was written, for a person."""
    rows = found["rows"]
    return (
        f"{rows['train'] + rows['test']:,} images of {found['classes']:,} classes in {found['shards']:,} shards, as "
        f"{found['dim']:,} numbers each; {rows['test']:,} are held out to test on.\n"
        f"Written to {found['folder']}. Next: softmax-temperature suggest {found['folder']} --verify"
    )
