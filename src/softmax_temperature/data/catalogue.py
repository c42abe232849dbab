"""The data sets that the package knows by name, read from `catalogue.toml`.

The file explains its keys.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Entry:
    """Facts about a data set that are known without its files.

    Attributes:
        title: The name that readers see.
        classes: The number of classes of the complete data set.
        licence: The licence, or the terms of use.
        keys: The keys of each line, for a data set of texts or trees.
    """

    title: str
    classes: int
    licence: str = "not stated"
    keys: str = ""


def _read_catalogue() -> dict[str, dict[str, Any]]:
    path = Path(__file__).with_suffix(".toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


class WeightsFile(NamedTuple):
    """A published weights file.

    Attributes:
        url: Address of the file.
        sha256: The digest of the file; empty if it is not known.
        licence: The licence, or the terms of use.
    """

    url: str
    sha256: str
    licence: str


_ENTRIES = _read_catalogue()

WEIGHTS = {
    name: WeightsFile(**entry) for name, entry in _ENTRIES.pop("weights", {}).items()
}
"""Published weights, keyed by file name or by timm's name for the weights."""

BY_HAND: dict[str, str] = {
    name: entry.pop("by_hand") for name, entry in _ENTRIES.items() if "by_hand" in entry
}
"""Instructions for getting and laying out data sets that no library downloads."""

URLS: dict[str, dict[str, tuple[str, str]]] = {
    name: {file: (url, sha256) for file, (url, sha256) in entry.pop("files").items()}
    for name, entry in _ENTRIES.items()
    if "files" in entry
}
"""Files that `make data` may download: their address, and the sha256 of the content."""

CATALOGUE = {name: Entry(**entry) for name, entry in _ENTRIES.items() if entry}
