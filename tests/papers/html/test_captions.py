"""Captions are what the notebook says where it shows a table or a figure."""

from __future__ import annotations

import nbformat

from softmax_temperature.papers.html.captions import captions, clean
from softmax_temperature.runner.artifacts import digest_of_bytes


def test_a_table_is_found_by_its_name(notebook: nbformat.NotebookNode) -> None:
    found = captions(clean(notebook))
    assert found.title == "Focal loss, checked"
    table = found.tables["table-1"]
    assert table.caption.title == "Table 1: errors"
    assert table.caption.text.strip() == "<p>Read it from left to right.</p>"
    assert (table.rows, table.html) == (1, "<table><tbody><tr><td>1</td></tr></tbody></table>")


def test_a_figure_is_found_by_its_bytes(notebook: nbformat.NotebookNode, pixel: bytes) -> None:
    assert captions(clean(notebook)).figures[digest_of_bytes(pixel)].title == "Figure 1: curves"


def test_prose_without_a_heading_stays_under_the_last_one(notebook: nbformat.NotebookNode, pixel: bytes) -> None:
    notebook.cells[-2].source = "The second panel."
    caption = captions(clean(notebook)).figures[digest_of_bytes(pixel)]
    assert (caption.title, caption.text.strip()) == ("Table 1: errors", "<p>The second panel.</p>")


def test_words_are_kept_and_a_remark_that_nothing_ran_is_not(notebook: nbformat.NotebookNode) -> None:
    (words,) = captions(clean(notebook)).words
    assert words.caption.title == "What the study shows"
    assert "<strong>ECE</strong>" in words.text


def test_nothing_of_a_cleaned_notebook_acts(notebook: nbformat.NotebookNode) -> None:
    outputs = [output.data for cell in clean(notebook).cells for output in cell.get("outputs", [])]
    html = "".join(data.get("text/html", "") for data in outputs)
    assert "<strong>ECE</strong>" in html
    for acting in ("<script", "<img", "javascript:", "color: red"):
        assert acting not in html
