"""Data sets and weights that a profile needs.

`make data PROFILE=NAME` lists them with their licences, if known, and checks the files
that are present.
"""

import gzip
import sys
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256 as sha256_of
from pathlib import Path
from typing import Annotated
from urllib.request import urlopen

import typer

from softmax_temperature.data.catalogue import (
    BY_HAND,
    CATALOGUE,
    URLS,
    WEIGHTS,
    WeightsFile,
)
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import atomic_file
from softmax_temperature.runner.errors import (
    InputError,
    MissingInput,
    NotDownloadedError,
)
from softmax_temperature.stages.inputs import BUILT_IN, Item, input_items
from softmax_temperature.tools.profiles import render_profile
from softmax_temperature.tools.programs import run_program

# The states of an item.
THERE = "there"
MISSING = "MISSING"
TO_COME = "to come"
OPTIONAL = "optional"


def download(item: Item, root: Path) -> None:
    """Download the missing `item`, if a library provides it or its address is known.

    Raises:
        InputError: If the download fails.
    """
    published = _published(item)
    if item.kind == "translation" and not (root / item.source).is_dir():
        for file, (url, sha256) in URLS.get(item.source, {}).items():
            fetch(url, root / item.source / file, sha256)
    elif published and not (root / item.source).exists():
        fetch(published.url, root / item.source, published.sha256)
    elif item.download is not None:
        try:
            item.require()
        except MissingInput:
            item.download()


def checked(item: Item, root: Path) -> str | None:
    """Read and check an item's files, and return their sha256; None if it is built in.

    Raises:
        InputError: If the item is missing or invalid.
    """
    item.require()
    item.check()
    digest = item.digest()
    if digest == BUILT_IN:
        return None
    if digest is None:
        remedy = BY_HAND.get(item.source, "").format(folder=root / item.source)
        raise MissingInput(f"not found in {root}", where=item.source, remedy=remedy)
    published = _published(item)
    if published and published.sha256 and digest != published.sha256:
        raise InputError(
            f"its sha256 is {digest}, but the published file has {published.sha256}",
            where=str(root / item.source),
            remedy=f"Download {published.url} again.",
        )
    return digest


def _published(item: Item) -> WeightsFile | None:
    return WEIGHTS.get(Path(item.source).name) if item.kind == "weights" else None


def fetch(url: str, path: Path, sha256: str) -> None:
    """Download a file and write its content, unpacked if it is gzipped.

    Raises:
        InputError: If the download fails, or the content's sha256 is not `sha256`.
    """
    remedy = f"Put the file with sha256 {sha256}, unpacked, at {path}."
    try:
        with urlopen(url, timeout=60) as answer:  # noqa: S310  (an address in the catalogue)
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
            f"has changed: its sha256 is {downloaded}", where=url, remedy=remedy
        )
    with atomic_file(path) as file:
        file.write(content)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command with `arguments`, or with those given on the command line.

    Returns:
        The exit code: 0 if every item is present, optional, or to be downloaded by the
        run; 1 if an item is missing or wrong; 2 if the profile is unknown.
    """
    return run_program(list_data, __doc__, arguments)


def list_data(
    profile: Annotated[str, typer.Argument(help="The name of a profile.")],
    try_download: Annotated[
        bool, typer.Option("--download", help="Download what is missing, if possible.")
    ] = False,
) -> None:
    """Print one line per item that a profile needs.

    The program exits with 1 if an item is missing or wrong.
    """
    _, params = render_profile(profile)
    counts: Counter[str] = Counter()
    print(f"Profile {profile} reads from {params.data.root}:")
    # List each source once, even if the profile prepares it in several ways.
    items = {item.source: item for item in input_items(params)}
    for item in items.values():
        state, text = _state(item, params, try_download=try_download)
        counts[state] += 1
        print(f"  {state:8}", text, _licence(item.source))
    if counts[TO_COME]:
        print(
            f"{counts[TO_COME]} to be downloaded by the run (data.download is true); "
            f"`make data PROFILE={profile} DOWNLOAD=1` fetches them now."
        )
    if counts[MISSING]:
        print(f"{counts[MISSING]} missing or wrong; see profiles/{profile}.yaml.")
        raise typer.Exit(1)
    if not counts[TO_COME]:
        print("All items are present.")


def _state(item: Item, params: Params, *, try_download: bool) -> tuple[str, str]:
    """The state of `item`, and the text that describes the item in this state."""
    root = Path(params.data.root)
    try:
        if try_download:
            download(item, root)
        digest = checked(item, root)
    except InputError as error:
        if params.data.download and isinstance(error, NotDownloadedError):
            problem, _, _ = error.what.partition(", expected ")
            return TO_COME, f"{error.where}: {problem}"
        return OPTIONAL if item.kind == "noise" else MISSING, f"{error}"
    return THERE, f"{item.source} sha256 {digest}" if digest else item.source


def _licence(item: str) -> str:
    name = Path(item).name.partition(" of ")[0]
    entry = WEIGHTS.get(name) or CATALOGUE.get(item)
    return f"licence: {entry.licence}" if entry else ""


if __name__ == "__main__":
    sys.exit(main())
