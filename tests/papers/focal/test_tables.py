"""Tables hold what the records say, worked out by hand; every printed number is beside
ours, or said not to be run.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from softmax_temperature.papers.focal import tables
from softmax_temperature.papers.focal.records import Records
from softmax_temperature.papers.focal.tables import SPECS
from softmax_temperature.papers.shared.tables import published, read_csv, write_csv
from tests.papers.focal.conftest import CIFAR, DIGITS

OURS = {"dataset": "CIFAR-10", "network": "ResNet-50"}
ERROR = "difference_in_standard_errors"


@pytest.fixture(autouse=True)
def _in_the_project(project_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project_root)


def cell(table: pd.DataFrame, **where: str) -> Any:
    rows = table[(table[list(where)] == pd.Series(where)).all(axis=1)]
    assert len(rows) == 1
    return rows.iloc[0]


def test_numbers_over_seeds_by_hand(records: Records) -> None:
    table = tables.table(records, "table_1")
    row = cell(table, **OURS, method="CE", metric="ece")
    # The standard error is sd / sqrt(2) = 0.01, so that ours is (0.06 - 0.0435) / 0.01
    # of it away.
    assert row[["published", "ours", "ours_sd", ERROR]].tolist() == pytest.approx(
        [0.0435, 0.06, 0.02 / 2**0.5, 1.65]
    )
    assert row[["seeds", "diverged_seeds", "status", "task"]].tolist() == [
        2,
        0,
        "measured",
        CIFAR,
    ]
    # One seed is left, whose 0.02 has an error by its bootstrap: the other diverged,
    # with 0.50.
    row = cell(table, **OURS, method="Brier", metric="ece")
    error = 0.02 / (2 * stats.norm.ppf(0.95))
    assert row[["ours", ERROR]].tolist() == pytest.approx(
        [0.02, (0.02 - 0.0182) / error]
    )
    assert row[["seeds", "diverged_seeds", "status"]].tolist() == [1, 1, "measured"]
    lost = cell(table, dataset="digits", network="small", method="Brier", metric="ece")
    assert lost[["seeds", "diverged_seeds", "status"]].tolist() == [0, 2, "diverged"]
    # Equal temperatures of two seeds; one seed, and no bootstrap of temperatures: no
    # standard error.
    for method in ("FLSD-53", "Brier"):
        assert np.isnan(cell(table, **OURS, method=method, metric="temperature")[ERROR])


@pytest.mark.parametrize("name", SPECS)
def test_every_printed_number_is_there_once_also_if_nothing_finished(
    records: Records, name: str
) -> None:
    printed = (
        published("focal", SPECS[name].title)
        if SPECS[name].printed
        else pd.DataFrame({"value": [], "unit": []})
    )
    values: Any = printed["value"].astype(float) / np.where(
        printed["unit"] == "percent", 100, 1
    )
    table = tables.table(records, name)
    assert "measured" in set(table["status"])
    assert sorted(table["published"].dropna()) == pytest.approx(sorted(values))
    records.trainings["diverged"] = True
    table = tables.table(records, name)
    assert sorted(table["published"].dropna()) == pytest.approx(sorted(values))
    assert table["ours"].isna().all()
    assert "measured" not in set(table["status"])


def test_what_no_task_gives_is_not_run_and_says_which_profile_would(
    records: Records,
) -> None:
    rows = tables.table(records, "table_1").query("ours != ours and method != 'Brier'")
    profiles = {
        (row["dataset"], row["network"]): row["status"]
        for row in rows.to_dict("records")
    }
    assert profiles["CIFAR-10", "ResNet-50"] == "not run: profile cifar10"
    assert profiles["CIFAR-100", "ResNet-50"] == "not run: profile paper"
    assert profiles["20 Newsgroups", "Global Pooling CNN"] == "not run: profile text"


def test_sets_of_other_images_are_part_of_the_name_and_criteria_are_not(
    records: Records,
) -> None:
    table = tables.table(records, "table_3")
    names = table.loc[table["status"] == "measured", "dataset"]
    assert set(names) == {
        "CIFAR-10 vs SVHN",
        "CIFAR-10 vs CIFAR-10-C (Gaussian noise sev 5)",
    }
    row = cell(
        table,
        dataset="CIFAR-10 vs SVHN",
        network="ResNet-50",
        method="FLSD-53",
        metric="auroc",
    )
    assert row["ours"] == pytest.approx(0.905)
    released = tables.table(records, "released_ood")
    assert released[["published", "ours"]].to_numpy() == pytest.approx(
        np.array([[0.9433, 0.805]])
    )
    shift = tables.table(records, "table_shift").query(
        "dataset == 'CIFAR-10 vs cinic10' and method == 'CE'"
    )
    assert shift["ours"].tolist() == pytest.approx([0.35, 0.3, 0.2]), (
        "error, ECE before and after scaling"
    )
    assert tables.table(
        replace(records, shift=records.shift.iloc[:0]), "table_shift"
    ).empty
    table = tables.table(records, "table_j1")
    assert len(table) == 2 * 4 * 2 * 2, "tasks, criteria, methods, metrics"
    assert cell(table, **OURS, criterion="nll", method="FLSD-53", metric="ece")[
        "ours"
    ] == pytest.approx(0.0205)


def test_the_ablation_pairs_seeds(records: Records, tmp_path: Path) -> None:
    table = tables.ablation(records)
    row = cell(table, task=CIFAR, method="CE", metric="ece")
    # Changed minus main: 0.04 - 0.05 and 0.08 - 0.07.
    assert row[["task", "variant", "seeds", "status"]].tolist() == [
        CIFAR,
        "mean reduction",
        2,
        "measured",
    ]
    numbers = row[["main", "changed", "difference", "difference_sd"]].tolist()
    assert numbers == pytest.approx([0.06, 0.06, 0, 0.02 / 2**0.5])
    write_csv(tmp_path / "ablation.csv", table)
    wide = tables.wide_ablation(read_csv(tmp_path / "ablation.csv"))
    assert "6.00 → 6.00 (± 1.41)" in wide["ece (%)"].tolist()
    assert "2.50 → 2.50 (± 0.00)" in wide["temperature"].tolist()
    row = cell(
        table, task=DIGITS, method="MMCE", metric="ece"
    )  # As the text has it, and as released.
    assert row[["variant", "main", "changed"]].tolist() == [
        "as written",
        pytest.approx(0.085),
        pytest.approx(0.105),
    ]
    assert "MMCE-written" not in set(tables.table(records, "table_1")["method"])
    records.trainings.loc[
        lambda rows: (rows["task"] == CIFAR) & (rows["seed"] == 1), "diverged"
    ] = True
    assert cell(tables.ablation(records), method="CE", metric="ece")[
        "difference"
    ] == pytest.approx(-0.01)
    records.trainings.loc[lambda rows: rows["task"] == CIFAR, "diverged"] = True
    rows = tables.ablation(records).query("task == @CIFAR")
    assert set(rows["status"]) == {"no finished run of the main recipe"}
    one = {
        name: rows[rows["task"] == CIFAR]
        for name, rows in vars(records).items()
        if "task" in rows
    }
    assert tables.ablation(replace(records, **one)).empty


def test_tables_say_what_is_not_as_printed(records: Records) -> None:
    words = pd.Series([f"half of {task}" for task in records.tasks["task"]])
    rows = tables.table(
        replace(records, tasks=records.tasks.assign(differs=words)), "table_1"
    )
    assert set(rows.loc[rows["task"] == CIFAR, "differs"]) == {
        f"7 of 350 epochs, half of {CIFAR}"
    }
    # Nothing is printed for it that was trained for longer.
    assert set(rows.loc[rows["task"] == DIGITS, "differs"]) <= {"half of digits-small"}
    assert rows.loc[rows["status"].str.startswith("not run"), "differs"].isna().all()


def test_table_k1_has_every_printed_number_beside_ours(records: Records) -> None:
    table = tables.table_k1(records)
    row = cell(
        table, criterion="best BLEU over temperatures", method="FL", metric="bleu"
    )
    numbers = row[["published", "ours", "ours_sd", "seeds", ERROR]].tolist()
    assert numbers == pytest.approx(
        [0.2639, 0.2905, 0.001 / 2**0.5, 2, (0.2905 - 0.2639) / 0.0005]
    )
    row = cell(table, criterion="ECE", method="LS", metric="temperature")
    assert (row["published"], row["ours"], row["dataset"]) == (1, 1, "WMT14 En-De")
    assert cell(table, criterion="ECE", method="CE", metric="ece_after_scaling")[
        "ours"
    ] == pytest.approx(0.0085)
    assert (set(table["status"]), table["published"].notna().sum()) == ({"measured"}, 5)
    assert "WMT14 En-De" not in set(tables.not_in_a_table()["dataset"]), (
        "no number of the appendix is left over"
    )


def test_what_was_not_translated_or_diverged_says_so(records: Records) -> None:
    runs = records.translation_runs
    for others in (runs.iloc[:0], runs.assign(dataset="farm")):
        table = tables.table_k1(replace(records, translation_runs=others)).dropna(
            subset="published"
        )
        assert table["status"].tolist() == ["not run: profile paper"] * 5
        assert table["ours"].isna().all()
    runs["diverged"] = (runs["arm"] == "LS") | (
        (runs["arm"] == "CE") & (runs["seed"] == 0)
    )
    table = tables.table_k1(records).query("criterion == 'ECE'")
    assert cell(table, method="LS", metric="ece")["status"] == "diverged"
    row = cell(table, method="CE", metric="ece")
    assert row[["ours", "seeds", "diverged_seeds"]].tolist() == pytest.approx(
        [0.07, 1, 1]
    )
