"""Tensors in pieces: the files are those of safetensors, and nothing but the announced rows passes."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from softmax_temperature.data.tensor_stream import Stream, read_rows, write_tensors


def stream(tensor: torch.Tensor, rows: int) -> Stream:
    return Stream(tensor.dtype, tuple(tensor.shape), tensor.split(rows))


def test_the_library_reads_what_is_written_in_pieces(tmp_path: Path) -> None:
    tensors = {
        "whole numbers": torch.arange(7),
        "naïve ünïcode": torch.randn(7, 3, 2),
        "bytes": torch.arange(5, dtype=torch.uint8).view(5, 1),
        "empty": torch.empty(0, 4),
    }
    write_tensors(tmp_path / "file", {name: stream(tensor, 3) for name, tensor in tensors.items()})
    read = load_file(tmp_path / "file")
    assert read.keys() == tensors.keys()
    assert all(torch.equal(read[name], tensor) for name, tensor in tensors.items())


def test_the_size_of_the_pieces_leaves_no_trace(tmp_path: Path) -> None:
    tensor = torch.randn(10, 4)
    for rows in (1, 3, 10):
        write_tensors(tmp_path / str(rows), {"a": stream(tensor, rows)})
    assert len({(tmp_path / str(rows)).read_bytes() for rows in (1, 3, 10)}) == 1


def test_a_piece_may_lie_otherwise_in_memory(tmp_path: Path) -> None:
    tensor = torch.arange(12.0).view(3, 4).T
    write_tensors(tmp_path / "file", {"a": Stream(torch.float32, (4, 3), [tensor])})
    assert torch.equal(load_file(tmp_path / "file")["a"], tensor)


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ([torch.zeros(2, 3)], "a: 2 rows were given, 4 announced"),
        ([torch.zeros(2, 3)] * 3, "a: 6 rows were given, 4 announced"),
        ([torch.zeros(4, 2)], "does not fit"),
        ([torch.zeros(4, 3, dtype=torch.float64)], "does not fit"),
    ],
)
def test_other_rows_than_announced_are_refused(pieces: list[torch.Tensor], message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        write_tensors(tmp_path / "file", {"a": Stream(torch.float32, (4, 3), pieces)})


@given(st.lists(st.integers(0, 9), max_size=4))
def test_rows_are_read_as_they_would_be_sliced(tmp_path_factory: pytest.TempPathFactory, cuts: list[int]) -> None:
    path = tmp_path_factory.mktemp("rows") / "file"
    tensor = torch.arange(27, dtype=torch.uint8).view(9, 3)
    save_file({"other": torch.zeros(5), "images": tensor}, path)
    edges = sorted(cuts)
    batches = [range(start, stop) for start, stop in pairwise(edges)]
    for rows, batch in zip(read_rows(path, "images", batches), batches, strict=True):
        assert torch.equal(rows, tensor[batch.start : batch.stop])


@pytest.mark.parametrize("batch", [range(8, 10), range(-1, 3), range(0, 4, 2)])
def test_rows_that_are_not_there_are_refused(batch: range, tmp_path: Path) -> None:
    save_file({"images": torch.zeros(9, 3)}, tmp_path / "file")
    with pytest.raises(ValueError, match="is not a range of the 9 rows of images"):
        next(read_rows(tmp_path / "file", "images", [batch]))
