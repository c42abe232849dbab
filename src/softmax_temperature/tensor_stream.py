"""Write a safetensors file whose tensors arrive in pieces, so that they need not fit in memory."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

_NAMES = {torch.float32: "F32", torch.int64: "I64", torch.uint8: "U8"}
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


def _header(streams: Mapping[str, Stream]) -> bytes:
    entries, start = {}, 0
    for name, stream in streams.items():
        end = start + stream.size
        entries[name] = {"dtype": _NAMES[stream.dtype], "shape": list(stream.shape), "data_offsets": [start, end]}
        start = end
    text = json.dumps(entries).encode()
    text += b" " * (-len(text) % _ALIGNMENT)
    return len(text).to_bytes(8, "little") + text


def _write(file: BinaryIO, name: str, stream: Stream) -> None:
    rows = 0
    for piece in stream.pieces:
        if piece.dtype != stream.dtype or piece.shape[1:] != stream.shape[1:]:
            raise ValueError(f"{name}: a piece of {piece.dtype} {tuple(piece.shape)} does not fit {stream.shape}")
        file.write(piece.cpu().contiguous().numpy().data)
        rows += len(piece)
    if rows != stream.shape[0]:
        raise ValueError(f"{name}: {rows} rows were given, {stream.shape[0]} announced")
