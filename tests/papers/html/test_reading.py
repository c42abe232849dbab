"""Reading results: captions are those of the notebook, and a number leads to the cells that it comes from."""

from __future__ import annotations

from pathlib import Path

import nbformat
import pytest

from softmax_temperature.papers.html.model import Records
from softmax_temperature.papers.html.reading import clean, read_records, shown
from softmax_temperature.runner.artifacts import digest_of_bytes


def test_a_table_is_found_by_its_name(notebook: nbformat.NotebookNode) -> None:
    found = shown(clean(notebook))
    assert found.title == "Focal loss, checked"
    table = found.tables["table-1"]
    assert table.caption.title == "Table 1: errors"
    assert table.caption.text.strip() == "<p>Read it from left to right.</p>"
    assert (table.rows, table.html) == (1, "<table><tbody><tr><td>1</td></tr></tbody></table>")


def test_a_figure_is_found_by_its_bytes(notebook: nbformat.NotebookNode, pixel: bytes) -> None:
    assert shown(clean(notebook)).figures[digest_of_bytes(pixel)].title == "Figure 1: curves"


def test_prose_without_a_heading_stays_under_the_last_one(notebook: nbformat.NotebookNode, pixel: bytes) -> None:
    notebook.cells[-2].source = "The second panel."
    caption = shown(clean(notebook)).figures[digest_of_bytes(pixel)]
    assert (caption.title, caption.text.strip()) == ("Table 1: errors", "<p>The second panel.</p>")


def test_nothing_of_a_cleaned_notebook_acts(notebook: nbformat.NotebookNode) -> None:
    outputs = [output.data for cell in clean(notebook).cells for output in cell.get("outputs", [])]
    html = "".join(data.get("text/html", "") for data in outputs)
    assert "<strong>ECE</strong>" in html
    for acting in ("<script", "<img", "javascript:", "color: red"):
        assert acting not in html


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
