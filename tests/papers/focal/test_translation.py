"""Appendix K: the table beside the printed numbers, and the figure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.papers.focal import tables
from softmax_temperature.papers.focal.records import Records
from softmax_temperature.papers.focal.result_figures import figure_k1
from softmax_temperature.papers.focal.translation import CURVE_COLUMNS, RUN_COLUMNS

BEST = "best BLEU over temperatures"


@pytest.fixture(autouse=True)
def _in_project(project_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project_root)


@pytest.fixture
def without(records: Records) -> Records:
    """Of a profile that translates nothing."""
    runs, curves = pd.DataFrame(columns=list(RUN_COLUMNS)), pd.DataFrame(columns=list(CURVE_COLUMNS))
    return replace(records, translation_runs=runs, translation_curves=curves)


def number(table: pd.DataFrame, criterion: str, method: str, metric: str) -> pd.Series[Any]:
    columns = table["criterion"], table["method"], table["metric"]
    chosen = np.logical_and.reduce([a == b for a, b in zip(columns, (criterion, method, metric), strict=True)])
    [row] = [row for _, row in table[chosen].iterrows()]
    return row


def test_every_printed_number_stands_beside_ours(records: Records) -> None:
    table = tables.table_k1(records)
    row = number(table, BEST, "FL", "bleu")
    assert [row[name] for name in ("published", "ours", "seeds")] == pytest.approx([0.2639, 0.2905, 2])
    assert row["ours_sd"] == pytest.approx(0.001 / 2**0.5)
    assert row["difference_in_standard_errors"] == pytest.approx((0.2905 - 0.2639) / 0.0005)
    row = number(table, "ECE", "LS", "temperature")
    assert (row["published"], row["ours"], row["dataset"]) == (1, 1, "WMT14 En-De")
    assert number(table, "ECE", "CE", "ece_after_scaling")["ours"] == pytest.approx(0.0085)
    assert set(table["status"]) == {"measured"}
    assert table["published"].notna().sum() == 5


def test_what_did_not_run_says_which_profile_would(records: Records, without: Records) -> None:
    others = records.translation_runs.assign(dataset="farm")
    for table in (tables.table_k1(without), tables.table_k1(replace(records, translation_runs=others))):
        printed = table[table["published"].notna()]
        assert len(printed) == 5
        assert (printed["status"] == "not run: profile paper").all()
        assert printed["ours"].isna().all()
    assert set(tables.table_k1(without)["dataset"]) == {"WMT14 En-De"}


def test_a_method_whose_trainings_diverged_says_so(records: Records) -> None:
    runs = records.translation_runs
    runs.loc[runs["arm"] == "LS", "diverged"] = True
    runs.loc[(runs["arm"] == "CE") & (runs["seed"] == 0), "diverged"] = True
    table = tables.table_k1(records)
    assert number(table, "ECE", "LS", "ece")["status"] == "diverged"
    row = number(table, "ECE", "CE", "ece")
    assert [row[name] for name in ("ours", "seeds", "diverged_seeds")] == pytest.approx([0.07, 1, 1])


def test_no_number_of_the_appendix_is_left_over() -> None:
    assert "WMT14 En-De" not in set(tables.not_in_a_table()["dataset"])


def test_the_figure_shows_means_and_every_seed(records: Records) -> None:
    curves = records.translation_curves
    curves.loc[(curves["arm"] == "CE") & (curves["seed"] == 1), "bleu"] += 0.02
    figure = figure_k1(records)
    assert figure is not None
    assert len(figure.axes) == 6
    _, dots, mean, best = figure.axes[0].lines
    assert np.asarray(dots.get_ydata()).tolist() == pytest.approx([24, 25, 26, 26, 27, 28])
    assert np.asarray(mean.get_ydata()).tolist() == pytest.approx([25, 26, 27])
    assert [np.asarray(best.get_xdata()).item(), np.asarray(best.get_ydata()).item()] == pytest.approx([1.2, 27])
    least = figure.axes[4].lines[-1]
    assert [np.asarray(least.get_xdata()).item(), np.asarray(least.get_ydata()).item()] == pytest.approx([1.0, 1.0])


def test_there_is_no_figure_of_nothing_and_a_diverged_loss_is_named(records: Records, without: Records) -> None:
    assert figure_k1(without) is None
    figure = figure_k1(replace(records, translation_curves=records.translation_curves.query("arm != 'FL'")))
    assert figure is not None
    assert [text.get_text() for axes in figure.axes for text in axes.texts] == ["diverged"] * 2
