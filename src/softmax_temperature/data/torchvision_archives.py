"""The archives that torchvision's data sets are unpacked from: where they can be had, where it keeps them, their MD5.

Torchvision itself fetches them in one go, without a time limit, and begins anew when a connection is cut. What lies in
its place with the right MD5 it takes as it is.
"""

from __future__ import annotations

import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any


@dataclass(frozen=True)
class Archive:
    """A file to fetch.

    Attributes:
        addresses: where it can be had, the first choice first.
        path: where torchvision looks for it, below its root.
        md5: in hexadecimal.
    """

    addresses: tuple[str, ...]
    path: Path
    md5: str


# Torchvision has these in the middle of its code.
_ELSEWHERE = {
    "DTD": Archive(
        ("https://www.robots.ox.ac.uk/~vgg/data/dtd/download/dtd-r1.0.1.tar.gz",),
        Path("dtd/dtd-r1.0.1.tar.gz"),
        "fff73e5086ae6bdbea199a49dfb8a4c1",
    ),
    "Caltech101": Archive(
        ("https://data.caltech.edu/records/mzrjq-6wc02/files/caltech-101.zip",),
        Path("caltech101/caltech-101.zip"),
        "3138e1922a9193bfa496528edbbc45d0",
    ),
    "Caltech256": Archive(
        ("https://data.caltech.edu/records/nyy15-4j048/files/256_ObjectCategories.tar",),
        Path("caltech256/256_ObjectCategories.tar"),
        "67b4f42ca05d46448c6bb8ecd2220f6d",
    ),
}


def archives_of(kind: str) -> Sequence[Archive]:
    """What `torchvision.datasets.<kind>` fetches for all of its parts together."""
    from torchvision import datasets

    known: Any = getattr(datasets, kind)
    if kind in _ELSEWHERE:
        return [_ELSEWHERE[kind]]
    if kind == "SVHN":
        parts = (known.split_list[split] for split in ("train", "test"))
        return [Archive((address,), Path(name), md5) for address, name, md5 in parts]
    if kind == "Omniglot":
        places = {f"{name}.zip": md5 for name, md5 in known.zips_md5.items()}
        prefix = known.download_url_prefix
        return [Archive((f"{prefix}/{name}",), Path(known.folder) / name, md5) for name, md5 in places.items()]
    if kind == "EMNIST":
        return [Archive((known.url,), Path("EMNIST/raw") / PurePosixPath(known.url).name, known.md5)]
    if kind.startswith("CIFAR"):
        return [Archive((known.url,), Path(known.filename), known.tgz_md5)]
    return [
        Archive(tuple(f"{mirror}{name}" for mirror in known.mirrors), Path(kind) / "raw" / name, md5)
        for name, md5 in known.resources
    ]


def refuse_hostile_tar(path: Path) -> None:
    """Refuse links and names outside of the folder, which before Python 3.11.4 nothing else does on unpacking.

    Raises:
        tarfile.TarError: a member is one of them, or the file is damaged.
    """
    if hasattr(tarfile, "data_filter") or ".tar" not in path.suffixes:
        return
    with tarfile.open(path) as tar:
        for member in tar:
            name = PurePosixPath(member.name)
            if name.is_absolute() or ".." in name.parts or not (member.isfile() or member.isdir()):
                raise tarfile.TarError(f"{member.name!r} leads out of the folder, or is no plain file")
