"""What the report knows, as plain values; the templates read these and nothing else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import nbformat
import pandas as pd


@dataclass(frozen=True)
class Caption:
    """A heading of the notebook, plain text, and the prose below it, HTML; captions are written nowhere else."""

    title: str
    text: str = ""


@dataclass(frozen=True)
class Table:
    """A table as the notebook shows it, as HTML, with its number of rows."""

    name: str
    caption: Caption
    html: str
    rows: int


@dataclass(frozen=True)
class Comparison:
    """A table with printed numbers beside ours; the path is from the profile's folder."""

    name: str
    path: str
    caption: Caption
    numbers: pd.DataFrame


@dataclass(frozen=True)
class Figure:
    """A figure; the path of the SVG is from the profile's folder, and its content comes with it."""

    name: str
    path: str
    caption: Caption
    svg: str


@dataclass(frozen=True)
class Group:
    """Cells of a stage that differ in the last part of their name, usually the seed.

    Attributes:
        stage: its name.
        name: what the names of the cells share; the name itself where it has one part.
        cells: rows of `records.json`.
    """

    stage: str
    name: str
    cells: list[dict[str, Any]]

    @property
    def title(self) -> str:
        """The name with the number of its cells, if there are several; for a stage with one cell that of the stage."""
        name = self.stage.rpartition("/")[2] if self.name == "." else self.name
        return f"{name} ({len(self.cells)})" if len(self.cells) > 1 else name

    @property
    def anchor(self) -> str:
        """The name of its place on the page of records."""
        return "cells-" + re.sub(r"[^\w.-]+", "-", f"{self.stage}-{self.name}")


@dataclass(frozen=True)
class Records:
    """The content of `records.json`: groups in the order of the pipeline, parameters and code by digest."""

    groups: list[Group]
    parameters: dict[str, Any]
    code: dict[str, dict[str, str]]

    def behind(self, cells: Sequence[str]) -> list[Group]:
        """The groups that a number comes from, whose names begin with one of `cells`."""
        names = [(group, f"{group.stage}/{group.name}/") for group in self.groups]
        return [group for group, name in names if any(name.startswith(f"{each}/") for each in cells)]

    def stages(self) -> dict[str, list[Group]]:
        """The groups by their stage."""
        return {stage: list(groups) for stage, groups in groupby(self.groups, lambda group: group.stage)}

    def places(self) -> dict[str, str]:
        """Digest of a result to the anchor of its cell."""
        return {cell["result"]: group.anchor for group in self.groups for cell in group.cells}


@dataclass(frozen=True)
class Paper:
    """The results of a paper in a profile; what is missing is empty or None.

    Attributes:
        slug: its name in the project.
        title: as its notebook has it.
        claims: rows of `claims.json`.
        comparisons: tables with printed numbers beside ours, in the order of the notebook.
        tables: those of ours alone that the notebook shows.
        figures: in the order of the notebook.
        downloads: the path of each table with its rows and columns.
        deviations: columns where, what.
        notebook: the executed notebook.
        records: what its numbers link to.
        environment: its part of `environment.json`.
    """

    slug: str
    title: str
    claims: list[dict[str, Any]]
    comparisons: list[Comparison]
    tables: list[Table]
    figures: list[Figure]
    downloads: list[tuple[str, int, int]]
    deviations: pd.DataFrame | None
    notebook: nbformat.NotebookNode | None
    records: Records
    environment: dict[str, Any] | None


@dataclass(frozen=True)
class Profile:
    """The results of a profile: papers in the project's order, those missing, and whether `params.yaml` is there."""

    name: str
    papers: list[Paper]
    missing: list[str]
    parameters: bool
