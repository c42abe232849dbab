"""What a profile needs below data.root: `make data PROFILE=NAME` lists it, and checks
what is there.
"""

import gzip
import sys
from collections.abc import Callable
from functools import partial
from hashlib import sha256 as sha256_of
from pathlib import Path
from urllib.request import urlopen

from softmax_temperature.data.catalogue import CATALOGUE, URLS
from softmax_temperature.data.segmentation import segmentation_digest
from softmax_temperature.data.sources import find_archive, find_dataset, is_built_in
from softmax_temperature.data.translation import translation_digest
from softmax_temperature.data.word_vectors import read_word_vectors, word_vectors_digest
from softmax_temperature.networks.backbones import locate_weights
from softmax_temperature.params import Params
from softmax_temperature.params.network import Backbone
from softmax_temperature.runner.artifacts import atomic_file, digest_of_file
from softmax_temperature.runner.console import print_any_text
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools.profiles import render_profile

Check = Callable[[], str | None]
"""The sha256 of what is there, None where there is nothing to have one; InputError if
it is missing or wrong.
"""


def needed(params: Params, *, download: bool) -> dict[str, Check]:
    """The data sets, word vectors and weights that a profile uses, each with its check,
    which may download it.
    """
    root, papers = Path(params.data.root), params.papers
    found: dict[str, Check] = {}
    for key, dataset in params.datasets.items():
        names = (
            dataset.source
            if isinstance(dataset.source, list)
            else [dataset.source or key]
        )
        found |= {name: partial(_dataset, name, root, download) for name in names}
    if "focal" in papers:
        vectors = [
            task.embeddings.file
            for task in params.focal.tasks.values()
            if task.embeddings
        ]
        found |= {file: partial(_word_vectors, root / file) for file in vectors}
        if section := params.focal.translation:
            found[section.dataset] = partial(
                _pairs,
                section.dataset,
                (section.source, section.target),
                root,
                download,
            )
    if "cooling" in papers and (scenes := params.cooling.segmentation):
        found[scenes.dataset] = partial(segmentation_digest, scenes.dataset, root=root)
    if "classifier_temperature" in papers:
        specs = [
            params.backbones[name] for name in params.classifier_temperature.backbones
        ]
        found |= {
            str(spec.file): partial(_weights, spec, root)
            for spec in specs
            if spec.weights == "file"
        }
    return found


def _dataset(name: str, root: Path, download: bool) -> str | None:
    if not is_built_in(name):
        find_dataset(name, root=root, download=download, seed=0)
    archive = find_archive(name, root=root)
    return archive.digest() if archive else None


def _weights(spec: Backbone, root: Path) -> str:
    locate_weights(spec, root=root, download=False)  # Says what is wrong with them.
    return digest_of_file(root / str(spec.file))


def _word_vectors(path: Path) -> str | None:
    if not (digest := word_vectors_digest(path)):
        read_word_vectors(path, (), width=1)  # Says where to get them.
    return digest


def _pairs(
    name: str, languages: tuple[str, str], root: Path, download: bool
) -> str | None:
    if download and not (root / name).is_dir():
        for file, (url, sha256) in URLS.get(name, {}).items():
            fetch(url, root / name / file, sha256)
    return translation_digest(name, languages, root=root)


def fetch(url: str, path: Path, sha256: str) -> None:
    """Write the unpacked content of a gzipped file; InputError if it cannot be had, or
    is another one than expected.
    """
    remedy = f"Put the file of the sha256 {sha256}, unpacked, at {path}."
    try:
        with urlopen(url, timeout=60) as answer:  # noqa: S310  (an address of the catalogue)
            content = gzip.decompress(answer.read())
    except OSError as error:
        raise InputError(
            f"the download failed ({error})", where=url, remedy=remedy
        ) from error
    if (found := sha256_of(content).hexdigest()) != sha256:
        raise InputError(f"changed: its sha256 is {found}", where=url, remedy=remedy)
    with atomic_file(path) as file:
        file.write(content)


def main(name: str, *options: str) -> int:
    """Print a line for each thing needed; 0 if all is there, 1 if not, 2 for an unknown
    profile.
    """
    print_any_text()
    try:
        _, params = render_profile(name)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    missing = 0
    print(f"Profile {name} reads from {params.data.root}:")
    for item, check in needed(params, download="--download" in options).items():
        about = f"licence: {CATALOGUE[item].licence}" if item in CATALOGUE else ""
        try:
            digest = check()
            print("  there  ", item, *([f"sha256 {digest}"] if digest else []), about)
        except InputError as error:
            missing += 1
            print("  MISSING", f"{error}", about)
    print(
        f"{missing} missing or wrong; profiles/{name}.yaml says more."
        if missing
        else "All is there."
    )
    return int(missing > 0)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
