"""Digests of the user's files that each program reads, as dependencies of DVC's stages.

If stages depended on data.root itself, DVC would hash all of it, though it may be
missing or hold many files that no cell reads. So the stage `inputs`, which always runs,
lists exactly the files that the parameters name, with the digests that are in the
cells' fingerprints.
"""

import json
from contextlib import suppress
from pathlib import Path

from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.errors import InputError, MissingInput
from softmax_temperature.stages.inputs import Item, input_items

INPUTS = Path("data/inputs")
MISSING = "missing"
PROGRAMS = ("fetch", "embed", "train_focal", "train_cooling")
"""The programs in `pipeline/` that read the user's files."""

Digests = dict[str, str]
"""Maps each item to a sha256, "missing", "built in", or an error message about its
files.
"""


def input_digests(params: Params) -> dict[str, Digests]:
    """The digests of all files that the programs read, keyed by program."""
    digests: dict[str, Digests] = {program: {} for program in PROGRAMS}
    for item in input_items(params):
        digests[item.program][item.name] = _shown(item)
    return digests


def write_inputs(params: Params) -> list[str]:
    """Write one file of digests per program, and return the items that changed."""
    changed = []
    for program, digests in input_digests(params).items():
        path = INPUTS / f"{program}.json"
        before = _read(path)
        if before == digests:
            continue
        write_json(path, digests)
        if before is not None:
            names = sorted({*before, *digests})
            changed += [name for name in names if before.get(name) != digests.get(name)]
    return changed


def _read(path: Path) -> Digests | None:
    """The digests in a file; None if it is missing or damaged."""
    with suppress(OSError, ValueError, TypeError):
        return dict(json.loads(path.read_text(encoding="utf-8")))
    return None


def _shown(item: Item) -> str:
    try:
        return item.digest() or MISSING
    except MissingInput:
        return MISSING
    except InputError as error:
        # The cell that reads the files will report this error. Return the error's text
        # as the digest: it changes when the files are repaired, so that DVC runs the
        # stage again.
        return f"{error.where}: {error.what}"
