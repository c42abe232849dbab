"""Shards in the form of WebDataset: tar files in which `0007.jpg` and `0007.cls` are an image and its class.

Read with Python's own tarfile. The library `webdataset`, whose reader the tests compare with, gives names that start
with `pipe:` to a shell, unpickles members by their ending, reads members of any size, passes over links in silence, and
takes a damaged header for the end of the file: that would be a smaller data set, and nobody would notice.
"""

from __future__ import annotations

import os
import re
import tarfile
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn, Self

from softmax_temperature.data.image_files import ENDINGS, LARGEST
from softmax_temperature.runner.errors import InputError

LABEL = "cls"
_KEY_AND_ENDING = re.compile(r"((?:.*/|)[^.]+)\.([^/]*)")  # As WebDataset divides names: at the first dot.
_ABOUT_THE_SET = re.compile(r"__[^/]*__($|/)")
_NUMBER = re.compile(rb"\s*([0-9]{1,9})\s*")
_LABEL_BYTES = 32
_BLOCK = 512
_LARGEST_HEADERS = 2**20  # Bytes before a member; more than its names and what else is said of it need.
_PADDING = 2**16  # After the end, of zeros; GNU tar fills up to 10,240 bytes, and others may choose more.
_FORM = (
    "Each sample is an image and its class beside it, as 0007.jpg and 0007.cls with a number from 0, in a tar file "
    "that is not compressed."
)
_AGAIN = "Copy it again."


class Sample(NamedTuple):
    """An image of a tar file.

    Attributes:
        key: its name without ending.
        name: of the member.
        offset: of its first byte.
        size: bytes.
        label: class number.
    """

    key: str
    name: str
    offset: int
    size: int
    label: int


class _Member(NamedTuple):
    key: str
    ending: str
    name: str
    offset: int
    size: int


class TarImages:
    """The images of a tar file, open in a block; its list is read and checked before, its images when asked for.

    Args:
        path: the file.
        shard: what to call it in the images' names.

    Raises:
        InputError: it is no tar file, damaged, or empty; a member is a link or leads out of the folder; a sample has
            no image, no label, or two of either.
    """

    def __init__(self, path: Path, shard: str) -> None:
        self._path = path
        self._samples = tar_samples(path)
        self.names = [f"{shard}/{sample.key}" for sample in self._samples]
        self.labels = [sample.label for sample in self._samples]

    def __enter__(self) -> Self:
        self._file = self._path.open("rb")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def content(self, row: int) -> bytes:
        """The bytes of an image file."""
        sample = self._samples[row]
        return os.pread(self._file.fileno(), sample.size, sample.offset)

    def place(self, row: int) -> str:
        """Where it is, for messages."""
        return f"{self._path}/{self._samples[row].name}"


def tar_samples(path: Path) -> list[Sample]:
    """List the samples of a tar file, in its order.

    Raises:
        InputError: as `TarImages`.
    """
    try:
        with path.open("rb") as file:
            samples = [
                _sample(path, file, list(members))
                for _, members in groupby(_members(path, file), key=lambda member: member.key)
            ]
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=str(path), remedy="Make it readable.") from error
    if not samples:
        _refuse(path, "holds no samples")
    return samples


class _Headers:
    """A file as tarfile needs it: for headers, so that none, and no row of them, makes it read gigabytes.

    Attributes:
        left: bytes that it may still read before the next member.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.seek, self.tell, self._file = file.seek, file.tell, file
        self.left = _LARGEST_HEADERS

    def read(self, size: int) -> bytes:
        """The next bytes.

        Raises:
            ValueError: they are too many before a member.
        """
        self.left -= size
        if self.left < 0:
            raise ValueError(f"more than {_LARGEST_HEADERS:,} bytes of headers before a member")
        return self._file.read(size)


def _members(path: Path, file: BinaryIO) -> Iterator[_Member]:
    """The files of a tar file that belong to samples."""
    length, headers = os.fstat(file.fileno()).st_size, _Headers(file)
    try:
        with tarfile.open(fileobj=headers, mode="r:") as tar:  # type: ignore[call-overload]  # what it needs
            while (member := tar.next()) is not None:
                tar.members.clear()  # Or it would keep them all.
                # What headers say of all members that follow is kept, and grows with each of them.
                headers.left = _LARGEST_HEADERS - len(str(tar.pax_headers))
                if found := _checked(path, member, length):
                    yield found
            _check_end(path, file, tar.offset)
    # Headers for headers are read by a function that calls itself.
    except (tarfile.TarError, ValueError, OverflowError, EOFError, RecursionError) as error:
        _refuse(path, f"is not a tar file that can be read ({error})")


def _checked(path: Path, member: tarfile.TarInfo, length: int) -> _Member | None:
    """What is needed of a member; None for folders and for what belongs to no sample."""
    name, shown = member.name, ascii(member.name)[1:-1]
    if name.startswith("/") or ".." in name.split("/") or not name.isprintable():
        _refuse(path, "leads out of its folder, or has no printable name", shown)
    if member.isdir():
        return None
    if not member.isreg() or member.issparse():
        _refuse(path, "is a link or another thing that is no plain file", shown)
    if member.offset_data + member.size > length:
        _refuse(path, "is cut short", shown, remedy=_AGAIN)
    parts = _KEY_AND_ENDING.fullmatch(name)
    if parts is None or _ABOUT_THE_SET.match(name):
        return None
    return _Member(parts[1], parts[2].lower(), name, member.offset_data, member.size)


def _check_end(path: Path, file: BinaryIO, end: int) -> None:
    """Tell the end of the file, a block of zeros, from a damaged header, which tarfile takes for the end too."""
    file.seek(end)
    rest = file.read(_BLOCK + _PADDING)
    if len(rest) < _BLOCK or any(rest[:_BLOCK]):
        _refuse(path, f"is damaged or cut short at byte {end:,}", remedy=_AGAIN)
    if any(rest) or file.read(1):
        _refuse(path, f"goes on after its end at byte {end:,}", remedy="Give tar files that were joined one by one.")


def _sample(path: Path, file: BinaryIO, members: list[_Member]) -> Sample:
    images = [member for member in members if f".{member.ending}" in ENDINGS]
    labels = [member for member in members if member.ending == LABEL]
    key = members[0].key
    for what, found in (("image", images), ("label", labels)):
        if len(found) != 1:
            _refuse(path, f"has {len(found)} {what}s" if found else f"has no {what}", key)
    image = images[0]
    if image.size > LARGEST:
        _refuse(path, f"{image.size:,} bytes are too many for an image", image.name)
    return Sample(key, image.name, image.offset, image.size, _label(path, file, labels[0]))


def _label(path: Path, file: BinaryIO, member: _Member) -> int:
    text = os.pread(file.fileno(), min(member.size, _LABEL_BYTES), member.offset)
    number = _NUMBER.fullmatch(text) if member.size <= _LABEL_BYTES else None
    if number is None:
        _refuse(path, f"is no class number ({text!r})", member.name)
    return int(number[1])


def _refuse(path: Path, what: str, member: str | None = None, *, remedy: str = _FORM) -> NoReturn:
    raise InputError(what, where=f"{path}: {member}" if member else str(path), remedy=remedy)
