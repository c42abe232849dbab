"""Tables and pictures survive the disk bit for bit, and the printed numbers are found."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.papers.shared.records import read_pixels, read_records, table_path, write_pixels
from softmax_temperature.papers.shared.tables import published, read_csv, write_csv
from softmax_temperature.runner.errors import InputError


@dataclass(frozen=True)
class Records:
    runs: pd.DataFrame
    history: pd.DataFrame


def test_records_are_the_tables_named_after_the_fields_and_survive_exactly(tmp_path: Path) -> None:
    table = pd.DataFrame({"a": np.random.default_rng(0).normal(size=50) * 1e-7, "b": [1 / 3] * 50})
    for name, made in (("runs", table), ("history", -table)):
        write_csv(table_path(tmp_path, name), made)
    names = sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.csv"))
    assert names == ["runs.csv", "tables/history.csv"]
    records = read_records(Records, tmp_path)
    pd.testing.assert_frame_equal(records.runs, table, check_exact=True)
    pd.testing.assert_frame_equal(records.history, -table, check_exact=True)


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"t\.csv: no such table"):
        read_csv(tmp_path / "t.csv")


def test_published_numbers_are_the_papers() -> None:
    table = published("classifier_temperature", "Table 1")
    row = table[(table["method"] == "All Stats") & (table["metric"] == "median_correlation")]
    assert row["value"].tolist() == [0.9563]
    with pytest.raises(ValueError, match="Table 9"):
        published("classifier_temperature", "Table 9")


def test_pictures_read_back_have_equal_bytes_and_no_file_where_there_are_none(tmp_path: Path) -> None:
    pictures = {"task": np.arange(24, dtype=np.uint8).reshape(2, 3, 4)[:, ::-1]}
    for name in ("first", "second"):
        write_pixels(tmp_path / name, pictures)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    np.testing.assert_array_equal(read_pixels(tmp_path / "first")["task"], pictures["task"])
    write_pixels(tmp_path / "none", {})
    assert not (tmp_path / "none").exists()
    assert read_pixels(tmp_path / "none") == {}
