"""Tables for readers are reproducible and escape HTML; missing figures are named."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from IPython.display import Image, Markdown
from matplotlib.figure import Figure

from softmax_temperature.papers.focal.study import in_shown_order, placeholders
from softmax_temperature.papers.focal.tables import by_loss
from softmax_temperature.papers.shared.layout import PAGE, narrowest
from softmax_temperature.papers.shared.notebooks import (
    drawn,
    explained,
    found,
    opened,
    said,
    shown,
)
from softmax_temperature.papers.shared.sources import Linked
from softmax_temperature.runner.errors import InputError


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
    assert "–" not in first, "an empty column is shown"
    assert shown(table[:0], "t") is None


def test_large_numbers_have_commas_and_significant_digits_count_from_the_first() -> (
    None
):
    row = {"what": "49500 images in abc/12345, 2010.07344", "whole": 204570.0}
    table = pd.DataFrame([row | {"a": 0.999854, "b": 215.443, "c": 5.4358e-05}])
    html = shown(table, "t", significant=3).data
    expected = (">49,500 images in abc/12345, 2010.07344<", ">204,570<", ">1.00<")
    expected += (">215<", ">0.0000544<")
    assert [text for text in expected if text not in html] == []


def test_a_name_from_the_parameters_is_shown_only_where_words_are_ambiguous() -> None:
    same = {"dataset": "cifar10", "network": "small-vgg"}
    table = pd.DataFrame(
        [
            same | {"experiment": "cifar10-vgg", "role": "table_1", "epochs": 50},
            same | {"experiment": "cifar10-vgg-factors", "role": "figure_1"},
        ]
    )
    assert "cifar10-vgg" not in shown(table, "t").data
    assert "cifar10-vgg-factors" in shown(table.assign(role="table_1"), "t").data


def test_the_source_of_word_vectors_is_in_words() -> None:
    file = "glove_6b_50d_10k.npz, 34.7% of 14,830 words, tuned"
    table = pd.DataFrame([{"embeddings": file, "n": 1}])
    words = "GloVe of 6 billion tokens, 50 numbers a word, 34.7 % of 14,830 words"
    assert words in shown(table, "t").data


def test_a_study_is_described_and_pages_of_the_docs_are_links() -> None:
    study = opened("cooling", "cooling_full")
    about = study.about().data
    assert about.startswith("Study **cooling_full**: Cooling on all of CIFAR-10")
    html = study.verdicts().data
    assert "<li>cooling_cifar10: Cooling on CIFAR-10, 10,000 images" in html
    assert html.count("docs/scorecard.md<") == html.count(
        'href="../../../docs/scorecard.md"'
    )


def test_values_that_all_rows_share_are_shown_once_above_the_table() -> None:
    shared = {"dataset": "cifar10-10000", "network": "<net>", "status": np.nan}
    table = pd.DataFrame([shared | {"metric": name} for name in ("ece", "nll")])
    caption, _, rows = shown(table, "t").data.partition("</p>")
    words = "CIFAR-10, 10,000 images; network &lt;net&gt;."
    assert caption == f"<p>All rows: data set {words}"
    assert "CIFAR-10" not in rows
    assert ">status<" not in rows
    assert "<p>" not in shown(table[:1], "t").data, "one row keeps its columns"
    table.loc[1, "dataset"] = "mnist"
    assert ">data set<" in shown(table, "t").data


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
        assert data.count("<a ") == 1, "only a number with cells is a link"
        assert "cells" not in data


def test_rows_that_were_not_run_are_left_out_and_a_table_of_only_such_is_none() -> None:
    rows = [[Linked("1", "a/b"), "2", "–"], ["–", "3", "not run: profile paper"]]
    table = pd.DataFrame(rows, columns=["CE", "printed", "status"], dtype=object)
    data = shown(table, "t").data
    assert '<a href="records.json#a/b">1</a>' in data
    assert "profile paper" not in data
    assert shown(table[1:], "t") is None


def test_a_figure_is_shown_in_proportion_to_its_width_and_none_writes_no_file(
    tmp_path: Path,
) -> None:
    image = drawn(Figure(figsize=(2.5, 1)), tmp_path, "half")
    assert isinstance(image, Image)
    assert image.width == 280
    figure = Figure()
    figure.suptitle("both halves")
    image = drawn(figure, tmp_path, "half")
    assert image is not None
    assert image.alt == "both halves."
    assert drawn(None, tmp_path, "none") is None
    assert {path.name for path in (tmp_path / "figures").iterdir()} == {"half.svg"}


@pytest.fixture
def in_project(project_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project_root)


@pytest.mark.usefixtures("in_project")
def test_a_second_study_is_shown_next_to_the_first_in_claims_and_tables() -> None:
    study = opened("cooling", "cooling_full", beside="cooling_cifar10")
    table = study.table("table_1")
    assert list(table["study"].unique()) == ["cooling_full", "cooling_cifar10"]
    assert "study" not in opened("cooling", "cooling_full").table("table_1")
    row = next(
        line
        for line in study.verdicts().data.split("<tr")
        if "Distributed Cool" in line
    )
    assert "this is the primary study" in row
    assert "✓ holds in cooling_cifar10: 2.44" in row
    assert "only" not in study.about().data.lower()


def test_remarks_on_a_task_stand_above_its_rows_and_numbers_are_not_broken() -> None:
    tasks = [("a", "10 of 20 epochs"), ("b", "–")]
    rows = [
        {
            "dataset": name,
            "method": method,
            "ours": "1.0 ± 0.2 (+3.0 s.e.)",
            "differs": it,
        }
        for name, it in tasks
        for method in ("CE", "FL-1")
    ]
    caption, _, table = shown(pd.DataFrame(rows), "t").data.partition("</ul>")
    assert caption == "<ul><li>a; differs: 10 of 20 epochs.</li>"
    assert "epochs" not in table
    assert table.count(">1.0\xa0±\xa00.2 (+3.0\xa0s.e.)<") == 4
    # A task with a single row keeps its remark in the row.
    assert "10 of 20 epochs</td>" in shown(pd.DataFrame(rows[::2]), "t").data


@pytest.mark.usefixtures("in_project")
def test_a_table_that_is_too_wide_for_a_page_has_its_methods_in_rows() -> None:
    study = opened("focal", "text")
    wide = by_loss(study.written["table_1"])
    assert narrowest(wide) > PAGE
    table = study.table("table_1")
    table = table[(table["dataset"] == "SST Binary") & (table["status"] == "–")]
    (row,) = (
        wide[
            (wide["dataset"] == "SST Binary")
            & (wide["metric"] == "ECE (%)")
            & (wide["status"] == "–")
        ]
    ).to_dict("records")
    methods = table["method"].tolist()
    assert "FLSD-53" in methods
    assert methods == in_shown_order(methods)
    assert table["ECE (%)"].tolist() == [row[method] for method in methods]
    printed = [row.get(f"{method}, printed", "–") for method in methods]
    assert table["ECE (%), printed"].tolist() == printed
    # A table that fits keeps its methods in columns.
    assert "FLSD-53" in opened("focal", "text").table("table_f7")


def test_names_of_parameters_are_in_words() -> None:
    row = {"network": "mlp", "mode": "last_layer", "role": "table_1", "n": 1}
    data = shown(pd.DataFrame([{"dataset": "cifar10-10000", **row}]), "t").data
    words = (
        "CIFAR-10, 10,000 images",
        "multilayer perceptron",
        "Last layer",
        "Table 1",
    )
    assert [text for text in words if f">{text}<" not in data] == []


@pytest.mark.usefixtures("in_project")
def test_a_hidden_task_is_neither_in_shown_tables_nor_in_written_ones() -> None:
    plain = opened("focal", "translation_multi30k")
    assert "digits-100" in set(plain.written["table_1"]["task"])
    study = opened("focal", "translation_multi30k", hidden=placeholders)
    assert shown(study.table("table_1"), "t") is None
    for name, table in study.written.items():
        assert "digits-100" not in set(table.get("task", ())), name
    beside = opened("focal", "mini", beside="translation_multi30k", hidden=placeholders)
    table = beside.table("table_2")
    of_second = table[table["study"] == "translation_multi30k"]
    assert shown(of_second, "t") is None
    assert shown(table, "t") is not None


@pytest.mark.usefixtures("in_project")
def test_claims_name_data_in_words_and_the_file_keeps_its_names() -> None:
    study = opened("temperature_check", "temperature_check")
    assert any("imdb-9000" in row["note"] for row in study.claims)
    html = study.verdicts().data
    assert "IMDb, 9,000 texts" in html
    assert "imdb-9000" not in html
    assert html.startswith("<p><strong>Verdicts of this study alone.</strong> The ")


@pytest.mark.usefixtures("in_project")
def test_another_level_changes_intervals_and_no_verdict() -> None:
    at_90 = opened("cooling", "cooling_full").claims
    at_95 = opened("cooling", "cooling_full", level=0.95).claims
    tested = [row for row in at_90 if row["low"] is not None]
    assert tested
    wider = {row["id"]: row for row in at_95}
    for row in tested:
        other = wider[row["id"]]
        assert other["verdict"] == row["verdict"]
        assert other["low"] <= row["low"] <= row["high"] <= other["high"]
        assert other["level"] > row["level"]


@pytest.mark.usefixtures("in_project")
def test_only_the_runs_of_the_arms_are_shown() -> None:
    study = opened("cooling", "cooling_full", arms=[{"mode": "none"}])
    assert set(study.runs.table["mode"]) == {"none"}
    assert set(study.every_run.table["mode"]) > {"none"}
    shown_table = study.table("table_1")
    here = shown_table[~shown_table["status"].str.startswith("not run")]
    assert len(here) < len(opened("cooling", "cooling_full").table("table_1"))
    assert "Only runs with mode none are shown" in study.about().data


@pytest.mark.usefixtures("in_project")
def test_claims_follow_their_table_and_not_one_with_a_longer_number() -> None:
    study = opened("cooling", "cooling_full")
    said = study.follows("Table 1")
    assert isinstance(said, Markdown)
    assert "✓ **holds**: Distributed Cooling improves" in said.data
    assert "printed: 2.9" in said.data
    assert study.follows("Table 11") is None
    focal = opened("focal", "focal_cifar10")
    texts = [focal.follows("section 5, Table 1").data, focal.follows("Table F.1").data]
    assert "AdaECE" not in texts[0]
    assert "AdaECE" in texts[1]
    assert "Classwise" not in texts[1]


@pytest.mark.usefixtures("in_project")
def test_a_study_that_does_not_decide_a_claim_says_so() -> None:
    secondary = opened("focal", "focal_cifar10")
    primary = opened("cooling", "cooling_full")
    head = "What follows, in this study alone"
    assert head in secondary.follows("Table 1").data
    assert head not in primary.follows("Table 1").data
    assert "as not tested until that study has run" in secondary.about().data


def test_a_text_is_shown_only_if_it_is_true_of_the_study() -> None:
    assert said({"A.": True, "B.": False, "C.": True}).data == "A. C."
    assert said({"A.": False}) is None
    table = pd.DataFrame({"noise": ["generated"], "embeddings": [None], "x": ["–"]})
    texts = {"noise": "N.", "embeddings": "E.", "x": "X.", "absent": "Y."}
    assert explained(table, texts).data == "N."


def test_a_study_without_the_paper_is_refused() -> None:
    with pytest.raises(InputError, match="study 'none' has no results of cooling"):
        opened("cooling", "none")


def test_results_are_found_from_a_folder_inside_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "results" / "mini").mkdir(parents=True)
    for folder in (tmp_path, tmp_path / "results"):
        monkeypatch.chdir(folder)
        assert found("results/mini").resolve() == tmp_path / "results" / "mini"
