"""The tables among this project's results are what its code makes of the records beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from softmax_temperature.papers.shared.results import PAPERS
from softmax_temperature.papers.shared.tables import read_csv, write_csv
from softmax_temperature.papers.temperature_check.early_learning import early_slopes

RESULTS = Path(__file__).parents[2] / "results"
FOLDERS = sorted(path.parent for path in RESULTS.glob("*/*/claims.json"))
Maker = Callable[[Any], pd.DataFrame]


def makers(paper: str) -> Mapping[str, Maker]:
    """What makes each table of a paper from its records, by the name of its file."""
    tables = import_module(f"softmax_temperature.papers.{paper}.tables")
    if paper == "classifier_temperature":
        return {name: getattr(tables, name) for name in ("cost_of_rules", "plateaus", "table_1")}
    if paper == "temperature_check":
        return {**tables.TABLES, "early_slopes": early_slopes}
    found: dict[str, Maker] = {name: partial(tables.table, name=name) for name in tables.SPECS}
    return found | ({"ablation": tables.ablation} if paper == "focal" else {})


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_tables_follow_from_their_records(folder: Path, tmp_path: Path) -> None:
    assert folder.name in PAPERS
    records = import_module(f"softmax_temperature.papers.{folder.name}.records").read_records(folder)
    for name, make in makers(folder.name).items():
        write_csv(tmp_path / f"{name}.csv", make(records))
        found, expected = read_csv(tmp_path / f"{name}.csv"), read_csv(folder / "tables" / f"{name}.csv")
        # Another processor may sum in another order.
        pd.testing.assert_frame_equal(found, expected, rtol=1e-9, atol=1e-12, obj=f"{folder}: {name}")
