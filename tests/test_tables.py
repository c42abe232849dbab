"""Tables survive the disk bit for bit, and the printed numbers are found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.errors import InputError
from softmax_temperature.tables import only, published, read_csv, shown, write_csv


def test_floats_survive_exactly(tmp_path: Path) -> None:
    table = pd.DataFrame({"a": np.random.default_rng(0).normal(size=50) * 1e-7, "b": [1 / 3] * 50})
    write_csv(tmp_path / "t.csv", table)
    pd.testing.assert_frame_equal(read_csv(tmp_path / "t.csv"), table, check_exact=True)


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"t\.csv: no such table"):
        read_csv(tmp_path / "t.csv")


def test_published_numbers_are_the_papers() -> None:
    table = published("classifier_temperature", "Table 1")
    row = table[(table["method"] == "All Stats") & (table["metric"] == "median_correlation")]
    assert row["value"].tolist() == [0.9563]
    with pytest.raises(ValueError, match="Table 9"):
        published("classifier_temperature", "Table 9")


def test_only_refuses_a_second_value() -> None:
    assert only(pd.DataFrame({"a": [1, 1]}), "a") == 1
    with pytest.raises(ValueError, match="a: one value expected"):
        only(pd.DataFrame({"a": [1, 2]}), "a")


def test_shown_tables_are_equal_from_run_to_run_and_say_percent() -> None:
    table = pd.DataFrame({"rule": ["x"], "accuracy": [0.123456], "r": [0.5], "n": [3.0], "none": [np.nan]})
    first, second = (shown(table, "t", percent=["accuracy"]).to_html() for _ in range(2))
    assert first == second
    for text in ("accuracy (%)", ">12.3<", ">0.500<", ">3<", ">–<"):
        assert text in first
