"""Writing the pages below results/."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from softmax_temperature.papers.html.comparison import layout
from softmax_temperature.papers.html.executed import cells_as_html
from softmax_temperature.papers.html.links import PAGES, address, several, with_addresses
from softmax_temperature.papers.html.reading import read_profile
from softmax_temperature.papers.html.rendering import grid, render
from softmax_temperature.papers.html.scores import behind, scores, tallies
from softmax_temperature.papers.shared.results import PAPERS
from softmax_temperature.papers.shared.scorecard import profiles_with_results
from softmax_temperature.runner.artifacts import write_text

if TYPE_CHECKING:
    from pathlib import Path

    from softmax_temperature.papers.html.model import Comparison, Paper, Profile

INDEX = "index.html"


def write_report(results: Path) -> list[Path]:
    """Write the pages of every profile with results, and the one over all profiles.

    Args:
        results: the folder of all results.

    Returns:
        The index of all profiles, then that of each.

    Raises:
        InputError: there are no results, or a file does not hold what its name says.
    """
    profiles = [read_profile(results / name) for name in profiles_with_results(results)]
    for profile in profiles:
        _write_profile(results / profile.name, profile)
    shown = [score for profile in profiles for score in scores(profile, folder=f"{profile.name}/")]
    shown.sort(key=lambda score: (PAPERS.index(score.paper), score.number))
    page = render("overview.html.j2", profiles=profiles, papers=PAPERS, tallies=tallies(profiles), scores=shown)
    write_text(results / INDEX, page)
    return [results / INDEX, *(results / profile.name / INDEX for profile in profiles)]


def _write_profile(folder: Path, profile: Profile) -> None:
    for paper in profile.papers:
        names = {"profile": profile, "paper": paper}
        claims = [(claim, behind(paper, claim)) for claim in paper.claims]
        records = render("records.html.j2", **names, claims=claims, numbers=several(paper))
        write_text(folder / PAGES / f"{paper.slug}-records.html", records)
        if paper.notebook:
            cells = with_addresses(cells_as_html(paper.notebook), paper=paper, folder="")
            write_text(folder / PAGES / f"{paper.slug}-notebook.html", render("notebook.html.j2", **names, cells=cells))
    tables = {paper.slug: [_tables(paper, one) for one in paper.comparisons] for paper in profile.papers}
    page = render("profile.html.j2", profile=profile, tables=tables, scores=scores(profile), linked=with_addresses)
    write_text(folder / INDEX, page)


def _tables(paper: Paper, comparison: Comparison) -> dict[str, Any]:
    """What a page shows of a comparison: its two parts as HTML, empty where they have no rows."""
    arranged, link = layout(comparison), partial(address, paper=paper)
    name = f"{paper.slug}-{comparison.name}".replace("_", "-")
    parts = {"measured": arranged.measured, "not_run": arranged.not_run}
    made = {
        part: grid(table, f"{name}-{part}", link, count=not arranged.count) if len(table) else ""
        for part, table in parts.items()
    }
    return {"comparison": comparison, "layout": arranged, **made}
