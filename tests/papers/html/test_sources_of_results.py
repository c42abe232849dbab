"""What this project's own results say that their numbers come from is there to be looked up."""

from __future__ import annotations

from pathlib import Path

import pytest

from softmax_temperature.papers.html.reading import read_profile, read_records
from softmax_temperature.papers.shared.scorecard import profiles_with_results
from softmax_temperature.papers.shared.sources import CELLS, apart, linked
from softmax_temperature.papers.shared.tables import read_csv

RESULTS = Path(__file__).parents[3] / "results"
WITHOUT_CELLS = {"theory", "arms", "not-in-a-table"}
"""Checks of formulas, parameters, and what is printed and not compared."""


@pytest.mark.parametrize("profile", profiles_with_results(RESULTS))
def test_every_cell_that_a_table_names_is_recorded(profile: str) -> None:
    for path in sorted((RESULTS / profile).glob("*/tables/*.csv")):
        table, records = read_csv(path), read_records(path.parents[1])
        for cells in set(table[CELLS].dropna()) if CELLS in table else ():
            assert apart(cells)
            for name in apart(cells):
                assert records.behind([name]), f"{path}: {name}"


@pytest.mark.parametrize("profile", profiles_with_results(RESULTS))
def test_every_table_of_ours_alone_leads_to_records(profile: str) -> None:
    for paper in read_profile(RESULTS / profile).papers:
        for table in paper.tables:
            leads, empty = linked(table.html), table.rows == 0
            assert bool(leads) != (table.name in WITHOUT_CELLS or empty), f"{profile}, {paper.slug}: {table.name}"
            assert all(paper.records.behind(apart(cells)) for cells in leads)
