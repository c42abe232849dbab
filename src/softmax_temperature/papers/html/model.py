"""What the report knows, as plain values; the templates read these and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import nbformat
    import pandas as pd

    from softmax_temperature.papers.html.records import Records


@dataclass(frozen=True)
class Caption:
    """What the notebook says where it shows something: the only place where captions are written.

    Attributes:
        title: the heading above it, plain text.
        text: the prose before it, HTML; empty where there is none.
    """

    title: str
    text: str = ""


@dataclass(frozen=True)
class Words:
    """Sentences that the notebook made from the numbers, under its heading; HTML."""

    caption: Caption
    text: str


@dataclass(frozen=True)
class Table:
    """A table as the notebook shows it.

    Attributes:
        name: that the notebook gave it.
        caption: what the notebook says of it.
        html: the table, without a name on the page.
        rows: how many it has.
    """

    name: str
    caption: Caption
    html: str
    rows: int


@dataclass(frozen=True)
class Comparison:
    """A table that has a printed number beside ours.

    Attributes:
        name: of its file, without ending.
        path: of its file, from the profile's folder.
        caption: what the notebook says of it.
        numbers: the file's rows.
    """

    name: str
    path: str
    caption: Caption
    numbers: pd.DataFrame


@dataclass(frozen=True)
class Figure:
    """A figure.

    Attributes:
        name: of its files, without ending.
        path: of the SVG, from the profile's folder.
        caption: what the notebook says of it.
        svg: its content.
    """

    name: str
    path: str
    caption: Caption
    svg: str


@dataclass(frozen=True)
class Download:
    """A file of numbers: its path from the profile's folder, how many rows and columns."""

    path: str
    rows: int
    columns: int


@dataclass(frozen=True)
class Paper:
    """The results of a paper in a profile; what is empty or None is not there.

    Attributes:
        slug: its name in the project.
        title: as its notebook has it.
        claims: rows of `claims.json`.
        words: what the notebook says in sentences made from the numbers.
        comparisons: tables that have a printed number beside ours, in the order of the notebook.
        tables: those of ours alone that the notebook shows.
        figures: in the order of the notebook.
        downloads: all tables.
        deviations: columns where, what.
        notebook: the executed notebook.
        records: what its numbers link to.
        environment: its part of `environment.json`.
    """

    slug: str
    title: str
    claims: list[dict[str, Any]]
    words: list[Words]
    comparisons: list[Comparison]
    tables: list[Table]
    figures: list[Figure]
    downloads: list[Download]
    deviations: pd.DataFrame | None
    notebook: nbformat.NotebookNode | None
    records: Records
    environment: dict[str, Any] | None


@dataclass(frozen=True)
class Profile:
    """The results of a profile.

    Attributes:
        name: of the profile.
        papers: those with results, in the project's order.
        missing: the slugs of those without.
        parameters: whether `params.yaml` stands beside them.
    """

    name: str
    papers: list[Paper]
    missing: list[str]
    parameters: bool
