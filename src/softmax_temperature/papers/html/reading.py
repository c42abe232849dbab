"""Reading what results/ holds of a profile. What is missing is left empty, for the pages to say so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from softmax_temperature.papers.html.captions import Captions, captions, clean
from softmax_temperature.papers.html.comparison import OURS, PRINTED, is_comparison
from softmax_temperature.papers.html.files import DAMAGED, read_notebook, read_table, read_text
from softmax_temperature.papers.html.model import Caption, Comparison, Download, Figure, Paper, Profile, Table
from softmax_temperature.papers.html.records import read_records
from softmax_temperature.papers.shared.results import PAPERS, read_claims, read_environments
from softmax_temperature.runner.artifacts import digest_of_file
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import pandas as pd

COUNTS = ("seeds", "folds", "diverged_seeds")
NUMBERS = (PRINTED, OURS, f"{PRINTED}_sd", f"{OURS}_sd", "difference_in_standard_errors", *COUNTS)
"""Columns of a comparison that hold numbers, or nothing."""

_OWN_PLACES = ("claims", "deviations")
"""Tables of a notebook that the page shows in another way."""


def read_profile(folder: Path) -> Profile:
    """The results of a profile.

    Args:
        folder: `results/<profile>`.

    Raises:
        InputError: a file does not hold what its name says.
    """
    there = [paper for paper in PAPERS if (folder / paper / "claims.json").is_file()]
    environment = read_environments(folder)
    papers = [_paper(folder, slug, environment.get(slug)) for slug in there]
    missing = [paper for paper in PAPERS if paper not in there]
    return Profile(folder.name, papers, missing, parameters=(folder / "params.yaml").is_file())


def _paper(profile: Path, slug: str, environment: dict[str, Any] | None) -> Paper:
    folder = profile / slug
    executed = read_notebook(folder / "notebook.ipynb")
    notebook = clean(executed) if executed else None
    said = captions(notebook) if notebook else Captions("", {}, {}, [])
    tables = {path: read_table(path) for path in (folder / "runs.csv", *sorted((folder / "tables").glob("*.csv")))}
    known = {path: table for path, table in tables.items() if table is not None}
    deviations = known.get(folder / "tables" / "deviations.csv")
    if deviations is not None and not {"where", "what"} <= set(deviations.columns):
        _refuse(folder / "tables" / "deviations.csv", "has no columns where and what")
    comparisons = _comparisons(profile, known, said.tables)
    elsewhere = {*_OWN_PLACES, *(_hyphens(one.name) for one in comparisons)}
    return Paper(
        slug=slug,
        title=said.title or slug,
        claims=read_claims(folder),
        words=said.words,
        comparisons=comparisons,
        tables=[table for name, table in said.tables.items() if name not in elsewhere],
        figures=_figures(profile, folder / "figures", said.figures),
        downloads=[Download(_relative(path, profile), *table.shape) for path, table in known.items()],
        deviations=deviations,
        notebook=notebook,
        records=read_records(folder),
        environment=environment,
    )


def _comparisons(profile: Path, tables: Mapping[Path, pd.DataFrame], shown: Mapping[str, Table]) -> list[Comparison]:
    """In the order of the notebook, which calls a table by the name of its file with hyphens; then those it lacks."""
    order, found = list(shown), []
    for path, table in tables.items():
        if is_comparison(table):
            _check_numbers(table, path)
            name = _hyphens(path.stem)
            caption = shown[name].caption if name in shown else Caption(_title(path.stem))
            place = order.index(name) if name in shown else len(order)
            found.append((place, Comparison(path.stem, _relative(path, profile), caption, table)))
    return [comparison for _, comparison in sorted(found, key=lambda pair: pair[0])]


def _check_numbers(table: pd.DataFrame, path: Path) -> None:
    """Refuse a comparison without names, or whose numbers are texts, or whose counts are none."""
    if table.columns[0] == PRINTED:
        _refuse(path, f"has no column before {PRINTED} that names its rows")
    for column in table.columns.intersection(list(NUMBERS)):
        if table[column].dtype.kind not in "iuf" and table[column].notna().any():
            _refuse(path, f"column {column} holds something else than numbers")
        if column in COUNTS and not np.isfinite(table[column].dropna().astype(float)).all():
            _refuse(path, f"column {column} holds something else than counts")


def _refuse(path: Path, what: str) -> NoReturn:
    raise InputError(what, where=str(path), remedy=DAMAGED)


def _figures(profile: Path, folder: Path, shown: Mapping[str, Caption]) -> list[Figure]:
    """In the order of the notebook, which shows the PNG; then those that it does not show."""
    order, found = list(shown), []
    for path in sorted(folder.glob("*.svg")):
        drawing = path.with_suffix(".png")
        digest = digest_of_file(drawing) if drawing.is_file() else ""
        place = order.index(digest) if digest in order else len(order)
        caption = shown.get(digest, Caption(_title(path.stem)))
        found.append((place, Figure(path.stem, _relative(path, profile), caption, read_text(path))))
    return [figure for _, figure in sorted(found, key=lambda pair: (pair[0], pair[1].name))]


def _title(name: str) -> str:
    """What a file is called where the notebook does not say."""
    return name.replace("_", " ").replace("-", " ").capitalize()


def _hyphens(name: str) -> str:
    return name.replace("_", "-")


def _relative(path: Path, profile: Path) -> str:
    return path.relative_to(profile).as_posix()
