"""Data sets and weights that a profile needs.

`make data PROFILE=NAME` lists them with their licences, as far as these are known, and
checks the files that are present.
"""

import gzip
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256 as sha256_of
from pathlib import Path
from typing import Annotated
from urllib.request import urlopen

import typer

from softmax_temperature.data.catalogue import BY_HAND, CATALOGUE, URLS, WEIGHTS
from softmax_temperature.data.gaussian_noise import ARCHIVE, archive_digest
from softmax_temperature.data.segmentation import segmentation_digest
from softmax_temperature.data.sources import find_archive, find_dataset, is_built_in
from softmax_temperature.data.translation import translation_digest
from softmax_temperature.data.word_vectors import read_word_vectors, word_vectors_digest
from softmax_temperature.networks.weights import locate_weights
from softmax_temperature.params import Params
from softmax_temperature.params.network import Backbone
from softmax_temperature.runner.artifacts import atomic_file, digest_of_file
from softmax_temperature.runner.errors import InputError, NotDownloadedError
from softmax_temperature.tools.profiles import render_profile
from softmax_temperature.tools.programs import run_program

# A check returns the sha256 of an item, or None for an item without a file. It raises
# InputError if the item is missing or wrong.
Check = Callable[[], str | None]
# Items that a profile runs without.
OPTIONAL = frozenset({ARCHIVE})
# States of items.
THERE = "there"
MISSING = "MISSING"
TO_COME = "to come"
OPTIONAL_ITEM = "optional"


def needed(params: Params, *, download: bool) -> dict[str, Check]:
    """Checks of the data sets, word vectors and weights that a profile uses, by name.

    With `download`, a check downloads what is missing, where that is possible.
    """
    root = Path(params.data.root)
    checks: dict[str, Check] = {}
    for key, dataset in params.datasets_to_prepare().items():
        source = dataset.source or key
        for name in source if isinstance(source, list) else [source]:
            checks[name] = partial(_dataset, name, root, download)
    if "focal" in params.papers:
        checks |= _focal_checks(params, root, download)
    if "cooling" in params.papers and params.cooling.segmentation:
        scenes = params.cooling.segmentation.dataset
        checks[scenes] = partial(segmentation_digest, scenes, root=root)
    if "classifier_temperature" in params.papers:
        for name in params.classifier_temperature.backbones:
            backbone = params.backbones[name]
            if backbone.weights in ("file", "hub", "package"):
                hub_name = f"{backbone.architecture}.{backbone.tag}"
                item = backbone.file or backbone.package
                item = item or f"{hub_name} of {backbone.library}"
                checks[item] = partial(_weights, backbone, root, download)
    return checks


def _focal_checks(params: Params, root: Path, download: bool) -> dict[str, Check]:
    checks: dict[str, Check] = {}
    for task in params.focal.tasks.values():
        if task.embeddings:
            file = task.embeddings.file
            checks[file] = partial(_word_vectors, root / file)
        if task.gaussian_noise and task.printed_dataset == "CIFAR-10":
            checks[ARCHIVE] = partial(_noise, root)
    translation = params.focal.translation
    if translation:
        languages = (translation.source, translation.target)
        checks[translation.dataset] = partial(
            _pairs, translation.dataset, languages, root, download
        )
    return checks


def _dataset(name: str, root: Path, download: bool) -> str | None:
    if not is_built_in(name):
        find_dataset(name, root=root, download=download, seed=0)
    archive = find_archive(name, root=root)
    return archive.digest() if archive else None


def _weights(backbone: Backbone, root: Path, download: bool) -> str | None:
    published = WEIGHTS.get(Path(backbone.file or "").name)
    if backbone.file and published and download and not (root / backbone.file).exists():
        fetch(published.url, root / backbone.file, published.sha256)
    # Raises InputError if they are missing or wrong.
    path = locate_weights(backbone, root=root, download=download)
    digest = digest_of_file(path) if path else None
    if published and published.sha256 and digest != published.sha256:
        raise InputError(
            f"its sha256 is {digest}, that of the published file {published.sha256}",
            where=str(path),
            remedy=f"Get {published.url} again.",
        )
    return digest


def _noise(root: Path) -> str:
    digest = archive_digest(root)
    if digest is None:
        raise InputError(
            f"not found in {root}",
            where=ARCHIVE,
            remedy=BY_HAND[ARCHIVE].format(folder=root / ARCHIVE),
        )
    return digest


def _word_vectors(path: Path) -> str | None:
    digest = word_vectors_digest(path)
    if not digest:
        # Raises InputError, with the address of the vectors.
        read_word_vectors(path, (), width=1)
    return digest


def _pairs(
    name: str, languages: tuple[str, str], root: Path, download: bool
) -> str | None:
    if download and not (root / name).is_dir():
        for file, (url, sha256) in URLS.get(name, {}).items():
            fetch(url, root / name / file, sha256)
    return translation_digest(name, languages, root=root)


def fetch(url: str, path: Path, sha256: str) -> None:
    """Download a file and write its content, unpacked if it is gzipped.

    Raises:
        InputError: If the download fails, or the content has another sha256.
    """
    remedy = f"Put the file of the sha256 {sha256}, unpacked, at {path}."
    try:
        with urlopen(url, timeout=60) as answer:  # noqa: S310  (an address of the catalogue)
            content = answer.read()
        if url.endswith(".gz"):
            content = gzip.decompress(content)
    except OSError as error:
        raise InputError(
            f"the download failed ({error})", where=url, remedy=remedy
        ) from error
    downloaded = sha256_of(content).hexdigest()
    if downloaded != sha256:
        raise InputError(
            f"changed: its sha256 is {downloaded}", where=url, remedy=remedy
        )
    with atomic_file(path) as file:
        file.write(content)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, with the arguments of the command line if there are no others.

    Returns:
        The exit code: 0 if all items are present, 1 if not, 2 if the profile is
        unknown.
    """
    return run_program(list_data, __doc__, arguments)


def list_data(
    profile: Annotated[str, typer.Argument(help="The name of a profile.")],
    download: Annotated[
        bool, typer.Option("--download", help="Download what is missing, if possible.")
    ] = False,
) -> None:
    """Print one line per item that a profile needs; exit with 1 if one is missing."""
    _, params = render_profile(profile)
    counts: Counter[str] = Counter()
    print(f"Profile {profile} reads from {params.data.root}:")
    for item, check in needed(params, download=download).items():
        state, text = _state(item, check, comes=params.data.download)
        counts[state] += 1
        print(f"  {state:8}", text, _licence(item))
    if counts[TO_COME]:
        print(
            f"{counts[TO_COME]} come with the run, because data.download is true; "
            f"`make data PROFILE={profile} DOWNLOAD=1` fetches them now."
        )
    if counts[MISSING]:
        print(f"{counts[MISSING]} missing or wrong; see profiles/{profile}.yaml.")
        raise typer.Exit(1)
    if not counts[TO_COME]:
        print("All items are present.")


def _state(item: str, check: Check, *, comes: bool) -> tuple[str, str]:
    """The state of an item, and a text; `comes` if the run downloads what it can."""
    try:
        digest = check()
    except InputError as error:
        if comes and isinstance(error, NotDownloadedError):
            found, _, _ = error.what.partition(", expected ")
            return TO_COME, f"{error.where}: {found}"
        return OPTIONAL_ITEM if item in OPTIONAL else MISSING, f"{error}"
    return THERE, f"{item} sha256 {digest}" if digest else item


def _licence(item: str) -> str:
    name = Path(item).name.partition(" of ")[0]
    entry = WEIGHTS.get(name) or CATALOGUE.get(item)
    return f"licence: {entry.licence}" if entry else ""


if __name__ == "__main__":
    sys.exit(main())
