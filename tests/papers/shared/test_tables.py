"""Tables survive the disk bit for bit, and the printed numbers are found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.papers.shared.tables import published, read_csv, write_csv
from softmax_temperature.runner.errors import InputError


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
