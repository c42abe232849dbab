"""Write and read tensors of safetensors files in pieces, so that they need not fit in memory.

The library's own reader maps the file, and every page it has touched counts as the process's memory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

_NAMES = {torch.float32: "F32", torch.int64: "I64", torch.uint8: "U8"}
_LENGTH_BYTES = 8
_ALIGNMENT = 8


@dataclass(frozen=True)
class Stream:
    """A tensor to be written.

    Attributes:
        dtype: float32, int64 or uint8.
        shape: of the whole.
        pieces: consecutive rows, (rows, *shape[1:]) each; read once, when its turn comes.
    """

    dtype: torch.dtype
    shape: tuple[int, ...]
    pieces: Iterable[Tensor]

    @property
    def size(self) -> int:
        """Bytes of the whole."""
        return math.prod(self.shape) * self.dtype.itemsize


def write_tensors(path: Path, streams: Mapping[str, Stream]) -> None:
    """Write a safetensors file; only one piece is in memory at a time.

    Args:
        path: the file. It is not written atomically: that is the business of the artifact it is part of.
        streams: by the tensors' names, in the order in which they are read and stored. Those of wider numbers go first,
            so that all begin at a multiple of their width.

    Raises:
        ValueError: the pieces do not make up the tensor that was announced.
    """
    with path.open("wb") as file:
        file.write(_header(streams))
        for name, stream in streams.items():
            _write(file, name, stream)


def read_rows(path: Path, name: str, batches: Iterable[range]) -> Iterator[Tensor]:
    """Read consecutive rows of a tensor; only one batch is in memory at a time.

    Args:
        path: a safetensors file, whose bytes have been verified.
        name: of a float32, int64 or uint8 tensor in it.
        batches: row numbers, each a range of step 1.

    Yields:
        (rows, *shape[1:]), one tensor a batch.

    Raises:
        ValueError: a batch is not a range of rows of the tensor.
    """
    with path.open("rb") as file:
        length = int.from_bytes(file.read(_LENGTH_BYTES), "little")
        entry = json.loads(file.read(length))[name]
        dtype = next(dtype for dtype, its_name in _NAMES.items() if its_name == entry["dtype"])
        rows, *shape = entry["shape"]
        width = math.prod(shape) * dtype.itemsize
        start = _LENGTH_BYTES + length + entry["data_offsets"][0]
        for batch in batches:
            if batch.step != 1 or not 0 <= batch.start <= batch.stop <= rows:
                raise ValueError(f"batches: {batch} is not a range of the {rows} rows of {name}")
            file.seek(start + batch.start * width)
            values = torch.empty((len(batch), *shape), dtype=dtype)
            file.readinto(values.numpy().data)
            yield values


def _header(streams: Mapping[str, Stream]) -> bytes:
    entries, start = {}, 0
    for name, stream in streams.items():
        end = start + stream.size
        entries[name] = {"dtype": _NAMES[stream.dtype], "shape": list(stream.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(_LENGTH_BYTES, "little") + text


def _write(file: BinaryIO, name: str, stream: Stream) -> None:
    rows = 0
    for piece in stream.pieces:
        if piece.dtype != stream.dtype or piece.shape[1:] != stream.shape[1:]:
            raise ValueError(f"{name}: a piece of {piece.dtype} {tuple(piece.shape)} does not fit {stream.shape}")
        file.write(piece.cpu().contiguous().numpy().data)
        rows += len(piece)
    if rows != stream.shape[0]:
        raise ValueError(f"{name}: {rows} rows were given, {stream.shape[0]} announced")
