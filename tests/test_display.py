"""Tables for readers are the same from run to run, and text in them is text."""

from __future__ import annotations

import numpy as np
import pandas as pd

from softmax_temperature.display import shown


def test_shown_tables_are_equal_from_run_to_run_and_say_percent() -> None:
    table = pd.DataFrame({"rule": ["x"], "accuracy": [0.123456], "r": [0.5], "n": [3.0], "none": [np.nan]})
    first, second = (shown(table, "t", percent=["accuracy"]).data for _ in range(2))
    assert first == second
    for text in ("accuracy (%)", ">12.3<", ">0.500<", ">3<", ">–<"):
        assert text in first


def test_names_are_escaped() -> None:
    table = pd.DataFrame({"dataset": ["<script>alert(1)</script>"], "n": [1]})
    assert "<script>alert" not in shown(table, "t").data
