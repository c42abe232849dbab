"""What this project's own results say that their numbers come from is there to be looked up."""

from pathlib import Path

import pytest

from softmax_temperature.papers.html.reading import read_profile
from softmax_temperature.papers.shared.scorecard import profiles_with_results
from softmax_temperature.papers.shared.sources import CELLS, apart, linked
from softmax_temperature.papers.shared.tables import read_csv

RESULTS = Path(__file__).parents[3] / "results"


@pytest.mark.parametrize("profile", profiles_with_results(RESULTS))
def test_every_cell_that_a_table_or_a_page_names_is_recorded(profile: str) -> None:
    for paper in read_profile(RESULTS / profile).papers:
        tables = [read_csv(path) for path in sorted((RESULTS / profile / paper.slug / "tables").glob("*.csv"))]
        named = {cells for table in tables if CELLS in table for cells in table[CELLS].dropna()}
        assert linked(paper.content), paper.slug
        for cells in named | set(linked(paper.content)):
            assert apart(cells)
            assert all(paper.records.behind([name]) for name in apart(cells)), f"{paper.slug}: {cells}"
