"""Records and pictures read back as they were written."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.records import (
    read_pixels,
    read_records,
    table_names,
    table_path,
    write_pixels,
)
from softmax_temperature.papers.shared.tables import write_csv


@dataclass(frozen=True)
class Records:
    runs: pd.DataFrame
    history: pd.DataFrame


def test_records_are_the_tables_named_after_the_fields(tmp_path: Path) -> None:
    for number, name in enumerate(table_names(Records)):
        write_csv(table_path(tmp_path, name), pd.DataFrame({"a": [number]}))
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.csv")) == [
        "runs.csv",
        "tables/history.csv",
    ]
    records = read_records(Records, tmp_path)
    assert records.runs["a"].tolist() == [0]
    assert records.history["a"].tolist() == [1]


def test_pictures_read_back_have_equal_bytes_and_no_file_where_there_are_none(tmp_path: Path) -> None:
    pictures = {"task": np.arange(24, dtype=np.uint8).reshape(2, 3, 4)[:, ::-1]}
    for name in ("first", "second"):
        write_pixels(tmp_path / name, pictures)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    np.testing.assert_array_equal(read_pixels(tmp_path / "first")["task"], pictures["task"])
    write_pixels(tmp_path / "none", {})
    assert not (tmp_path / "none").exists()
    assert read_pixels(tmp_path / "none") == {}
