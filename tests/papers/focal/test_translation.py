"""Appendix K: the table beside the printed numbers, the claims by hand, the figure and what is said about them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.papers.focal import tables
from softmax_temperature.papers.focal.findings import findings
from softmax_temperature.papers.focal.records import Records
from softmax_temperature.papers.focal.result_figures import figure_k1
from softmax_temperature.papers.focal.translation import CURVE_COLUMNS, RUN_COLUMNS
from softmax_temperature.papers.focal.translation_claims import TRANSLATION_CLAIMS
from softmax_temperature.papers.focal.translation_table import table_k1
from softmax_temperature.papers.shared.claims import HOLDS, NOT_TESTED, judge_all
from softmax_temperature.papers.shared.tables import read_csv, write_csv

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


def judged(records: Records) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in judge_all("focal", TRANSLATION_CLAIMS, records, profile="test")}


def test_every_printed_number_stands_beside_ours(records: Records) -> None:
    table = table_k1(records)
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
    for table in (table_k1(without), table_k1(replace(records, translation_runs=others))):
        printed = table[table["published"].notna()]
        assert len(printed) == 5
        assert (printed["status"] == "not run: profile paper").all()
        assert printed["ours"].isna().all()
    assert set(table_k1(without)["dataset"]) == {"WMT14 En-De"}


def test_a_method_whose_trainings_diverged_says_so(records: Records) -> None:
    runs = records.translation_runs
    runs.loc[runs["arm"] == "LS", "diverged"] = True
    runs.loc[(runs["arm"] == "CE") & (runs["seed"] == 0), "diverged"] = True
    table = table_k1(records)
    assert number(table, "ECE", "LS", "ece")["status"] == "diverged"
    row = number(table, "ECE", "CE", "ece")
    assert [row[name] for name in ("ours", "seeds", "diverged_seeds")] == pytest.approx([0.07, 1, 1])
    assert "diverged" in tables.wide(table)["LS"].tolist()


def test_the_layout_for_a_reader_survives_the_file(records: Records, without: Records, tmp_path: Path) -> None:
    for some in (records, without):
        write_csv(tmp_path / "table.csv", table_k1(some))
        wide = tables.wide(read_csv(tmp_path / "table.csv"))
        assert list(wide.columns) == ["dataset", "network", "criterion", "numbers", "CE", "LS", "FL"]
        [printed] = [row for _, row in wide.iterrows() if row["criterion"] == BEST and "printed" in row["numbers"]]
        assert printed[["CE", "LS", "FL"]].tolist() == ["26.33", "26.36", "26.39"]
    wide = tables.wide(table_k1(records))
    ours = wide[wide["numbers"] == "ours, 2 seeds"].set_index("criterion")
    assert ours["CE"].to_dict() == {"ECE": "6.50 / 0.85 (1.2)", "BLEU": "25.05 / 26.05", BEST: "26.05 (1.2)"}


def test_no_number_of_the_appendix_is_left_over() -> None:
    assert "WMT14 En-De" not in set(tables.not_in_a_table()["dataset"])


def test_the_closer_of_two_losses_decides(records: Records, shifted: Callable[..., Records]) -> None:
    row = judged(records)["translation-focal-calibrates"]
    assert [row["value"], row["n"]] == pytest.approx([-0.02, 2])
    assert row["unit"] == "ECE, against LS"
    row = judged(records)["translation-focal-bleu"]
    assert row["value"] == pytest.approx(2)
    assert row["unit"] == "BLEU, against LS"
    worse = shifted(records, "translation_runs", "ece", -0.05, arm="CE", seed=0)
    assert judged(worse)["translation-focal-calibrates"]["verdict"] != HOLDS


def test_temperatures_next_to_one_on_the_grid_are_not_one(records: Records, shifted: Callable[..., Records]) -> None:
    for by in (-0.1, 0.1):
        moved = shifted(records, "translation_runs", "temperature", by, arm="FL")
        assert judged(moved)["translation-focal-temperature-is-one"]["verdict"] != HOLDS
        assert judged(moved)["translation-ce-temperature-is-not-one"]["verdict"] == HOLDS
    rounded = shifted(records, "translation_runs", "temperature", 1e-9, arm="FL")
    assert judged(rounded)["translation-focal-temperature-is-one"]["verdict"] == HOLDS


def test_distances_between_temperatures_by_hand(records: Records) -> None:
    # Of CE both are 1.2, of the others 1.0.
    row = judged(records)["translation-calibrated-where-good"]
    assert (row["value"], row["n"], row["note"]) == (0, 6, "6 of 6 trainings within 0.2")


def test_what_cannot_be_judged_says_why(records: Records, without: Records) -> None:
    rows = judged(without)
    assert {row["verdict"] for row in rows.values()} == {NOT_TESTED}
    assert {row["note"] for row in rows.values()} == {"this profile does not translate"}
    records.translation_runs["diverged"] |= records.translation_runs["arm"] == "LS"
    rows = judged(records)
    assert rows["translation-focal-calibrates"]["note"] == "every translation model of LS diverged"
    assert rows["translation-ce-temperature-is-not-one"]["verdict"] == HOLDS


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


def test_the_findings_tell_it(records: Records, without: Records) -> None:
    text = findings(records)
    assert "CE ECE 6.5 → 0.9 with temperature 1.2, BLEU 25.1 → 26.1" in text
    assert "Translation" not in findings(without)
