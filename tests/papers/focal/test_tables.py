"""Tables hold what the records say, worked out by hand; every printed number is beside ours, or said not to be run."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from softmax_temperature.papers.focal import tables
from softmax_temperature.papers.focal.records import Records
from softmax_temperature.papers.focal.tables import SPECS
from softmax_temperature.papers.shared.tables import published, read_csv, write_csv

CIFAR = "cifar10-resnet50"
OURS = {"dataset": "CIFAR-10", "network": "ResNet-50"}


@pytest.fixture(autouse=True)
def _in_the_project(project_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project_root)


def cell(table: pd.DataFrame, **where: str) -> pd.Series:
    rows = table[np.logical_and.reduce([table[column] == value for column, value in where.items()])]
    assert len(rows) == 1
    return rows.iloc[0]


def test_a_number_over_two_seeds_by_hand(records: Records) -> None:
    row = cell(tables.table(records, "table_1"), **OURS, method="CE", metric="ece")
    assert row["published"] == pytest.approx(0.0435)
    assert row["ours"] == pytest.approx(0.06)
    assert row["ours_sd"] == pytest.approx(0.02 / 2**0.5)
    # The standard error is sd / sqrt(2) = 0.01, so that ours is (0.06 - 0.0435) / 0.01 of it away.
    assert row["difference_in_standard_errors"] == pytest.approx(1.65)
    assert row[["seeds", "diverged_seeds", "status", "task"]].tolist() == [2, 0, "measured", CIFAR]


def test_the_standard_error_of_one_seed_is_that_of_its_bootstrap(records: Records) -> None:
    row = cell(tables.table(records, "table_1"), **OURS, method="Brier", metric="ece")
    error = 0.02 / (2 * stats.norm.ppf(0.95))
    assert row["ours"] == pytest.approx(0.02), "the diverged seed's 0.50 does not count"
    assert row["difference_in_standard_errors"] == pytest.approx((0.02 - 0.0182) / error)
    assert row[["seeds", "diverged_seeds", "status"]].tolist() == [1, 1, "measured"]
    assert np.isnan(row["ours_sd"])


def test_no_difference_without_a_standard_error(records: Records) -> None:
    table = tables.table(records, "table_1")
    for method in ("FLSD-53", "Brier"):  # Equal temperatures of two seeds; one seed, and no bootstrap of temperatures.
        row = cell(table, **OURS, method=method, metric="temperature")
        assert row["ours"] == pytest.approx(1.1)
        assert np.isnan(row["difference_in_standard_errors"])
    assert cell(table, **OURS, method="CE", metric="temperature")["difference_in_standard_errors"] == pytest.approx(0)


def test_a_task_of_ours_has_its_own_names_and_nothing_printed(records: Records) -> None:
    rows = tables.table(records, "table_1").query("dataset == 'digits'")
    assert set(rows["network"]) == {"small"}
    assert rows["published"].isna().all()
    assert cell(rows, method="CE", metric="ece")["ours"] == pytest.approx(0.11)
    lost = cell(rows, method="Brier", metric="ece")
    assert lost[["seeds", "diverged_seeds", "status"]].tolist() == [0, 2, "diverged"]
    assert np.isnan(lost["ours"])


@pytest.mark.parametrize("name", [name for name, spec in SPECS.items() if spec.printed])
def test_every_printed_number_is_there_once(records: Records, name: str) -> None:
    table, printed = tables.table(records, name), published("focal", SPECS[name].title)
    values = printed["value"].astype(float) / np.where(printed["unit"] == "percent", 100, 1)
    assert sorted(table["published"].dropna()) == pytest.approx(sorted(values))


def test_what_no_task_gives_is_not_run_and_says_which_profile_would(records: Records) -> None:
    table = tables.table(records, "table_1")
    there = cell(table, **OURS, method="MMCE", metric="ece")
    assert there["status"] == "not run: profile cifar10"
    assert there["published"] == pytest.approx(0.0456)
    assert np.isnan(there["ours"])
    elsewhere = cell(table, dataset="CIFAR-100", network="ResNet-50", method="CE", metric="ece")
    assert elsewhere["status"] == "not run: profile paper"
    texts = table[table["dataset"] == "20 Newsgroups"]
    assert set(texts["status"]) == {"not run: profile text_cpu"}
    outliers = tables.table(records, "table_3").query("status.str.startswith('not run')")
    assert set(outliers["status"]) == {"not run: profile paper"}, "Table 3 has no ResNet-50"


def test_out_of_distribution_sets_are_named_as_printed(records: Records) -> None:
    names = tables.table(records, "table_3").query("status == 'measured'")["dataset"]
    assert set(names) == {"CIFAR-10 vs SVHN", "CIFAR-10 vs CIFAR-10-C (Gaussian noise sev 5)"}
    row = cell(
        tables.table(records, "table_3"),
        dataset="CIFAR-10 vs SVHN",
        network="ResNet-50",
        method="FLSD-53",
        metric="auroc",
    )
    assert row["ours"] == pytest.approx(0.905)
    released = tables.table(records, "released_ood")
    assert released[["published", "ours"]].to_numpy() == pytest.approx(np.array([[0.9433, 0.805]]))


def test_early_stopping_has_a_row_for_each_criterion(records: Records) -> None:
    table = tables.table(records, "table_j1")
    assert len(table) == 2 * 4 * 2 * 2, "tasks, criteria, methods, metrics"
    row = cell(table, **OURS, criterion="nll", method="FLSD-53", metric="ece")
    assert row["ours"] == pytest.approx(0.0205)


@pytest.mark.parametrize("name", SPECS)
def test_a_profile_without_finished_runs_has_tables_too(records: Records, name: str) -> None:
    records.trainings["diverged"] = True
    table = tables.table(records, name)
    assert table["ours"].isna().all()
    assert "measured" not in set(table["status"])


def test_the_ablation_pairs_seeds(records: Records) -> None:
    table = tables.ablation(records)
    row = cell(table, task=CIFAR, method="CE", metric="ece")
    # Changed minus main: 0.04 - 0.05 and 0.08 - 0.07.
    assert row[["task", "variant", "seeds", "status"]].tolist() == [CIFAR, "mean reduction", 2, "measured"]
    assert row[["main", "changed", "difference"]].tolist() == pytest.approx([0.06, 0.06, 0])
    assert row["difference_sd"] == pytest.approx(0.02 / 2**0.5)
    records.trainings.loc[lambda rows: (rows["task"] == CIFAR) & (rows["seed"] == 1), "diverged"] = True
    assert cell(tables.ablation(records), method="CE", metric="ece")["difference"] == pytest.approx(-0.01)
    records.trainings.loc[lambda rows: rows["task"] == CIFAR, "diverged"] = True
    rows = tables.ablation(records).query("task == @CIFAR")
    assert set(rows["status"]) == {"no finished run of the main recipe"}
    one = {name: rows[rows["task"] == CIFAR] for name, rows in vars(records).items() if "task" in rows}
    assert tables.ablation(replace(records, **one)).empty


def test_a_method_as_written_is_compared_with_the_released_one(records: Records) -> None:
    row = cell(tables.ablation(records), task="digits-small", method="MMCE", metric="ece")
    assert row[["variant", "seeds"]].tolist() == ["as written", 2]
    assert row[["main", "changed", "difference"]].tolist() == pytest.approx([0.085, 0.105, 0.02])
    assert "MMCE-written" not in set(tables.table(records, "table_1")["method"])


def test_every_table_says_what_is_not_as_printed(records: Records) -> None:
    words = pd.Series([f"half of {task}" for task in records.tasks["task"]])
    changed = replace(records, tasks=records.tasks.assign(differs=words))
    for name in SPECS:
        rows = tables.table(changed, name)
        assert set(rows.loc[rows["task"] == CIFAR, "differs"]) <= {f"7 of 350 epochs, half of {CIFAR}"}
        # Nothing is printed for it that was trained for longer.
        assert set(rows.loc[rows["task"] == "digits-small", "differs"]) <= {"half of digits-small"}
        assert rows.loc[rows["status"].str.startswith("not run"), "differs"].isna().all()


def test_top_five_of_five_classes_are_not_shown(records: Records) -> None:
    few = replace(records, tasks=records.tasks.assign(classes=[10, 5, 10]))
    assert set(tables.table(few, "table_f7")["task"]) == {CIFAR}
    assert set(tables.table(few, "table_1")["task"]) == {CIFAR, "digits-small", ""}
    assert set(tables.table(records, "table_f7")["task"]) == {CIFAR, "digits-small"}


def test_the_ablation_for_a_reader_survives_its_file(records: Records, tmp_path: Path) -> None:
    write_csv(tmp_path / "ablation.csv", tables.ablation(records))
    wide = tables.wide_ablation(read_csv(tmp_path / "ablation.csv")).set_index("method")
    assert "0.0600 → 0.0600 (± 0.0141)" in wide["ece"].tolist()


def test_table_k1_has_every_printed_number_beside_ours(records: Records) -> None:
    table = tables.table_k1(records)
    row = cell(table, criterion="best BLEU over temperatures", method="FL", metric="bleu")
    assert [row[name] for name in ("published", "ours", "seeds")] == pytest.approx([0.2639, 0.2905, 2])
    assert row["ours_sd"] == pytest.approx(0.001 / 2**0.5)
    assert row["difference_in_standard_errors"] == pytest.approx((0.2905 - 0.2639) / 0.0005)
    row = cell(table, criterion="ECE", method="LS", metric="temperature")
    assert (row["published"], row["ours"], row["dataset"]) == (1, 1, "WMT14 En-De")
    assert cell(table, criterion="ECE", method="CE", metric="ece_after_scaling")["ours"] == pytest.approx(0.0085)
    assert set(table["status"]) == {"measured"}
    assert table["published"].notna().sum() == 5
    assert "WMT14 En-De" not in set(tables.not_in_a_table()["dataset"]), "no number of the appendix is left over"


@pytest.mark.parametrize("rows", [0, 6])
def test_what_was_not_translated_says_which_profile_would(records: Records, rows: int) -> None:
    others = records.translation_runs.iloc[:rows].assign(dataset="farm")
    table = tables.table_k1(replace(records, translation_runs=others))
    printed = table[table["published"].notna()]
    assert len(printed) == 5
    assert (printed["status"] == "not run: profile paper").all()
    assert printed["ours"].isna().all()


def test_a_loss_whose_translations_diverged_says_so(records: Records) -> None:
    runs = records.translation_runs
    runs["diverged"] = (runs["arm"] == "LS") | ((runs["arm"] == "CE") & (runs["seed"] == 0))
    table = tables.table_k1(records)
    assert cell(table, criterion="ECE", method="LS", metric="ece")["status"] == "diverged"
    row = cell(table, criterion="ECE", method="CE", metric="ece")
    assert [row[name] for name in ("ours", "seeds", "diverged_seeds")] == pytest.approx([0.07, 1, 1])


def test_labelled_shifts_have_a_table_of_their_own(records: Records) -> None:
    table = tables.table(records, "table_shift")
    row = cell(table, dataset="CIFAR-10 vs cinic10", method="CE", metric="ece_after_scaling")
    assert row[["ours", "seeds"]].tolist() == pytest.approx([0.2, 2])
    assert cell(table, dataset="CIFAR-10 vs cinic10", method="CE", metric="error")["ours"] == pytest.approx(0.35)
    assert tables.table(replace(records, shift=records.shift.iloc[:0]), "table_shift").empty
