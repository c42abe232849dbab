"""Inputs for fuzzing: valid content with a few edits, valid values with a piece exchanged, and arbitrary bytes."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

from hypothesis import strategies as st

MOST_EDITS = 3
TELLING = (
    *(b"", b"\0", b"\n", b"\r", b" ", b",", b'"', b"'", b"{", b"}", b"[", b"]", b"(", b")", b"<", b"&", b"%", b"\\"),
    *(b"-1", b"0", b"1e999", b"-0.0", b"nan", b"NaN", b"inf", b"1_0", b"0x10", b"9" * 30, b"9" * 5000, b"1" * 400),
    *(b"null", b"true", b"False", b"{}", b"[]", b'""', b"\xff\xfe", b"\xef\xbb\xbf", b"\xc3", b"\xed\xa0\x80"),
    *(b"\\ud800", b"\xe2\x80\xa8", b"../", b"!!python/name:os.system ", b"*a ", b"&a ", b"((((", b"[" * 2000),
    *(b"\x00\x00\x00\x80", b"\xff\xff\xff\x7f", b"\xff" * 8, b"\x80\x04\x95", b"PK\x05\x06", b"PAR1"),
)
"""What parsers stumble over: signs of other formats, extreme numbers, broken text, deep nesting."""

Edit = tuple[str, float, float, bytes]

_edits = st.tuples(
    st.sampled_from((*["flip"] * 3, *["set"] * 3, *["insert"] * 2, "cut", "keep", "repeat", "swap")),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from(TELLING) | st.binary(min_size=1, max_size=8),
)
_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(("", "0", "x" * 300, "<b>", "../..", "train", "\x00", 10**30, -1, 0, 1e308))
)
values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
"""Any JSON value."""


def edited(seeds: Sequence[bytes]) -> st.SearchStrategy[bytes]:
    """One of the contents with a few edits, or bytes that have nothing to do with them."""
    changed = st.builds(_edited, st.sampled_from(list(seeds)), st.lists(_edits, min_size=1, max_size=MOST_EDITS))
    return st.one_of(changed, changed, changed, st.binary(max_size=300))


@st.composite
def exchanged(draw: st.DrawFn, seeds: Sequence[Any]) -> Any:
    """One of the JSON values, in which some pieces are missing or have become something else."""
    value = copy.deepcopy(draw(st.sampled_from(list(seeds))))
    for _ in range(draw(st.integers(1, 2))):
        places = list(_places(value))
        if not places:
            return draw(values)
        holder, key = places[draw(st.integers(0, len(places) - 1))]
        if isinstance(holder, dict) and draw(st.booleans()):
            del holder[key]
        else:
            holder[key] = draw(values)
    return value


def _edited(content: bytes, edits: Sequence[Edit]) -> bytes:
    return reduce(_edit, edits, content)


def _edit(content: bytes, edit: Edit) -> bytes:
    kind, where, extent, piece = edit
    start = round(where * len(content))
    # Most of what is cut out or repeated is short.
    end = min(len(content), start + 1 + round(extent**4 * len(content)))
    before, inside, after = content[:start], content[start:end], content[end:]
    if kind == "flip":
        return before + bytes(byte ^ (1 << int(extent * 7)) for byte in inside[:1]) + inside[1:] + after
    changed = {
        "set": piece,
        "insert": piece + inside,
        "cut": b"",
        "repeat": inside * 3,
        "swap": inside[::-1],
    }
    return before if kind == "keep" else before + changed[kind] + after


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a value that can hold something else."""
    keys: list[Any] = (
        list(value) if isinstance(value, dict) else list(range(len(value))) if isinstance(value, list) else []
    )
    for key in keys:
        yield value, key
        yield from _places(value[key])
