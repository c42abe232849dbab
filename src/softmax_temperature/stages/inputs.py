"""The user's files that cells read, and the parameters that the existing files allow.

If `data.download` is true, missing files that a library can download are downloaded.
The files that are still missing are determined before anything runs, and only the cells
that need them are left out: the programs and `plan` take their parameters from
`without_missing`, and `collect` requires only the runs that these parameters declare.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from softmax_temperature.data.gaussian_noise import archive_digest
from softmax_temperature.data.image_files import digest_of_user_file
from softmax_temperature.data.segmentation import require_scenes, segmentation_digest
from softmax_temperature.data.sources import (
    find_dataset,
    is_built_in,
    require_dataset,
    source_digest,
)
from softmax_temperature.data.torchvision_sets import torchvision_names
from softmax_temperature.data.translation import require_pairs, translation_digest
from softmax_temperature.data.word_vectors import require_word_vectors
from softmax_temperature.networks.weights import locate_weights
from softmax_temperature.params import Params
from softmax_temperature.params.classifier_temperature import ClassifierTemperature
from softmax_temperature.params.cooling import Cooling
from softmax_temperature.params.focal import Focal, Task
from softmax_temperature.params.network import Backbone
from softmax_temperature.params.temperature_check import TemperatureCheck
from softmax_temperature.runner.errors import (
    InputError,
    MissingInput,
    NotDownloadedError,
)

BUILT_IN = "built in"
Kind = Literal["data set", "weights", "word vectors", "noise", "translation", "scenes"]


@dataclass(frozen=True)
class Item:
    """A group of the user's files that one program's cells read.

    Attributes:
        kind: The kind of its files, such as "noise".
        key: Its name in the parameters (a data set, a backbone or a file), or
            CIFAR-10-C.
        name: Its name in the lists of digests.
        source: Its name in messages, below data.root and in the catalogue.
        program: The program that reads it.
        digest: Computes the sha256 of the files, or returns `BUILT_IN`; None if no file
            exists. Raises InputError if the files are invalid.
        require: Raises MissingInput if files that cannot be replaced are missing, and
            NotDownloadedError if a library can download them. It searches for files but
            does not read them.
        download: Lets a library download missing files; None if no library can. Raises
            InputError if the download fails.
        check: Reads the existing files of a data set, and raises InputError if they are
            invalid. For other kinds it does nothing.
    """

    kind: Kind
    key: str
    name: str
    source: str
    program: str
    digest: Callable[[], str | None]
    require: Callable[[], object] = lambda: None
    download: Callable[[], object] | None = None
    check: Callable[[], object] = lambda: None


def input_items(params: Params) -> list[Item]:
    """List the items that `params` name, without the items of unused papers."""
    return [
        *_data_sets(params),
        *_weights(params),
        *_focal_files(params),
        *_scenes(params),
    ]


def missing_items(
    params: Params, *, to_come: bool = False
) -> list[tuple[Item, MissingInput]]:
    """List the missing items, each with the error that tells how to get it.

    If `to_come` is true, items that the run would download first are not listed.
    """
    missing: list[tuple[Item, MissingInput]] = []
    for item in input_items(params):
        try:
            item.require()
        except NotDownloadedError as fault:
            if not (to_come and params.data.download):
                missing.append((item, fault))
        except MissingInput as fault:
            missing.append((item, fault))
    return missing


def missing_lines(params: Params, *, to_come: bool = False) -> list[str]:
    """Describe each missing item in a line: its name, its place, and how to get it."""
    missing = missing_items(params, to_come=to_come)
    return list(dict.fromkeys(str(fault) for _, fault in missing))


def download_missing(params: Params, program: str | None = None) -> list[str]:
    """Download missing items if `data.download` is true.

    Args:
        params: The parameters.
        program: The program whose files are downloaded; None for all programs.

    Returns:
        One line for each of these items that is still missing. A failed download is
        listed with its reason.
    """
    lines = []
    for item, missing in missing_items(params):
        if program not in (None, item.program):
            continue
        fault: InputError = missing
        is_downloadable = isinstance(missing, NotDownloadedError)
        if params.data.download and is_downloadable and item.download is not None:
            try:
                item.download()
                continue
            except InputError as failed:
                fault = failed
        lines.append(str(fault))
    return list(dict.fromkeys(lines))


def without_missing(params: Params, *, to_come: bool = False) -> Params:
    """Return `params` without everything that needs a missing item.

    `missing_items` determines which items are missing. A task whose out-of-distribution
    or shifted sets are missing stays, without these sets. A section of the result may
    be empty, which a parameter file does not allow.
    """
    gone: dict[Kind, set[str]] = {}
    for item, _ in missing_items(params, to_come=to_come):
        gone.setdefault(item.kind, set()).add(item.key)
    if not gone:
        return params
    data_sets = gone.get("data set", set())
    changes: dict[str, Any] = {
        "datasets": _without(params.datasets, data_sets),
        "classifier_temperature": _classifier_part(
            params.classifier_temperature, data_sets, gone.get("weights", set())
        ),
        "focal": _focal_part(params.focal, data_sets, gone),
        "cooling": _cooling_part(params.cooling, data_sets, gone),
        "temperature_check": _temperature_part(params.temperature_check, data_sets),
    }
    return params.model_copy(update=changes)


def _without(named: Mapping[str, Any], gone: set[str]) -> dict[str, Any]:
    return {name: value for name, value in named.items() if name not in gone}


def _classifier_part(
    paper: ClassifierTemperature, data_sets: set[str], backbones: set[str]
) -> ClassifierTemperature:
    kept = {
        "datasets": [name for name in paper.datasets if name not in data_sets],
        "backbones": [name for name in paper.backbones if name not in backbones],
    }
    return paper.model_copy(update=kept)


def _focal_part(paper: Focal, data_sets: set[str], gone: dict[Kind, set[str]]) -> Focal:
    vectors = gone.get("word vectors", set())

    def runs(task: Task) -> bool:
        has_vectors = not task.embeddings or task.embeddings.file not in vectors
        return task.dataset not in data_sets and has_vectors

    def kept(task: Task) -> Task:
        others = {
            role: [name for name in getattr(task, role) if name not in data_sets]
            for role in ("out_of_distribution", "shifted")
        }
        return task.model_copy(update=others)

    tasks = {name: kept(task) for name, task in paper.tasks.items() if runs(task)}
    changes: dict[str, Any] = {"tasks": tasks}
    if "translation" in gone:
        changes["translation"] = None
    return paper.model_copy(update=changes)


def _cooling_part(
    paper: Cooling, data_sets: set[str], gone: dict[Kind, set[str]]
) -> Cooling:
    changes: dict[str, Any] = {
        "experiments": {
            name: experiment
            for name, experiment in paper.experiments.items()
            if experiment.dataset not in data_sets
        }
    }
    if "scenes" in gone:
        changes["segmentation"] = None
    return paper.model_copy(update=changes)


def _temperature_part(paper: TemperatureCheck, data_sets: set[str]) -> TemperatureCheck:
    changes: dict[str, Any] = {
        "sweeps": {
            name: sweep
            for name, sweep in paper.sweeps.items()
            if sweep.dataset not in data_sets
        }
    }
    early = paper.early_learning
    if early is not None and early.dataset in data_sets:
        changes["early_learning"] = None
    return paper.model_copy(update=changes)


def _data_sets(params: Params) -> Iterator[Item]:
    root = Path(params.data.root)
    for key, dataset in params.datasets_to_prepare().items():
        source = dataset.source or key
        for name in source if isinstance(source, list) else [source]:
            yield Item(
                kind="data set",
                key=key,
                # `fetch` depends on the list of these names, so it runs again when a
                # data set is added or removed.
                name=key if name == key else f"{key} ({name})",
                source=name,
                program="fetch",
                digest=partial(_digest_of_data_set, name, root),
                require=partial(require_dataset, name, root=root),
                download=_download_of(name, root, params.seed),
                check=partial(
                    find_dataset, name, root=root, download=False, seed=params.seed
                ),
            )


def _download_of(name: str, root: Path, seed: int) -> Callable[[], object] | None:
    if name not in torchvision_names():
        return None
    return partial(find_dataset, name, root=root, download=True, seed=seed)


def _digest_of_data_set(name: str, root: Path) -> str | None:
    return BUILT_IN if is_built_in(name) else source_digest(name, root=root)


def _weights(params: Params) -> Iterator[Item]:
    if "classifier_temperature" not in params.papers:
        return
    for name in params.classifier_temperature.backbones:
        backbone = params.backbones[name]
        if backbone.weights in ("file", "hub", "package"):
            root = Path(params.data.root)
            download = None
            if backbone.weights == "hub":
                download = partial(locate_weights, backbone, root=root, download=True)
            yield Item(
                kind="weights",
                key=name,
                name=name,
                source=_source_of_weights(backbone),
                program="embed",
                digest=partial(_digest_of_weights, backbone, root),
                require=partial(locate_weights, backbone, root=root, download=False),
                download=download,
            )


def _source_of_weights(backbone: Backbone) -> str:
    if backbone.file or backbone.package:
        return str(backbone.file or backbone.package)
    return f"{backbone.architecture}.{backbone.tag} of {backbone.library}"


def _digest_of_weights(backbone: Backbone, root: Path) -> str | None:
    try:
        path = locate_weights(backbone, root=root, download=False)
    except MissingInput:
        return None
    return digest_of_user_file(path) if path else None


def _focal_files(params: Params) -> Iterator[Item]:
    if "focal" not in params.papers:
        return
    root = Path(params.data.root)
    for task in params.focal.tasks.values():
        if task.embeddings:
            path = root / task.embeddings.file
            yield Item(
                kind="word vectors",
                key=task.embeddings.file,
                name=task.embeddings.file,
                source=task.embeddings.file,
                program="train_focal",
                digest=partial(_digest_of_file, path),
                require=partial(require_word_vectors, path),
            )
        source = params.datasets[task.dataset].source or task.dataset
        if task.gaussian_noise and source == "cifar10":
            # CIFAR-10-C is not required, because its noise is generated if the files
            # are missing.
            yield Item(
                kind="noise",
                key="CIFAR-10-C",
                name="CIFAR-10-C",
                source="CIFAR-10-C",
                program="train_focal",
                digest=partial(archive_digest, root),
            )
    translation = params.focal.translation
    if translation:
        name = translation.dataset
        languages = (translation.source, translation.target)
        yield Item(
            kind="translation",
            key=name,
            name=name,
            source=name,
            program="train_focal",
            digest=partial(_digest_of_pairs, name, languages, root),
            require=partial(require_pairs, name, languages, root=root),
        )


def _digest_of_file(path: Path) -> str | None:
    return digest_of_user_file(path) if path.is_file() else None


def _digest_of_pairs(name: str, languages: tuple[str, str], root: Path) -> str:
    return translation_digest(name, languages, root=root) or BUILT_IN


def _scenes(params: Params) -> Iterator[Item]:
    segmentation = params.cooling.segmentation
    if "cooling" not in params.papers or segmentation is None:
        return
    root = Path(params.data.root)
    name = segmentation.dataset
    yield Item(
        kind="scenes",
        key=name,
        name=name,
        source=name,
        program="train_cooling",
        digest=partial(_digest_of_scenes, name, root),
        require=partial(require_scenes, name, root=root),
    )


def _digest_of_scenes(name: str, root: Path) -> str:
    return segmentation_digest(name, root=root) or BUILT_IN
