"""Tables for readers are the same from run to run, text in them is text, and a missing
figure says so.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from IPython.display import Image, Markdown
from matplotlib.figure import Figure

from softmax_temperature.papers.shared.notebooks import drawn, found, shown
from softmax_temperature.papers.shared.sources import Linked


def test_numbers_of_a_table_are_equal_in_each_run_and_none_is_shown_as_0() -> None:
    row = {
        "rule": "x",
        "accuracy": 0.123456,
        "whole": 0.02,
        "r": 0.5,
        "n": 3.0,
        "none": np.nan,
    }
    table = pd.DataFrame([row | {"small": 0.0003, "less": -0.0004, "zero": 0.0}])
    first, second = (
        shown(table, "t", percent=["accuracy", "whole"]).data for _ in range(2)
    )
    assert first == second
    expected = (
        "accuracy (%)",
        ">12.3<",
        ">2.0<",
        ">0.500<",
        ">3<",
        ">0.0003<",
        ">-0.0004<",
        ">0<",
    )
    assert [text for text in expected if text not in first] == []
    assert "–" not in first, "a column that holds nothing"
    assert (
        shown(table[:0], "t").data == "*Nothing was trained for this in this profile.*"
    )


def test_names_and_headings_are_escaped() -> None:
    data = shown(
        pd.DataFrame({"<b>": ["<script>alert(1)</script>"], "n": [1]}), "t"
    ).data
    assert "<script>alert" not in data
    assert "<b>" not in data


def test_numbers_link_to_the_records_of_the_cells_which_are_not_shown() -> None:
    table = pd.DataFrame(
        {
            "name": [*"xyz"],
            "rate": [0.5, np.nan, 0.25],
            "change": ["1 → 2", "–", "3 → 4"],
        }
    )
    table = table.assign(cells=["a/b; c/d", "a/b", None])
    for numbers, text in ((None, "0.500"), (["change"], "1 → 2")):
        data = shown(table, "t", numbers=numbers).data
        assert f'<a href="records.json#a/b%3B%20c/d">{text}</a>' in data
        assert data.count("<a ") == 1, (
            "a missing number, and one without cells, have no link"
        )
        assert "cells" not in data


def test_what_was_not_run_is_folded_away_below_the_rest() -> None:
    rows = [[Linked("1", "a/b"), "2", "–"], ["–", "2", "not run: profile paper"]]
    table = pd.DataFrame(rows, columns=["CE", "printed", "status"], dtype=object)
    here, _, folded = shown(table, "t").data.partition(
        "<details><summary>A printed row, not run here</summary>"
    )
    assert '<a href="records.json#a/b">1</a>' in here
    assert ("profile paper" in here, "profile paper" in folded) == (False, True)


def test_a_figure_is_shown_as_wide_as_its_part_of_the_page_or_a_sentence_instead(
    tmp_path: Path,
) -> None:
    image, sentence = (
        drawn(Figure(figsize=(3.5, 1)), tmp_path, "half"),
        drawn(None, tmp_path, "none", "Nothing."),
    )
    assert isinstance(image, Image)
    assert image.width == 380
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"half.svg"}
    assert isinstance(sentence, Markdown)
    assert sentence.data == "*Nothing.*"


def test_results_are_found_from_a_folder_inside_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results" / "mini").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "results"):
        monkeypatch.chdir(folder)
        assert found("results/mini").resolve() == tmp_path / "results" / "mini"
