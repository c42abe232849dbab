"""Digests of the user's files that each program reads, which DVC's stages depend on.

DVC would have to hash all of data.root, which may hold much that no cell reads and need
not exist. So the stage `inputs`, which always runs, lists exactly the files that the
parameters name, with the digests that are in the cells' fingerprints too.
"""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from softmax_temperature.data.gaussian_noise import archive_digest
from softmax_temperature.data.image_files import digest_of_user_file
from softmax_temperature.data.segmentation import segmentation_digest
from softmax_temperature.data.sources import is_built_in, source_digest
from softmax_temperature.data.translation import translation_digest
from softmax_temperature.networks.weights import locate_weights
from softmax_temperature.params import Params
from softmax_temperature.params.network import Backbone
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.errors import InputError

INPUTS = Path("data/inputs")
MISSING = "missing"
BUILT_IN = "built in"

Digest = Callable[[], str | None]
"""Computes a sha256; None if the file is missing. Raises InputError if it is wrong."""
Digests = dict[str, str]
"""By data set or file: a sha256, "missing", "built in", or the fault of the files."""


def input_digests(params: Params) -> dict[str, Digests]:
    """The digests of all files that the programs read, by the program's name."""
    programs: dict[str, Mapping[str, Digest]] = {
        "fetch": _data_sets(params),
        "embed": _weights(params),
        "train_focal": _focal_files(params),
        "train_cooling": _scenes(params),
    }
    return {
        program: {name: _shown(digest) for name, digest in items.items()}
        for program, items in programs.items()
    }


def write_inputs(params: Params) -> list[str]:
    """Write the digests, a file for each program; returns the items that changed."""
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


def _shown(digest: Digest) -> str:
    try:
        return digest() or MISSING
    except InputError as error:
        # The cell that reads the files reports it. Mended files are another text.
        return f"{error.where}: {error.what}"


def _data_sets(params: Params) -> dict[str, Digest]:
    root = Path(params.data.root)
    items: dict[str, Digest] = {}
    for name, dataset in params.datasets_to_prepare().items():
        source = dataset.source or name
        for source_name in source if isinstance(source, list) else [source]:
            # With its own name, so that `fetch` starts for a data set more or less.
            item = name if source_name == name else f"{name} ({source_name})"
            items[item] = partial(_data_set, source_name, root)
    return items


def _data_set(name: str, root: Path) -> str | None:
    return BUILT_IN if is_built_in(name) else source_digest(name, root=root)


def _weights(params: Params) -> dict[str, Digest]:
    root = Path(params.data.root)
    items: dict[str, Digest] = {}
    if "classifier_temperature" in params.papers:
        for name in params.classifier_temperature.backbones:
            backbone = params.backbones[name]
            if backbone.weights in ("file", "hub", "package"):
                items[name] = partial(_digest_of_weights, backbone, root)
    return items


def _digest_of_weights(backbone: Backbone, root: Path) -> str | None:
    if backbone.file is not None:
        return _digest_of_file(root / backbone.file)
    path = locate_weights(backbone, root=root, download=False)
    return _digest_of_file(path) if path else None


def _digest_of_file(path: Path) -> str | None:
    return digest_of_user_file(path) if path.is_file() else None


def _focal_files(params: Params) -> dict[str, Digest]:
    root = Path(params.data.root)
    items: dict[str, Digest] = {}
    if "focal" not in params.papers:
        return items
    for task in params.focal.tasks.values():
        if task.embeddings:
            file = task.embeddings.file
            items[file] = partial(_digest_of_file, root / file)
        source = params.datasets[task.dataset].source or task.dataset
        if task.gaussian_noise and source == "cifar10":
            items["CIFAR-10-C"] = partial(archive_digest, root)
    translation = params.focal.translation
    if translation:
        languages = (translation.source, translation.target)
        items[translation.dataset] = partial(
            _digest_of_pairs, translation.dataset, languages, root
        )
    return items


def _digest_of_pairs(name: str, languages: tuple[str, str], root: Path) -> str:
    return translation_digest(name, languages, root=root) or BUILT_IN


def _scenes(params: Params) -> dict[str, Digest]:
    segmentation = params.cooling.segmentation
    if "cooling" not in params.papers or segmentation is None:
        return {}
    name = segmentation.dataset
    return {name: partial(_digest_of_scenes, name, Path(params.data.root))}


def _digest_of_scenes(name: str, root: Path) -> str:
    return segmentation_digest(name, root=root) or BUILT_IN
