"""The records that numbers link to: one for each cell, in groups that differ in the last part of their name."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from softmax_temperature.papers.shared.results import read_provenance

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
    def title(self) -> str:
        """The name with the count of its cells, where there are several; of a stage with one cell that of the stage."""
        name = self.stage.rpartition("/")[2] if self.name == "." else self.name
        return f"{name} ({len(self.cells)})" if len(self.cells) > 1 else name

    @property
    def anchor(self) -> str:
        """The name of its place on the page of records."""
        return "cells-" + re.sub(r"[^\w.-]+", "-", f"{self.stage}-{self.name}")

    def is_of(self, cells: str) -> bool:
        """Whether `cells` names these cells: by the stage and what their names begin with."""
        return f"{self.stage}/{self.name}/".startswith(f"{cells}/")


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

    def behind(self, cells: Sequence[str]) -> list[Group]:
        """The groups that a number comes from, in the order of the pipeline.

        Args:
            cells: as `claims.Evidence` names them.
        """
        return [group for group in self.groups if any(group.is_of(each) for each in cells)]

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
    content = read_provenance(folder)
    if content is None:
        return Records([], {}, {})
    groups = [Group(*key, list(cells)) for key, cells in groupby(content["cells"], _group)]
    return Records(groups, content["parameters"], content["code"])


def _group(cell: dict[str, Any]) -> tuple[str, str]:
    stage, name = cell["stage"], cell["cell"]
    return stage, name.rpartition("/")[0] or name
