"""Tables match hand-worked values; printed numbers are compared or marked "not run"."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from softmax_temperature.papers.focal import ablation, tables
from softmax_temperature.papers.focal.study import CE, LS_01, tidied, title
from softmax_temperature.papers.focal.tables import TABLES, LossTable
from softmax_temperature.papers.shared.factors import ALL, where
from softmax_temperature.papers.shared.files import read_csv, write_csv
from softmax_temperature.papers.shared.printed import published
from softmax_temperature.papers.shared.runs import Runs
from tests.papers.focal.conftest import CIFAR, DIGITS, STOPPED
from tests.papers.focal.made_runs import diverged, shifted, without
from tests.profiles import profile

OURS = {"dataset": "CIFAR-10", "network": "ResNet-50"}
ERROR = "difference_in_standard_errors"


@pytest.fixture(autouse=True)
def _in_the_project(project_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project_root)


BY_NAME = {table.name: table for table in TABLES}


def made(name: str, runs: Runs) -> pd.DataFrame:
    return BY_NAME[name].make(runs)


def cell(table: pd.DataFrame, **where: str) -> Any:
    rows = table[(table[list(where)] == pd.Series(where)).all(axis=1)]
    assert len(rows) == 1
    return rows.iloc[0]


@pytest.mark.parametrize(
    ("images", "name", "words"),
    [(9_000, "imdb-9000", "IMDb, 9,000 texts"), (24_000, "imdb", "IMDb")],
)
def test_a_part_of_a_data_set_is_named_with_its_size(
    runs: Runs, images: int, name: str, words: str
) -> None:
    sizes = {"train_images": images, "validation_images": 1_000}
    table = runs.table.assign(**sizes).replace({"dataset": {"digits": "imdb"}})
    texts = tidied(replace(runs, table=table))
    assert cell(made("table_2", texts), task=DIGITS, method="CE")["dataset"] == name
    assert title(texts, DIGITS).startswith(f"{words}; ")
    # Tidying the runs again does not add the size a second time.
    assert tidied(texts).table["dataset"].equals(texts.table["dataset"])


def test_numbers_over_seeds_by_hand(runs: Runs) -> None:
    table = made("table_1", runs)
    row = cell(table, **OURS, method="CE", metric="ece")
    # The standard error is sd / sqrt(2) = 0.01, so our mean is (0.06 - 0.0435) / 0.01
    # standard errors above the printed value.
    assert row[["published", "ours", "ours_sd", ERROR]].tolist() == pytest.approx(
        [0.0435, 0.06, 0.02 / 2**0.5, 1.65]
    )
    assert row[["seeds", "diverged_seeds", "status", "task"]].tolist() == [
        2,
        0,
        "measured",
        CIFAR,
    ]
    # One seed diverged with an ECE of 0.50. The other seed has 0.02, and its standard
    # error follows from its 90 % interval.
    row = cell(table, **OURS, method="Brier", metric="ece")
    error = 0.02 / (2 * stats.norm.ppf(0.95))
    assert row[["ours", ERROR]].tolist() == pytest.approx(
        [0.02, (0.02 - 0.0182) / error]
    )
    assert row[["seeds", "diverged_seeds", "status"]].tolist() == [1, 1, "measured"]
    lost = cell(table, dataset="digits", network="small", method="Brier", metric="ece")
    assert lost[["seeds", "diverged_seeds", "status"]].tolist() == [0, 2, "diverged"]
    # Neither loss has a standard error: the two temperatures of FLSD-53 are equal;
    # Brier has one seed, and temperatures have no interval.
    for method in ("FLSD-53", "Brier"):
        assert np.isnan(cell(table, **OURS, method=method, metric="temperature")[ERROR])


@pytest.mark.parametrize(
    "table",
    [table for table in TABLES if isinstance(table, LossTable)],
    ids=lambda table: table.name,
)
def test_every_printed_number_is_there_once_even_if_nothing_finished(
    runs: Runs, table: LossTable
) -> None:
    printed = pd.DataFrame({"value": [], "unit": []})
    if table.title:
        printed = published("focal", table.title)
    is_percent = printed["unit"] == "percent"
    values = printed["value"].astype(float) / np.where(is_percent, 100, 1)
    ours = table.make(runs)
    assert "measured" in set(ours["status"])
    assert sorted(ours["published"].dropna()) == pytest.approx(sorted(values))
    ours = table.make(diverged(runs, ALL))
    assert sorted(ours["published"].dropna()) == pytest.approx(sorted(values))
    assert ours["ours"].isna().all()
    assert "measured" not in set(ours["status"])


def test_an_arm_has_the_label_of_its_loss_whatever_a_profile_calls_it(
    runs: Runs,
) -> None:
    gamma = runs.table["gamma"].replace({"3": "5"})
    renamed = tidied(replace(runs, table=runs.table.assign(gamma=gamma)))
    assert "FL-3" in renamed.table["cell"].str.split("/").str[3].tolist()
    table = made("table_1", renamed)
    ours = table[table["ours"].notna()]
    assert "FL-3" not in set(ours["method"])
    assert set(ours.loc[ours["method"] == "FL-5", "published"].isna()) == {True}


def test_a_printed_number_without_runs_names_the_profile_that_has_them(
    runs: Runs,
) -> None:
    rows = made("table_1", runs).query("ours != ours and method != 'Brier'")
    profiles = {
        (row["dataset"], row["network"]): row["status"]
        for row in rows.to_dict("records")
    }
    assert profiles["CIFAR-10", "ResNet-50"] == "not run: profile cifar10"
    assert profiles["CIFAR-100", "ResNet-50"] == "not run: profile paper"
    assert profiles["20 Newsgroups", "Global Pooling CNN"] == "not run: profile text"


def test_losses_stand_in_the_papers_order_and_others_follow(runs: Runs) -> None:
    is_ce = CE.mask(runs.table) & (runs.table["experiment"] == DIGITS)
    smoothed = runs.table.assign(
        loss=runs.table["loss"].mask(is_ce, "label_smoothing"),
        smoothing=runs.table["smoothing"].astype(float).mask(is_ce, 0.1),
    )
    table = made("table_2", tidied(replace(runs, table=smoothed)))
    methods = table.loc[table["task"] == DIGITS, "method"].tolist()
    assert methods == ["Brier", "MMCE", "FL-3", "FLSD-53", "LS-0.1"]
    assert LS_01.mask(smoothed).any()


def test_the_name_of_a_data_set_includes_the_sets_that_it_is_compared_with(
    runs: Runs,
) -> None:
    table = made("table_3", runs)
    names = table.loc[table["status"] == "measured", "dataset"]
    assert set(names) == {
        "CIFAR-10 vs SVHN",
        "CIFAR-10 vs CIFAR-10-C (Gaussian noise sev 5)",
    }
    generated = replace(runs, table=runs.table.assign(noise="generated"))
    table_3 = made("table_3", generated)
    noisy = table_3[table_3["dataset"] == "CIFAR-10 vs gaussian-noise"]
    assert len(noisy)
    assert noisy["published"].isna().all(), "our own noise has no printed number"
    about = {"dataset": "CIFAR-10 vs SVHN", "network": "ResNet-50"}
    row = cell(table, **about, method="FLSD-53", metric="auroc")
    assert row["ours"] == pytest.approx(0.905)
    released = made("released_ood", runs)
    numbers = released[["published", "ours"]].to_numpy()
    assert numbers == pytest.approx(np.array([[0.9433, 0.805]]))
    shift = made("table_shift", runs).query(
        "dataset == 'CIFAR-10 vs cinic10' and method == 'CE'"
    )
    assert shift["ours"].tolist() == pytest.approx([0.35, 0.3, 0.2]), (
        "expected error, ECE, scaled ECE"
    )
    values = runs.measurements
    unshifted = replace(runs, measurements=values[values["split"] != "cinic10"])
    assert made("table_shift", unshifted).empty


def test_early_stopping_has_a_row_for_each_criterion(runs: Runs) -> None:
    table = made("table_j1", runs)
    assert len(table) == 2 * 6 * 2 * 2, "wrong number of rows"
    about = {**OURS, "method": "FLSD-53", "metric": "ece"}
    ours = {
        name: cell(table, **about, criterion=name)["ours"]
        for name in ("last", "accuracy", "nll", "ece")
    }
    expected = {"last": 0.02, "accuracy": 0.02, "nll": 0.03, "ece": 0.04}
    assert ours == pytest.approx(expected)
    assert set(table["cells"].str.split("/").str[1]) == {"training"}


def test_early_stopping_is_shown_over_all_epochs_and_near_the_best(runs: Runs) -> None:
    # Epoch 4 has the lowest ECE, but its accuracy is three points below that of the
    # best epoch.
    chosen = {"split": "validation", "epoch": STOPPED["ece"]}
    inaccurate = shifted(runs, "accuracy", -0.03, among=ALL, **chosen)
    table = made("table_j1", inaccurate)
    about = {**OURS, "method": "FLSD-53", "metric": "ece"}
    ours = {
        name: cell(table, **about, criterion=name)["ours"]
        for name in ("ece", "ece, near best accuracy")
    }
    # The other epochs tie, so the first of them is chosen.
    assert ours == pytest.approx({"ece": 0.04, "ece, near best accuracy": 0.01})


def test_the_ablation_pairs_seeds(runs: Runs, tmp_path: Path) -> None:
    table = ablation.table(runs)
    row = cell(table, task=CIFAR, variant="mean reduction", method="CE", metric="ece")
    # The seeds' differences (changed recipe minus main recipe) are 0.04 - 0.05 and 0.08
    # - 0.07.
    assert row[["seeds", "status"]].tolist() == [2, "measured"]
    numbers = row[["main", "changed", "difference", "difference_sd"]].tolist()
    assert numbers == pytest.approx([0.06, 0.06, 0, 0.02 / 2**0.5])
    write_csv(tmp_path / "ablation.csv", table)
    wide = ablation.lay_out(read_csv(tmp_path / "ablation.csv"))
    assert "6.00 → 6.00 (± 1.41)" in wide["ECE (%)"].tolist()
    assert "2.50 → 2.50 (± 0.00)" in wide["temperature"].tolist()


def test_a_loss_as_written_is_compared_with_the_released_one(runs: Runs) -> None:
    about = {"variant": "as written", "method": "MMCE", "metric": "ece"}
    row = cell(ablation.table(runs), task=DIGITS, **about)
    assert row[["main", "changed"]].tolist() == pytest.approx([0.085, 0.105])
    assert "MMCE-written" not in set(made("table_1", runs)["method"])


def test_a_temperature_by_another_criterion_is_a_change(runs: Runs) -> None:
    about = {"variant": "temperature by NLL", "method": "FL-3"}
    table = ablation.table(runs)
    row = cell(table, task=CIFAR, **about, metric="temperature")
    assert row[["main", "changed"]].tolist() == pytest.approx([1.1, 1.5])
    assert set(table.query("variant == 'temperature by NLL'")["metric"]) == {
        "ece_after_scaling",
        "temperature",
    }


def test_the_ablation_leaves_out_what_diverged(runs: Runs) -> None:
    about = {"variant": "mean reduction", "method": "CE", "metric": "ece"}
    first = diverged(runs, where(experiment=CIFAR, seed=1))
    assert cell(ablation.table(first), **about)["difference"] == pytest.approx(-0.01)
    every = diverged(runs, where(experiment=CIFAR))
    rows = ablation.table(every).query("task == @CIFAR")
    assert set(rows["status"]) == {"no finished run of the main recipe"}


def test_a_variant_may_have_another_network(runs: Runs) -> None:
    """An example is our Wide-ResNet in place of the released one."""
    is_variant = runs.table["variant"] == "mean reduction"
    table = runs.table.assign(network=runs.table["network"].where(~is_variant, "ours"))
    about = {"variant": "mean reduction", "method": "CE", "metric": "ece"}
    row = cell(ablation.table(replace(runs, table=table)), **about)
    same = cell(ablation.table(runs), **about)
    assert row["network"] == "ours"
    assert row["difference"] == same["difference"]


def test_tables_say_what_is_not_as_printed(runs: Runs) -> None:
    words = "half of " + runs.table["experiment"]
    rows = made(
        "table_1", tidied(replace(runs, table=runs.table.assign(differs=words)))
    )
    assert set(rows.loc[rows["task"] == CIFAR, "differs"]) == {
        f"7 of 350 epochs, half of {CIFAR}"
    }
    # No number is printed for digits, so the number of epochs on digits is not
    # compared.
    assert set(rows.loc[rows["task"] == DIGITS, "differs"]) <= {"half of digits-small"}
    assert rows.loc[rows["status"].str.startswith("not run"), "differs"].isna().all()


def test_table_k1_has_every_printed_number_beside_ours(runs: Runs) -> None:
    table = made("table_k1", runs)
    best = "best BLEU over temperatures"
    row = cell(table, criterion=best, method="FL", metric="bleu")
    numbers = row[["published", "ours", "ours_sd", "seeds", ERROR]].tolist()
    assert numbers == pytest.approx(
        [0.2639, 0.2905, 0.001 / 2**0.5, 2, (0.2905 - 0.2639) / 0.0005]
    )
    row = cell(table, criterion="ECE", method="LS", metric="temperature")
    assert (row["published"], row["ours"], row["dataset"]) == (1, 1, "WMT14 En-De")
    row = cell(table, criterion="ECE", method="CE", metric="ece_after_scaling")
    assert row["ours"] == pytest.approx(0.0085)
    assert (set(table["status"]), table["published"].notna().sum()) == ({"measured"}, 5)
    assert "WMT14 En-De" not in set(tables.not_in_a_table()["dataset"]), (
        "appendix K has unused numbers"
    )


def test_translations_that_were_not_run_are_marked_as_such(runs: Runs) -> None:
    translated = where(task="translation")
    is_translated = translated.mask(runs.table)
    dataset = runs.table["dataset"].mask(is_translated, "farm")
    of_another = tidied(replace(runs, table=runs.table.assign(dataset=dataset)))
    for others in (without(runs, translated), of_another):
        table = made("table_k1", others).dropna(subset="published")
        assert table["status"].tolist() == ["not run: profile paper"] * 5
        assert table["ours"].isna().all()


def test_a_translation_that_diverged_says_so(runs: Runs) -> None:
    translated = where(task="translation")
    lost = translated & (LS_01 | (CE & where(seed=0)))
    table = made("table_k1", diverged(runs, lost)).query("criterion == 'ECE'")
    assert cell(table, method="LS", metric="ece")["status"] == "diverged"
    row = cell(table, method="CE", metric="ece")
    counts = row[["ours", "seeds", "diverged_seeds"]].tolist()
    assert counts == pytest.approx([0.07, 1, 1])


@pytest.mark.parametrize("title", ["Table 1", "Table 2"])
def test_profiles_declare_the_printed_numbers_that_they_are_named_for(
    title: str,
) -> None:
    rows = tables.printed_numbers(title)
    for (dataset, network), group in rows.groupby(["dataset", "network"]):
        for name in tables.profiles_of(dataset, network):
            focal = profile(name).focal
            [task] = [
                key
                for key, task in focal.tasks.items()
                if (task.printed_dataset, task.printed_network) == (dataset, network)
                and task.variant_of is None
            ]
            assert set(group["method"]) <= set(focal.arms_of(task)), (name, task)
