"""How many numbers the pages of a Parquet file hold, by their own headers, before any of them is decoded.

A page of a hundred bytes can hold a billion times the same number. The footer says how many there are, but pyarrow
decodes what the pages say, whatever the footer does, and where a part of the footer is missing, asking pyarrow for it
ends the process without an exception. So the few numbers of both that matter are read here. They are written in
Thrift's compact protocol (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md), their
fields are those of parquet.thrift (https://github.com/apache/parquet-format). What no writer does, such as a field that
comes twice, is refused, because two readers may understand it in two ways.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from softmax_temperature.array_files.array_file import BadFile

# Types of the compact protocol.
_TRUE, _FALSE, _BYTE, _I16, _I32, _I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = range(1, 13)
_BITS = {_I16: 16, _I32: 32, _I64: 64}
_BYTES = {_TRUE: 1, _FALSE: 1, _BYTE: 1, _DOUBLE: 8}  # As they are in a list.
_DEEPEST = 16  # Structs and lists within each other; the format has eight at most.

_SIGNS = (b"PAR1", b"PARE")  # At the end of any such file, of an encrypted one too; other files pyarrow refuses.
_TAIL = 8  # Bytes at a file's end: the footer's length and a sign.
LARGEST_FOOTER = 2**24  # Bytes; a thousand columns in a hundred groups of rows take two thirds of it.
_HEADER_OF = {0: (5, _STRUCT), 3: (8, _STRUCT)}  # By type of page, where the numbers of data are said.

Fields = Mapping[tuple[int, int], Any]
"""A struct's values by number and type: one of another type than the format's is not looked at by any reader."""


@dataclass(frozen=True)
class Pages:
    """What the pages of a column hold.

    Attributes:
        numbers: in all of them; an empty list and a missing value count as one.
        bytes: that they take before they are decoded, but after decompression.
        count: how many pages there are.
    """

    numbers: int
    bytes: int
    count: int


def column_pages(path: Path) -> list[Pages]:
    """The pages of every column, in the order of the schema; those of a nested one are taken together.

    Raises:
        BadFile: the footer or the header of a page is damaged.
    """
    with path.open("rb") as file:
        end = file.seek(-_TAIL, 2)
        file.seek(max(0, end - _footer_length(file)))
        footer = _struct(file)
        widths = _leaves(_field(footer, 2, _LIST))
        groups = [_field(group, 1, _LIST) for group in _field(footer, 4, _LIST)]
        if any(len(chunks) != sum(widths) for chunks in groups):
            raise _damaged("a group of rows lacks columns")
        leaves = [_total([_pages_of(file, chunks[leaf]) for chunks in groups]) for leaf in range(sum(widths))]
    ends = [sum(widths[: place + 1]) for place in range(len(widths))]
    return [_total(leaves[end - width : end]) for end, width in zip(ends, widths, strict=True)]


def check_footer(path: Path) -> None:
    """Refuse a footer that is too long, of which pyarrow would read all.

    Raises:
        BadFile: it is longer than that of any table of numbers.
        OSError: the file cannot be read, or is too short for one.
    """
    with path.open("rb") as file:
        file.seek(-_TAIL, 2)
        if (length := _footer_length(file)) > LARGEST_FOOTER and file.read() in _SIGNS:
            raise BadFile(f"is damaged: its footer is said to be {length:,} bytes long")


def _footer_length(file: IO[bytes]) -> int:
    return int.from_bytes(file.read(4), "little")


def _total(parts: list[Pages]) -> Pages:
    return Pages(*(sum(getattr(part, name) for part in parts) for name in ("numbers", "bytes", "count")))


def _leaves(schema: list[Fields]) -> list[int]:
    """How many columns of plain values are stored for each column at the top of a schema, which lists a tree."""
    found: list[int] = []
    pending = [_field(schema[0], 5, _I32)] if schema else []  # Children that are still to come, by level.
    for element in schema[1:]:
        while pending and not pending[-1]:
            pending.pop()
        if not pending:
            break
        if len(pending) == 1:
            found.append(0)
        pending[-1] -= 1
        children = element.get((5, _I32), 0)
        found[-1] += not children
        pending.append(children)
    if any(pending):
        raise _damaged("its schema ends too early")
    return found


def _pages_of(file: IO[bytes], chunk: Fields) -> Pages:
    """The pages of one column's chunk: as many as the reader goes through."""
    about = _field(chunk, 3, _STRUCT)
    promised, start = _field(about, 5, _I64), _field(about, 9, _I64)
    dictionary = about.get((11, _I64), 0)
    file.seek(_positive(dictionary if 0 < dictionary < start else start))
    numbers = taken = count = 0
    while numbers < promised:
        header = _struct(file)
        kind = _field(header, 1, _I32)
        taken, count = taken + _positive(_field(header, 2, _I32)), count + 1
        if kind in _HEADER_OF:
            numbers += _positive(_field(_field(header, *_HEADER_OF[kind]), 1, _I32))
        file.seek(_positive(_field(header, 3, _I32)), 1)
    return Pages(numbers, taken, count)


def _field(fields: Fields, number: int, kind: int) -> Any:
    if (number, kind) not in fields:
        raise _damaged(f"field {number} is missing")
    return fields[number, kind]


def _positive(value: int) -> int:
    if value < 0:
        raise _damaged(f"{value} where a size is expected")
    return value


def _damaged(why: str) -> BadFile:
    return BadFile(f"is damaged: in a header, {why}")


def _struct(file: IO[bytes], depth: int = 0) -> Fields:
    """The next struct of a file."""
    fields: dict[tuple[int, int], Any] = {}
    number = 0
    while head := _byte(file):
        kind = head & 15
        number = number + (head >> 4) if head >> 4 else _whole(file, _I16)
        if not 0 <= number < 2**15 or (number, kind) in fields:
            raise _damaged(f"field {number} is out of place")
        fields[number, kind] = kind == _TRUE if kind in (_TRUE, _FALSE) else _value(file, kind, depth)
    return fields


def _value(file: IO[bytes], kind: int, depth: int) -> Any:
    """A value of some type; texts are passed over."""
    if depth > _DEEPEST:
        raise _damaged("values are nested too deeply")
    if kind in _BITS:
        return _whole(file, kind)
    if kind == _STRUCT:
        return _struct(file, depth + 1)
    if kind in (_LIST, _SET):
        head = _byte(file)
        length = head >> 4 if head >> 4 < 15 else _varint(file, 31)
        return [_value(file, head & 15, depth + 1) for _ in range(length)]
    if kind in _BYTES:
        return [_byte(file) for _ in range(_BYTES[kind])]
    if kind == _BINARY:
        return file.seek(_varint(file, 31), 1)
    raise _damaged(f"a value is of type {kind}")


def _whole(file: IO[bytes], kind: int) -> int:
    """A number with a sign: 0, -1, 1, -2 are written as 0, 1, 2, 3, and so on."""
    value = _varint(file, _BITS[kind])
    return (value >> 1) ^ -(value & 1)


def _varint(file: IO[bytes], bits: int) -> int:
    """A number without a sign: seven bits a byte, the lowest first; the eighth says that more follow."""
    value = 0
    for shift in range(0, 64, 7):
        byte = _byte(file)
        value |= (byte & 127) << shift
        if value >> bits:
            break
        if byte < 128:
            return value
    raise _damaged("a number is too large")


def _byte(file: IO[bytes]) -> int:
    found = file.read(1)
    if not found:
        raise _damaged("it ends too early")
    return found[0]
