"""The numbers in docs/focal.md match the results."""

import json
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from softmax_temperature.papers.focal.tables import printed_numbers
from softmax_temperature.papers.shared.results import NOT_TESTED, evidence

STUDIES = ("focal_cifar10", "focal_cifar100", "text", "translation_multi30k")
NUMBER = r"-?\d+(?:\.\d+)?"
LOSSES = {
    "cross-entropy": "CE",
    "Brier": "Brier",
    "MMCE": "MMCE",
    "label smoothing 0.05": "LS-0.05",
    "focal, gamma 3": "FL-3",
    "FLSD-53": "FLSD-53",
}
COLUMNS = ("ece", "ece_after_scaling", "temperature", "error")


@pytest.fixture
def page(project_root: Path) -> str:
    return (project_root / "docs" / "focal.md").read_text(encoding="utf-8")


def in_translation_after_scaling(root: Path) -> Iterator[tuple[float, float, float]]:
    """Yield mean differences in ECE after scaling, with the ends of 95 % intervals.

    There is one difference for each other loss: focal loss minus that loss.
    """
    folder = root / "results" / "translation_multi30k" / "focal"
    runs = pd.read_csv(folder / "runs.csv")
    values = pd.read_csv(folder / "tables" / "values.csv", low_memory=False)
    scaled = values[(values["split"] == "test") & (values["scaled"] == True)]  # noqa: E712
    rows = runs[runs["task"] == "translation"].join(scaled.set_index("run")["ece"])
    ece = rows.pivot_table(index="seed", columns="loss", values="ece")
    for other in ("cross_entropy", "label_smoothing"):
        paired = stats.ttest_rel(ece["focal"], ece[other])
        low, high = paired.confidence_interval(0.95)
        yield (ece["focal"] - ece[other]).mean(), low, high


def estimates(root: Path) -> Iterator[tuple[float, float, float]]:
    """Yield the value and interval of every claim, and of its parts and tasks.

    Each is yielded as stored and multiplied by 100, -1 and -100. The differences in ECE
    after scaling in translation, which belong to no claim, are yielded multiplied by
    -100.
    """
    for value, low, high in in_translation_after_scaling(root):
        yield -100 * value, -100 * high, -100 * low
    for study in STUDIES:
        path = root / "results" / study / "focal" / "claims.json"
        for row in json.loads(path.read_text(encoding="utf-8")):
            for found in (row, *row["parts"], *row["tasks"]):
                if found["low"] is None:
                    continue
                value, low, high = found["value"], found["low"], found["high"]
                for scale in (1, 100):
                    yield scale * value, scale * low, scale * high
                    yield -scale * value, -scale * high, -scale * low


def test_every_quoted_interval_belongs_to_a_claim(
    page: str, project_root: Path
) -> None:
    known = list(estimates(project_root))
    quoted = re.findall(rf"({NUMBER})\s+\[({NUMBER}),\s+({NUMBER})\]", page)
    assert len(quoted) == len(re.findall(rf"\[{NUMBER},\s+{NUMBER}\]", page)) > 20
    for numbers in quoted:
        digits = len(numbers[1].partition(".")[2])
        # A quoted number may be off by half a unit in its last digit, and by rounding
        # errors of floats.
        close = 0.5 * 10**-digits + 1e-9
        assert any(
            all(
                abs(float(text) - number) <= close
                for text, number in zip(numbers, one, strict=True)
            )
            for one in known
        ), numbers


def test_the_page_counts_what_is_not_tested(page: str, project_root: Path) -> None:
    claims = evidence(project_root / "results")["focal"]
    untested = [claim for claim in claims if claim.primary["verdict"] == NOT_TESTED]
    assert f"{len(untested)} of {len(claims)} claims are not tested" in page


def table_after(page: str, heading: str) -> list[list[str]]:
    """Cells of the first table after `heading`, without the header row."""
    rows = page.partition(heading)[2].partition("|---|")[2].partition("\n\n")[0]
    return [
        [cell.strip() for cell in row.split("|")[1:-1]] for row in rows.split("\n")[1:]
    ]


def test_the_ece_after_scaling_is_that_of_either_criterion(
    page: str, project_root: Path
) -> None:
    tasks = {
        "CIFAR-10": ("focal_cifar10", "cifar10-vgg"),
        "CIFAR-100": ("focal_cifar100", "cifar100-vgg"),
        "20 Newsgroups": ("text", "newsgroups20-cnn"),
        "SST": ("text", "sst-tree-lstm"),
    }
    methods = ("CE", "LS-0.05", "FL-3", "FLSD-53")
    rows = table_after(page, "## How the temperature is fitted")
    assert [row[:2] for row in rows] == [
        [name, criterion] for name in tasks for criterion in ("T by ECE", "T by NLL")
    ]
    for name, criterion, *cells in rows:
        study, task = tasks[name]
        table = pd.read_csv(
            project_root / "results" / study / "focal" / "tables" / "ablation.csv"
        )
        chosen = table[
            (table["task"] == task)
            & (table["variant"] == "temperature by NLL")
            & (table["metric"] == "ece_after_scaling")
        ].set_index("method")
        column = {"T by ECE": "main", "T by NLL": "changed"}[criterion]
        assert cells == [f"{100 * chosen.loc[one, column]:.1f}" for one in methods]


def of_tables(root: Path, study: str, dataset: str) -> dict[tuple[str, str], Any]:
    """The study's rows of Tables 1 and 2 for a data set, keyed by loss and metric."""
    folder = root / "results" / study / "focal" / "tables"
    names = ("table_1", "table_2")
    together = pd.concat([pd.read_csv(folder / f"{name}.csv") for name in names])
    rows = together[(together["task"] == dataset) & together["ours"].notna()]
    return {(row["method"], row["metric"]): row for row in rows.to_dict("records")}


def printed_on(dataset: str) -> dict[tuple[str, str], float]:
    """The printed numbers for a data set, keyed by loss and metric; NaN if there is
    none.

    The numbers on CIFAR-10 are for a ResNet-50.
    """
    both = pd.concat([printed_numbers("Table 1"), printed_numbers("Table 2")])
    networks = ("ResNet-50", "Global Pooling CNN", "Tree-LSTM")
    rows = both[(both["dataset"] == dataset) & both["network"].isin(networks)]
    numbers = rows.set_index(["method", "metric"])["published"]
    places = product(LOSSES.values(), COLUMNS)
    return {place: numbers.get(place, np.nan) for place in places}


def test_translation_gains_after_scaling(page: str, project_root: Path) -> None:
    quoted = [
        f"{-100 * value:.1f} [{-100 * high:.1f}, {-100 * low:.1f}]"
        for value, low, high in in_translation_after_scaling(project_root)
    ]
    assert re.search(
        rf"lowest ECE: {re.escape(quoted[0])} points lower than cross-entropy "
        rf"and {re.escape(quoted[1])} lower than label smoothing",
        " ".join(page.split()),
    )


def test_imdb_shows_no_advantage_at_the_chosen_epoch(
    page: str, project_root: Path
) -> None:
    known = of_tables(project_root, "text", "imdb-cnn")
    words = []
    for loss in ("CE", "FL-3", "FLSD-53"):
        row = known[loss, "ece"]
        words.append(f"{100 * row['ours']:.1f} ± {100 * row['ours_sd']:.1f} %")
    plain, gamma_3, flsd_53 = words
    assert known["FLSD-53", "ece"]["ours"] > known["CE", "ece"]["ours"]
    assert (
        f"the ECE is {plain} with cross-entropy, {gamma_3} with gamma 3 "
        f"and {flsd_53} with FLSD-53 (three seeds)"
    ) in " ".join(page.split())


def test_label_smoothing_on_cifar_100_with_and_without_the_failed_run(
    page: str, project_root: Path
) -> None:
    folder = project_root / "results" / "focal_cifar100" / "focal"
    runs = pd.read_csv(folder / "runs.csv")
    values = pd.read_csv(folder / "tables" / "values.csv", low_memory=False)
    chosen = runs["cell"].str.contains("cifar100-vgg/LS-0.05/")
    rows = values[
        values["run"].isin(runs.index[chosen])
        & (values["split"] == "test")
        & (values["epoch"] == 40)
        & (values["scaled"] == True)  # noqa: E712
    ]
    good = rows[rows["accuracy"] > 0.1]
    assert (len(rows), len(good)) == (3, 2)
    by_ece, by_nll = (
        f"{100 * good[name].mean():.1f}" for name in ("ece", "ece_by_nll")
    )
    assert f"have a mean of {by_ece} with T by ECE" in " ".join(page.split())
    assert f"and of {by_nll} with T by NLL" in " ".join(page.split())


@pytest.mark.parametrize(
    ("study", "dataset", "printed", "heading"),
    [
        ("focal_cifar10", "cifar10-vgg", "CIFAR-10", "last epoch of `focal_cifar10`"),
        ("text", "newsgroups20-cnn", "20 Newsgroups", "which the paper uses, in %"),
        ("text", "sst-tree-lstm", "SST Binary", "| FLSD-53 | 4.1"),
    ],
)
def test_the_tables_equal_those_of_the_results(
    page: str,
    project_root: Path,
    monkeypatch: pytest.MonkeyPatch,
    study: str,
    dataset: str,
    printed: str,
    heading: str,
) -> None:
    monkeypatch.chdir(project_root)
    known = of_tables(project_root, study, dataset)
    in_print = printed_on(printed)
    rows = table_after(page, heading)
    assert len(rows) >= 5
    for loss, *cells in rows:
        for metric, cell in zip(COLUMNS, cells[-4:], strict=True):
            place = (LOSSES[loss], metric)
            scale = 1 if metric == "temperature" else 100
            found = re.match(rf"({NUMBER})(?: ± ({NUMBER}))?(?: \(({NUMBER})\))?", cell)
            assert found
            numbers = (known[place]["ours"], known[place]["ours_sd"], in_print[place])
            for text, number in zip(found.groups(), numbers, strict=True):
                if text is not None:
                    close = pytest.approx(scale * number, abs=0.0501)
                    assert float(text) == close, place
