"""The records that numbers link to: one for each cell, in groups that differ in the last part of their name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from softmax_temperature.provenance import FILE
from softmax_temperature.report.files import read_json

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Group:
    """Cells of a stage that differ in the last part of their name.

    Attributes:
        stage: its name.
        name: what their names have in common; the name itself where it has one part.
        cells: rows of `records.json`.
    """

    stage: str
    name: str
    cells: list[dict[str, Any]]

    @property
    def anchor(self) -> str:
        """The name of its place on the page of records."""
        return "cells-" + re.sub(r"[^\w.-]+", "-", f"{self.stage}-{self.name}")


@dataclass(frozen=True)
class Records:
    """What `records.json` holds; no groups where a paper's results have no such file.

    Attributes:
        groups: in the order of the pipeline.
        parameters, code: by digest.
    """

    groups: list[Group]
    parameters: dict[str, Any]
    code: dict[str, dict[str, str]]

    def anchor(self, values: Sequence[str]) -> str:
        """The place of the cells that a number comes from; empty where none is nearer than the whole page.

        Args:
            values: what names the number's row in its table, in order. A cell is named after the same things in the
                same order, so the nearest group is the one whose name begins with most of them. Of equally near ones
                the last is taken: later stages read earlier ones.
        """
        nearest, most = "", 0
        for group in self.groups:
            found = _common(group.name.split("/"), values)
            if found and found >= most:
                nearest, most = group.anchor, found
        return nearest

    def stages(self) -> dict[str, list[Group]]:
        """The groups by their stage."""
        return {stage: list(groups) for stage, groups in groupby(self.groups, lambda group: group.stage)}

    def places(self) -> dict[str, str]:
        """Where the cell with a result stands on the page: digest to anchor."""
        return {cell["result"]: group.anchor for group in self.groups for cell in group.cells}


def read_records(folder: Path) -> Records:
    """The records of a paper.

    Args:
        folder: of the paper's results.
    """
    content = read_json(folder / FILE)
    if content is None:
        return Records([], {}, {})
    groups = [Group(*key, list(cells)) for key, cells in groupby(content["cells"], _group)]
    return Records(groups, content["parameters"], content["code"])


def _group(cell: dict[str, Any]) -> tuple[str, str]:
    stage, name = cell["stage"], cell["cell"]
    return stage, name.rpartition("/")[0] or name


def _common(parts: Sequence[str], values: Sequence[str]) -> int:
    """How many parts, from the first, occur among the values in the same order."""
    start = 0
    for count, part in enumerate(parts):
        if part not in values[start:]:
            return count
        start = values.index(part, start) + 1
    return len(parts)
