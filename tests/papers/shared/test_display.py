"""Tables for readers are the same from run to run, and text in them is text."""

from __future__ import annotations

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.display import shown


def test_shown_tables_are_equal_from_run_to_run_and_say_percent() -> None:
    table = pd.DataFrame(
        {"rule": ["x"], "accuracy": [0.123456], "whole": [0.02], "r": [0.5], "n": [3.0], "none": [np.nan]}
    )
    first, second = (shown(table, "t", percent=["accuracy", "whole"]).data for _ in range(2))
    assert first == second
    for text in ("accuracy (%)", ">12.3<", ">2.0<", ">0.500<", ">3<", ">–<"):
        assert text in first


def test_small_numbers_are_not_shown_as_nothing() -> None:
    table = pd.DataFrame({"rate": [0.0003, -0.0004, 0.0, 0.01]})
    for text in (">0.0003<", ">-0.0004<", ">0<", ">0.010<"):
        assert text in shown(table, "t").data


def test_names_are_escaped() -> None:
    table = pd.DataFrame({"dataset": ["<script>alert(1)</script>"], "n": [1]})
    assert "<script>alert" not in shown(table, "t").data


def test_numbers_link_to_the_records_of_the_cells_which_are_not_shown() -> None:
    table = pd.DataFrame(
        {"name": ["x", "y", "z"], "rate": [0.5, np.nan, 0.25], "change": ["1 → 2", "–", "3 → 4"]}
    ).assign(cells=["a/b; c/d", "a/b", None])
    first = shown(table, "t").data
    assert '<a href="records.json#a/b%3B%20c/d">0.500</a>' in first
    assert first.count("<a ") == 1, "no number, and a number that comes from no cell, lead nowhere"
    assert "cells" not in first
    second = shown(table, "t", numbers=["change"]).data
    assert '<a href="records.json#a/b%3B%20c/d">1 → 2</a>' in second
    assert second.count("<a ") == 1


def test_headings_are_escaped() -> None:
    assert "<b>" not in shown(pd.DataFrame({"<b>": [1]}), "t").data
