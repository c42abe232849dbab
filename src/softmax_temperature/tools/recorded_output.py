"""One output of the pipeline against what `dvc.lock` records of it, by file where a list of its files is at hand."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from softmax_temperature.runner.artifacts import DAMAGED, find_artifacts
from softmax_temperature.tools.dvc_records import LOCK, md5_of


@dataclass(frozen=True)
class Listing:
    """What an output's folder should hold.

    Attributes:
        digests: path below the folder to digest.
        digest_of: makes such a digest of a file.
    """

    digests: Mapping[str, str]
    digest_of: Callable[[Path], str | None]


def output_problems(root: Path, path: str, md5: str, listing: Listing | None) -> list[str]:
    """One line for each file of an output that is missing, damaged or not listed.

    Of an output that consists of artifacts only the names are compared: their manifests say the rest.

    Args:
        root: of the project.
        path: of the output, below it.
        md5: that DVC recorded.
        listing: of the folder, if it is one and its files are known.
    """
    place = root / path
    artifacts = find_artifacts(place) if place.is_dir() else []
    if artifacts:
        return _stray(place, path, artifacts, listing)
    found = md5_of(place)
    if found == md5:
        return []
    _touch(place)
    lines = _differences(place, path, listing) if listing and place.is_dir() else []
    return lines or [f"{path}: {'missing' if found is None else f'not as {LOCK} records it'}"]


def _stray(place: Path, path: str, artifacts: list[Path], listing: Listing | None) -> list[str]:
    """Files without their artifact, and artifacts without their files."""

    def inside(name: str) -> bool:
        return not {place / name, *(place / name).parents}.isdisjoint(artifacts)

    names = listing.digests if listing else {}
    gone = [f"{path}/{name}: missing" for name in sorted(names) if not inside(name) and not (place / name).exists()]
    return gone + [f"{path}/{name}: belongs to no artifact" for name in _files(place) if not inside(name)]


def _differences(place: Path, path: str, listing: Listing) -> list[str]:
    found = {name: listing.digest_of(place / name) for name in _files(place)}
    says = dict.fromkeys(listing.digests, "missing")
    says |= {name: "not listed" if name not in listing.digests else "damaged" for name in found}
    return [f"{path}/{name}: {says[name]}" for name in sorted(says) if found.get(name) != listing.digests.get(name)]


def _files(place: Path) -> list[str]:
    return sorted(
        file.relative_to(place).as_posix() for file in place.rglob("*") if file.is_file() and file.suffix != DAMAGED
    )


def _touch(place: Path) -> None:
    """Give files a new time of change, if this process may: without one DVC takes them for what they were."""
    with suppress(OSError):
        for file in [place, *place.rglob("*")]:
            os.utime(file)
