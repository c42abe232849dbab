"""Reading results: figures stand below the words about them, and a number leads to the cells that it comes from."""

from pathlib import Path

import nbformat
import pytest

from softmax_temperature.papers.html.reading import about, clean, content, read_records


def test_words_tables_and_figures_stand_in_the_order_of_the_notebook(notebook: nbformat.NotebookNode) -> None:
    html = content(clean(notebook))
    parts = ["In this profile.", ">Table 1: errors</h2>", '<table id="T_table-1">', ">Figure 1: curves</h2>", "<img "]
    places = [html.index(part) for part in parts]
    assert places == sorted(places)
    assert 'alt="Figure 1: curves" width="380"' in html
    assert "shown(table)" not in html, "code is left out"
    assert "Focal loss, checked" not in html, "the page has the title already"
    assert "Judged here." not in html, "claims are shown in another way"


def test_nothing_of_a_cleaned_notebook_acts(notebook: nbformat.NotebookNode) -> None:
    html = content(clean(notebook))
    assert "<strong>ECE</strong>" in html
    for acting in ("<script", "<img src=x", "javascript:", "color: red"):
        assert acting not in html


def test_a_page_says_which_data_networks_and_seeds() -> None:
    tasks = {name: {"dataset": "cifar10", "network": name} for name in ("resnet8", "vgg")}
    assert about({"seeds": 2, "tasks": tasks}) == "data: cifar10; networks: resnet8, vgg; seeds: 2"
    assert about({"datasets": ["dtd"], "backbones": ["clip"], "sweeps": None}) == "data: dtd; networks: clip"
    assert about({}) == ""


def test_cells_that_differ_in_their_seed_stand_together(results: Path) -> None:
    groups = [(group.stage, group.name, group.title) for group in read_records(results / "toy" / "focal").groups]
    assert groups == [
        ("prepared/toy", ".", "toy"),
        ("focal/training", "toy/CE", "toy/CE (2)"),
        ("focal/evaluation", "toy/CE", "toy/CE (2)"),
    ]


@pytest.mark.parametrize(
    ("cells", "anchors"),
    [
        (["focal/evaluation/toy/CE"], ["cells-focal-evaluation-toy-CE"]),
        (["focal/evaluation", "prepared/toy"], ["cells-prepared-toy-.", "cells-focal-evaluation-toy-CE"]),
        (["focal/evaluation/toy/C", "focal/eval", "toy/CE"], []),
    ],
)
def test_a_number_comes_from_the_cells_whose_names_begin_as_it_says(
    results: Path, cells: list[str], anchors: list[str]
) -> None:
    assert [group.anchor for group in read_records(results / "toy" / "focal").behind(cells)] == anchors


def test_without_the_file_there_are_none(tmp_path: Path) -> None:
    assert read_records(tmp_path).groups == []
