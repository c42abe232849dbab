"""Where images come from: a folder of tar files, one of them, or a folder with a folder for each class."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softmax_temperature.runner.artifacts import digest_of_file, digest_of_text
from softmax_temperature.runner.errors import InputError
from softmax_temperature.shards.class_folders import FolderImages, Piece, classes_of, pieces
from softmax_temperature.shards.tar_files import TarImages

if TYPE_CHECKING:
    from softmax_temperature.shards.images import ShardImages

_READERS = 8  # Threads that wait for the disk; hashing does not hold the interpreter's lock.


@dataclass(frozen=True)
class Source:
    """A data set, and how it falls into shards.

    Attributes:
        root: the folder that all its files are in.
        shards: by name, what `open_shard` needs, as JSON values.
        class_names: of class folders; None for tar files, which hold numbers.
    """

    root: Path
    shards: dict[str, dict[str, Any]]
    class_names: list[str] | None


def find_source(place: Path, *, images_per_shard: int) -> Source:
    """Divide a data set into shards and take the digest of each.

    Every byte is read once, which is little beside embedding it: a finished shard is only ever taken for that of the
    bytes that it was made of.

    Args:
        place: a folder with *.tar files or one such file, or a folder with a folder of images for each class.
        images_per_shard: of class folders; a tar file is one shard.

    Raises:
        InputError: it is none of these, or a file cannot be read.
    """
    if not place.exists():
        raise InputError("no such file or folder", where=str(place), remedy="Give a data set that is there.")
    tars = [place] if place.is_file() else sorted(path for path in place.glob("*.tar") if path.name[0] != ".")
    with ThreadPoolExecutor(_READERS) as pool:
        if not tars:
            found = list(pieces(place, images_per_shard))
            shards = ({**piece._asdict(), "sha256": _digest(FolderImages(place, piece), pool)} for piece in found)
            names = (f"part-{number:05d}" for number in range(len(found)))
            return Source(place, dict(zip(names, shards, strict=True)), classes_of(place))
        digests = pool.map(_digest_of, tars)
        entries = {path.stem: {"file": path.name, "sha256": sha} for path, sha in zip(tars, digests, strict=True)}
        return Source(tars[0].parent, entries, None)


@contextmanager
def open_shard(root: Path, name: str, shard: dict[str, Any]) -> Iterator[ShardImages]:
    """The images of a shard, to be read in the block.

    Raises:
        InputError: it has changed since it was found, or is not as it should be.
    """
    if "file" in shard:
        path = root / shard["file"]
        _check_same(_digest_of(path), shard, path)
        with TarImages(path, name) as images:
            yield images
    else:
        piece = FolderImages(root, Piece(shard["first"], shard["skip"], shard["images"]))
        with ThreadPoolExecutor(_READERS) as pool:
            _check_same(_digest(piece, pool), shard, root / shard["first"])
        yield piece


def _check_same(digest: str, shard: dict[str, Any], path: Path) -> None:
    if digest != shard["sha256"]:
        raise InputError("changed while it was being embedded", where=str(path), remedy="Start again.")


def _digest_of(path: Path) -> str:
    try:
        return digest_of_file(path)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=str(path), remedy="Make it readable.") from error


def _digest(images: FolderImages, pool: ThreadPoolExecutor) -> str:
    """One sha256 over names and contents of files."""
    digests = pool.map(lambda row: _digest_of(Path(images.place(row))), range(len(images.names)))
    lines: Iterator[str] = (f"{sha}  {name}\n" for sha, name in zip(digests, images.names, strict=True))
    return digest_of_text("".join(lines))
