"""Rows of different lengths, as lists have them."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from softmax_temperature.training.translation.ragged import Ragged

ROWS = st.lists(st.lists(st.integers(1, 9), min_size=1, max_size=5), min_size=1, max_size=6)


@given(ROWS, st.data())
def test_padded_rows_are_those_of_a_list(rows: list[list[int]], data: st.DataObject) -> None:
    ragged = Ragged.of(rows)
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), min_size=1, max_size=4))
    longest = max(len(rows[row]) for row in chosen)
    for length in (None, longest, longest + 2):
        expected = [rows[row] + [-1] * ((length or longest) - len(rows[row])) for row in chosen]
        padded = ragged.padded(torch.tensor(chosen), padding=-1, length=length)
        assert padded.dtype == torch.int64
        assert padded.tolist() == expected


@given(ROWS, st.data())
def test_kept_rows_are_those_of_a_list(rows: list[list[int]], data: st.DataObject) -> None:
    keep = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    kept = Ragged.of(rows).kept(torch.tensor(keep))
    expected = Ragged.of([row for row, wanted in zip(rows, keep, strict=True) if wanted])
    assert len(kept) == sum(keep)
    assert torch.equal(kept.values, expected.values)
    assert torch.equal(kept.ends, expected.ends)


def test_lengths() -> None:
    assert Ragged.of([[5], [6, 7, 8], [9, 9]]).lengths.tolist() == [1, 3, 2]
