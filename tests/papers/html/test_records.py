"""A number links to the cells that it comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from softmax_temperature.papers.html.records import Records, read_records


def found(results: Path) -> Records:
    return read_records(results / "toy" / "focal")


def test_cells_that_differ_in_their_seed_stand_together(results: Path) -> None:
    groups = [(group.stage, group.name, len(group.cells)) for group in found(results).groups]
    assert groups == [("prepared/toy", ".", 1), ("focal/training", "toy/CE", 2), ("focal/evaluation", "toy/CE", 2)]


@pytest.mark.parametrize(
    ("cells", "anchors"),
    [
        (["focal/evaluation/toy/CE"], ["cells-focal-evaluation-toy-CE"]),
        (["focal/evaluation", "prepared/toy"], ["cells-prepared-toy-.", "cells-focal-evaluation-toy-CE"]),
        (["focal/evaluation/toy/C", "focal/eval", "toy/CE"], []),
        ([], []),
    ],
)
def test_a_number_comes_from_the_cells_whose_names_begin_as_it_says(
    results: Path, cells: list[str], anchors: list[str]
) -> None:
    assert [group.anchor for group in found(results).behind(cells)] == anchors


def test_a_group_is_called_by_its_name_and_count_or_by_its_stage(results: Path) -> None:
    assert [group.title for group in found(results).groups] == ["toy", "toy/CE (2)", "toy/CE (2)"]


def test_without_the_file_there_are_none(tmp_path: Path) -> None:
    assert read_records(tmp_path).groups == []
