"""Tar files in the form of WebDataset: the same samples as its own reader finds, and one clear error for all else."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from webdataset import TarWriter
from webdataset.tariterators import group_by_keys, tar_file_iterator

from softmax_temperature.runner.errors import InputError
from softmax_temperature.shards.tar_files import TarImages

from .data import encoded, pixels, samples, write_tar

SAMPLE = samples([3])
IMAGE, LABEL = SAMPLE["000003.png"], SAMPLE["000003.cls"]


def test_samples_are_those_of_webdatasets_own_reader(tmp_path: Path) -> None:
    with TarWriter(str(tmp_path / "a.tar"), encoder=False) as writer:
        for number in range(7):
            content = {"png": encoded(pixels(number)), "cls": str(number % 4).encode(), "json": b"{}"}
            writer.write({"__key__": f"some/folder/{number:03d}"} | content)
    with (tmp_path / "a.tar").open("rb") as stream:
        theirs = list(group_by_keys({**each, "__url__": ""} for each in tar_file_iterator(stream)))

    with TarImages(tmp_path / "a.tar", "a") as ours:
        assert ours.names == [f"a/{sample['__key__']}" for sample in theirs]
        assert ours.labels == [int(sample["cls"]) for sample in theirs]
        assert [ours.content(row) for row in range(7)] == [sample["png"] for sample in theirs]


def test_folders_and_files_about_the_set_belong_to_no_sample(tmp_path: Path) -> None:
    folder = tarfile.TarInfo("train")
    folder.type = tarfile.DIRTYPE
    members = {
        "train": folder,
        "__set__/about.json": b"{}",
        "README": b"",
        "train/1.jpeg": IMAGE,
        "train/1.cls": b"12\n",
    }
    found = TarImages(write_tar(tmp_path / "a.tar", members), "a")
    assert (found.names, found.labels) == (["a/train/1"], [12])


def link(kind: bytes, name: str = "000003.png") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, "/etc/passwd"
    return info


MEMBERS: dict[str, tuple[dict[str, Any], str]] = {
    "nothing": ({}, "a.tar: holds no samples."),
    "no label": ({"1.png": IMAGE}, "a.tar: 1: has no label."),
    "no image": ({"1.cls": b"0"}, "a.tar: 1: has no image."),
    "a sample in two places": ({"1.png": IMAGE, "2.png": IMAGE, "2.cls": b"0", "1.cls": b"0"}, "1: has no label."),
    "two images": ({"1.png": IMAGE, "1.jpg": IMAGE, "1.cls": b"0"}, "1: has 2 images."),
    "a name": ({"1.png": IMAGE, "1.cls": b"cat"}, "1.cls: is no class number (b'cat')."),
    "a negative number": ({"1.png": IMAGE, "1.cls": b"-1"}, "1.cls: is no class number (b'-1')."),
    "a long number": ({"1.png": IMAGE, "1.cls": b"1" * 40}, "1.cls: is no class number"),
    "a parent": ({"a/../../1.png": IMAGE, "a/../../1.cls": b"1"}, "a/../../1.png: leads out of its folder"),
    "an absolute path": ({"/1.png": IMAGE, "/1.cls": b"1"}, "/1.png: leads out of its folder"),
    "a line break": ({"a\nb.png": IMAGE, "a\nb.cls": b"1"}, r"a\nb.png: leads out of its folder, or has no printable"),
    "a link": ({"l": link(tarfile.SYMTYPE), **SAMPLE}, "000003.png: is a link or another thing"),
    "a hard link": ({"l": link(tarfile.LNKTYPE), **SAMPLE}, "000003.png: is a link or another thing"),
    "a device": ({"l": link(tarfile.CHRTYPE), **SAMPLE}, "000003.png: is a link or another thing"),
}


@pytest.mark.parametrize("case", MEMBERS)
def test_what_is_no_sample_is_named_with_file_and_member(tmp_path: Path, case: str) -> None:
    members, says = MEMBERS[case]
    with pytest.raises(InputError) as error:
        TarImages(write_tar(tmp_path / "a.tar", members), "a")
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def header(kind: bytes, content: bytes, name: str = "h") -> bytes:
    """A header that says something of others, with its content."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(content)
    return info.tobuf(tarfile.USTAR_FORMAT) + content + bytes(-len(content) % tarfile.BLOCKSIZE)


def sparse(blocks: int) -> bytes:
    """A file with holes, of which so many blocks tell."""
    info = tarfile.TarInfo("000003.png")
    info.type = tarfile.GNUTYPE_SPARSE
    start = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    start[482], start[148:156] = 1, b" " * 8  # More blocks follow; the sum is that of spaces in its place.
    start[148:156] = b"%06o\0 " % sum(start)
    places = (b"00000000001\0" * 42).ljust(504, b"\0")
    return bytes(start) + (places + b"\1" + bytes(7)) * blocks + places + bytes(8)


def keyword(name: bytes, length: int) -> bytes:
    """What a PAX header says: its own length first, which has as many digits as here."""
    rest = name + b"=" + b"x" * length + b"\n"
    return b"%d %s" % (len(rest) + 7, rest)


HEADERS = {
    "names in a row": (header(tarfile.GNUTYPE_LONGNAME, b"a\0") * 500, "maximum recursion depth exceeded"),
    "attributes in a row": (header(tarfile.XHDTYPE, b"12 path=abc\n") * 500, "maximum recursion depth exceeded"),
    "a long name": (header(tarfile.GNUTYPE_LONGNAME, b"a" * 2**21 + b"\0"), "more than 1,048,576 bytes of headers"),
    "holes": (sparse(2**12), "more than 1,048,576 bytes of headers"),
    "what is said of all": (
        b"".join(
            header(tarfile.XGLTYPE, keyword(b"key%d" % number, 300_000))
            + header(tarfile.REGTYPE, IMAGE, f"{number}.png")
            + header(tarfile.REGTYPE, b"0", f"{number}.cls")
            for number in range(5)
        ),
        "more than 1,048,576 bytes of headers",
    ),
}


@pytest.mark.parametrize("case", HEADERS)
def test_headers_without_end_are_refused(tmp_path: Path, case: str) -> None:
    content, says = HEADERS[case]
    (tmp_path / "a.tar").write_bytes(content + write_tar(tmp_path / "b.tar", SAMPLE).read_bytes())
    with pytest.raises(InputError, match=rf"a\.tar: is not a tar file that can be read \({says}"):
        TarImages(tmp_path / "a.tar", "a")


def test_headers_of_many_members_are_not_added_up(tmp_path: Path) -> None:
    names = [f"{'folder/' * 9_000}{number}" for number in range(20)]
    members = {f"{name}.{ending}": content for name in names for ending, content in (("png", IMAGE), ("cls", b"0"))}
    assert len(TarImages(write_tar(tmp_path / "a.tar", members), "a").names) == 20


def flipped(content: bytes) -> bytes:
    """A byte of the second image's header is another one: tarfile would take it for the end."""
    start = content.index(b"000004.png")
    return content[:start] + b"X" + content[start + 1 :]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda _: b"", "is not a tar file that can be read"),
        (lambda _: b"no tar file" * 100, "is not a tar file that can be read"),
        (gzip.compress, "is not a tar file that can be read"),
        (flipped, "is damaged or cut short at byte"),
        (lambda content: content[: content.index(b"000005.png") + 600], "000005.png: is cut short"),
        (lambda content: content[: content.index(b"000004.png")], "is damaged or cut short at byte"),
        (lambda content: content + content, "goes on after its end"),
    ],
)
def test_a_damaged_file_is_no_smaller_data_set(tmp_path: Path, change: Callable[[bytes], bytes], says: str) -> None:
    path = write_tar(tmp_path / "a.tar", samples([3, 4, 5]))
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(InputError, match=says):
        TarImages(path, "a")
