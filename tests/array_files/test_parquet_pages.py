"""What pages hold by their headers is what pyarrow's own writer says it put there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from softmax_temperature.array_files import parquet_pages, read_arrays
from softmax_temperature.array_files.array_file import BadFile

ROWS = 5_000
OPTIONS: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "pages of both versions": {"data_page_version": "2.0"},
    "without dictionaries": {"use_dictionary": False, "compression": "none"},
    "many small pages": {"data_page_size": 256, "write_batch_size": 64, "row_group_size": 700},
    "differences": {"use_dictionary": False, "column_encoding": {"label": "DELTA_BINARY_PACKED"}},
    "streams of bytes": {"use_dictionary": False, "column_encoding": {"logits.list.element": "BYTE_STREAM_SPLIT"}},
    "without statistics": {"write_statistics": False, "compression": "zstd"},
}


def table() -> pa.Table:
    """A column of lists among others, nested ones too."""
    numbers = np.random.default_rng(0).normal(size=(ROWS, 3))
    return pa.table(
        {
            "deep": pa.array([{"a": 1, "b": [{"c": "x"}, {"c": None}]}, None] * (ROWS // 2)),
            "logits": numbers.tolist(),
            "map": pa.array([[("k", 1)], []] * (ROWS // 2), pa.map_(pa.string(), pa.int64())),
            "label": np.arange(ROWS) % 3,
        }
    )


@pytest.mark.parametrize("case", OPTIONS)
def test_as_many_numbers_as_were_written(tmp_path: Path, case: str) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(), path, **OPTIONS[case])
    about = pq.ParquetFile(path).metadata
    groups = [about.row_group(place) for place in range(about.num_row_groups)]
    written: dict[str, list[int]] = {name: [0, 0] for name in table().column_names}
    for chunk in (group.column(place) for group in groups for place in range(group.num_columns)):
        so_far = written[chunk.path_in_schema.split(".")[0]]
        so_far[0] += chunk.num_values
        so_far[1] += chunk.total_uncompressed_size  # With the headers of the pages.
    found = parquet_pages.column_pages(path)
    assert [pages.numbers for pages in found] == [numbers for numbers, _ in written.values()]
    for pages, (_, size) in zip(found, written.values(), strict=True):
        assert size - 200 * pages.count < pages.bytes < size
    assert found[1].count >= (2 * len(groups) if case == "many small pages" else len(groups))


@pytest.mark.parametrize("case", OPTIONS)
def test_what_was_written_is_read(tmp_path: Path, case: str) -> None:
    pq.write_table(table().select(["logits", "label"]), tmp_path / "a.parquet", **OPTIONS[case])
    found = read_arrays(tmp_path / "a.parquet", "logits", required=("logits", "labels"))
    np.testing.assert_array_equal(found["logits"], table()["logits"].to_pylist())
    np.testing.assert_array_equal(found["labels"], np.arange(ROWS) % 3)


def test_numbers_in_their_compact_form(tmp_path: Path) -> None:
    """By hand, from the protocol's description: fields 1, 3 and 20, of which the last has its number written out."""
    (tmp_path / "a").write_bytes(bytes([0x15, 0x03, 0x26, 0x80, 0x02, 0x05, 0x28, 0x01, 0x00]))
    with (tmp_path / "a").open("rb") as file:
        assert parquet_pages._struct(file) == {(1, 5): -2, (3, 6): 128, (20, 5): -1}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"\x15", "it ends too early"),
        (b"\x15\x02\x05\x02\x02\x00", "field 1 is out of place"),
        (b"\x15\xff\xff\xff\xff\x7f\x00", "a number is too large"),
        (b"\x1c" * 50, "nested too deeply"),
        (b"\x19" * 5000, "nested too deeply"),
        (b"\x1f\x00", "a value is of type 15"),
    ],
)
def test_what_no_writer_does_is_refused(tmp_path: Path, content: bytes, says: str) -> None:
    (tmp_path / "a").write_bytes(content)
    with (tmp_path / "a").open("rb") as file, pytest.raises(BadFile, match=says):
        parquet_pages._struct(file)
