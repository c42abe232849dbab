"""The data sets that have a name here, from `catalogue.toml`: what they are, their
licences, and what to put where.
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Entry:
    """What is known about a data set before it is there; `catalogue.toml` says what its
    keys mean.
    """

    title: str
    classes: int
    licence: str = "not stated"
    keys: str = ""


_ALL: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)
BY_HAND: dict[str, str] = {
    name: about.pop("by_hand") for name, about in _ALL.items() if "by_hand" in about
}
URLS: dict[str, dict[str, tuple[str, str]]] = {
    name: {file: tuple(each) for file, each in about.pop("files").items()}
    for name, about in _ALL.items()
    if "files" in about
}
CATALOGUE = {name: Entry(**about) for name, about in _ALL.items() if about}
