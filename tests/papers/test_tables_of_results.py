"""The committed tables equal the tables that the code makes from the records."""

from pathlib import Path

import pandas as pd
import pytest

from softmax_temperature.papers.shared.files import read_csv, write_csv
from softmax_temperature.papers.shared.records import makers_of_tables, read_study
from softmax_temperature.papers.shared.results import PAPERS

RESULTS = Path(__file__).parents[2] / "results"
FOLDERS = sorted(path.parent for path in RESULTS.glob("*/*/claims.json"))


@pytest.mark.parametrize(
    "folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}-{folder.name}"
)
def test_tables_follow_from_their_records(folder: Path, tmp_path: Path) -> None:
    assert folder.name in PAPERS
    runs = read_study(folder, folder.name)
    for name, make in makers_of_tables(folder.name):
        write_csv(tmp_path / f"{name}.csv", make(runs))
        found = read_csv(tmp_path / f"{name}.csv")
        expected = read_csv(folder / "tables" / f"{name}.csv")
        # Both tables have six digits, so the tolerances allow only for errors in
        # reading them.
        pd.testing.assert_frame_equal(
            found, expected, rtol=2e-8, atol=1e-12, obj=f"{folder}: {name}"
        )
