"""Reports are complete and deterministic, fetch nothing, and have no broken links."""

import json
import re
import shutil
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from softmax_temperature.papers.html import (
    about,
    content,
    read_profile,
    spaced,
    write_report,
)
from softmax_temperature.papers.shared.files import read_csv
from softmax_temperature.papers.shared.results import (
    ARCHIVED,
    PAPERS,
    profiles_with_results,
)
from softmax_temperature.papers.shared.sources import CELLS, apart, link, relinked
from softmax_temperature.runner.errors import InputError
from tests.conftest import ROOT

LOADING = {"src", "href", "srcset", "poster", "action", "background", "data"}
HOSTILE = "<img src=x onerror=alert(1)>"
CLAIM: dict[str, Any] = {
    "paper": "focal",
    "id": "better",
    "where": "Table 1",
    "profile": "toy",
    "n": 3,
}
CLAIM |= {
    "statement": f"Focal loss beats {HOSTILE}.",
    "cells": ["focal/evaluation/toy/CE"],
}
CLAIM |= {
    "published": -0.25,
    "unit": "ECE",
    "each": "seeds",
    "primary": "toy",
    "looks": 1,
    "stand_in": None,
    "derived": False,
    "detectable": 0.02,
    "planned": -0.25,
    "n_for_power": 2,
    "verdict": "holds",
    "level": 0.9,
    "note": "",
}
CLAIM |= {
    "compares": f"Difference & {HOSTILE}.",
    "kind": "superiority",
    "region": [None, 0.0],
    "bounds": [0.0],
    "some": False,
}
CLAIM |= {
    "note_template": "",
    "note_values": [],
    "remark": "",
    "parts": [],
    "not_run": [],
    "tasks": [],
    "value": -0.125,
    "sd": 0.01,
    "low": -0.15,
    "high": -0.1,
}
SAME = CLAIM | {
    "id": "same",
    "statement": "It is as accurate.",
    "verdict": "inconclusive",
    "cells": ["prepared/toy"],
}
NEVER = CLAIM | {
    "id": "never",
    "statement": "It is fast.",
    "verdict": "not tested",
    "cells": [],
    "note": "no run",
}
NEVER |= dict.fromkeys(("value", "sd", "low", "high", "published", "n", "unit"))


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The folder `results`: one profile with one paper, whose results are complete."""
    folder = tmp_path / "results" / "toy" / "focal"
    (folder / "tables").mkdir(parents=True)
    (folder / "claims.json").write_text(json.dumps([CLAIM, SAME, NEVER]))
    pd.DataFrame({"cells": ["focal/evaluation/toy/CE"]}).to_csv(
        folder / "tables" / "table_1.csv", index=False
    )
    pd.DataFrame({"x": [1]}).to_csv(folder / "runs.csv", index=False)
    deviations = pd.DataFrame(
        {"where": ["losses.focal"], "what": [f"a reason, and {HOSTILE}"]}
    )
    deviations.to_csv(folder / "tables" / "deviations.csv", index=False)
    nbformat.write(notebook(), folder / "notebook.ipynb")
    (folder / "records.json").write_text(json.dumps(records()))
    (folder.parent / "params.yaml").write_text("profile: toy\nfocal: {seeds: 2}\n")
    machine = {
        "machine": {"cores": 2, "processor": HOSTILE},
        "versions": {"torch": "2.0"},
    }
    environment = {
        "focal": {
            "machines": [machine],
            "cell_minutes": {"focal/training": 1.5, "focal/evaluation": None},
        }
    }
    (folder.parent / "environment.json").write_text(json.dumps(environment))
    return tmp_path / "results"


def notebook() -> nbformat.NotebookNode:
    """An executed notebook with text, a table and a figure."""

    def code(source: str, data: dict[str, str]) -> nbformat.NotebookNode:
        return new_code_cell(
            source, outputs=[new_output("display_data", data=data)], execution_count=1
        )

    style = "<style>#T_table-1 td {color: red}</style>"
    rows = "<tbody><tr><td>1</td></tr></tbody>"
    html = f'{style}<table id="T_table-1">{rows}</table>'
    cells = [
        new_markdown_cell("# Focal loss, checked", metadata={"tags": ["notebook"]}),
        new_markdown_cell("## What the study shows\n\nIn this profile."),
        code(
            "Markdown(words)",
            {"text/markdown": f"**ECE** of {HOSTILE} and [a](javascript:alert(2))"},
        ),
        new_markdown_cell("## Claims\n\nJudged here."),
        new_markdown_cell(
            "Before.\n\n## Table 1: errors\n\nRead it from left to right."
        ),
        code("shown(table)", {"text/html": f"{html}<script>alert(3)</script>"}),
        new_markdown_cell("## Figure 1: curves\n\nWith $\\alpha$ in it."),
        code("drawn(figure)", {"image/png": "ZHJhd24="}),
    ]
    cells[-1].outputs[0].metadata["image/png"] = {"width": 380}
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    return new_notebook(cells=cells)


def records() -> dict[str, Any]:
    """Records of a data set, two training runs on it, and the runs' evaluations."""
    known = {
        "fingerprint": "f" * 64,
        "project_seed": 0,
        "seed": 12345,
        "parameters": "aa" * 32,
        "code": "cc" * 32,
    }
    cells = [
        known
        | {
            "stage": "prepared/toy",
            "cell": ".",
            "inputs": {},
            "result": "d0" * 32,
            "code": None,
        }
    ]
    for stage, source, result in (("training", "d0", "e0"), ("evaluation", "e0", "b0")):
        own = {"stage": f"focal/{stage}", "inputs": {"images": source * 32}}
        cells += [
            known | own | {"cell": f"toy/CE/{seed}", "result": f"{result}{seed}" * 21}
            for seed in (0, 1)
        ]
    return {
        "cells": cells,
        "parameters": {"aa" * 32: {"name": HOSTILE}},
        "code": {"cc" * 32: {"m": "9" * 64}},
    }


class Page(HTMLParser):
    """The parsed parts of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path, self.raw = path, path.read_text()
        self.tags, self.attributes, self.words = (
            list[str](),
            list[tuple[str, str]](),
            "",
        )
        self.feed(self.raw)
        self.ids = [value for name, value in self.attributes if name == "id"]
        self.addresses = [value for name, value in self.attributes if name in LOADING]
        self.text = " ".join(self.words.split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.words += data


def pages(results: Path) -> list[Page]:
    write_report(results)
    return [Page(path) for path in sorted(results.rglob("*.html"))]


def page(results: Path, place: str) -> Page:
    return next(one for one in pages(results) if one.path == results / place)


def assert_sound(results: Path) -> None:
    """Check that pages fetch nothing and run one script, and that ids and links are
    valid.
    """
    found = {one.path: one for one in pages(results)}
    for one in found.values():
        assert len(one.ids) == len(set(one.ids)), one.path
        assert {"link", "iframe", "object", "embed"} & set(one.tags) <= {"link"}
        assert (one.tags.count("script"), "@import" in one.raw, "url(" in one.raw) == (
            1,
            False,
            False,
        )
        assert not [name for name, _ in one.attributes if name.startswith("on")], (
            one.path
        )
        for address in one.addresses:
            assert "//" not in address.partition(",")[0]
            assert not address.startswith("javascript:")
            if not address.startswith("data:"):
                place, name = urldefrag(unquote(address))
                target = (one.path.parent / place).resolve() if place else one.path
                assert target.is_file(), f"{one.path}: {address}"
                assert not name or name in found[target].ids, f"{one.path}: {address}"


def test_every_page_is_written_sound_and_with_equal_bytes_in_two_runs(
    results: Path,
) -> None:
    first = {
        one.path.relative_to(results).as_posix(): one.raw for one in pages(results)
    }
    assert set(first) == {
        "index.html",
        "toy/index.html",
        "toy/pages/focal.html",
        "toy/pages/focal-records.html",
    }
    assert list(first.values()) == [one.raw for one in pages(results)]
    assert_sound(results)


@pytest.mark.parametrize("paper", PAPERS)
def test_equations_are_mathml(paper: str) -> None:
    html = content(nbformat.read(ROOT / "notebooks" / f"{paper}.ipynb", as_version=4))
    assert "<math" in html
    assert not {"$", "\\"} & set(html), "TeX is left"
    assert not [
        words for words in ("This notebook", "beside this", '.md"') if words in html
    ], "the text refers to the notebook"


def test_the_page_keeps_the_order_of_the_notebook_and_runs_none_of_its_scripts() -> (
    None
):
    html = content(notebook())
    parts = [
        "In this profile.",
        ">Table 1: errors</h2>",
        '<table id="T_table-1">',
        ">Figure 1: curves</h2>",
        "<img ",
    ]
    places = [html.index(part) for part in parts]
    assert places == sorted(places)
    assert 'alt="Figure 1: curves" width="380"' in html
    assert "<strong>ECE</strong>" in html
    # The page leaves out the notebook's code. It also leaves out the notebook's title,
    # because the page has one already, and the claims, which the page shows in its own
    # form.
    for elsewhere in ("shown(table)", "Focal loss, checked", "Judged here."):
        assert elsewhere not in html
    for acting in ("<script", "<img src=x", "javascript:", "color: red"):
        assert acting not in html


def crafted(kind: str) -> nbformat.NotebookNode:
    """A notebook whose text would run a script if it were not escaped."""
    script = "<script>alert(1)</script>"
    if kind == "formula":
        text = rf"$\text{{{script}}}$ $\href{{javascript:alert(1)}}{{x}}$"
        return new_notebook(cells=[new_markdown_cell(f"## Title\n\n{text}")])
    if kind == "escaped formula":
        text = r"$\text{&lt;script&gt;alert(1)&lt;/script&gt;}$"
        return new_notebook(cells=[new_markdown_cell(f"## Title\n\n{text}")])
    if kind == "formula in a tag":
        text = f'[x](https://a.b "$\\text{{\' onclick=alert(1) {script}}}$")'
        return new_notebook(cells=[new_markdown_cell(f"## Title\n\n{text}")])
    data = {"image/png": "ZHJhd24="}
    metadata = {}
    if kind == "image data":
        data["image/png"] = f'" onerror="alert(1)">{script}'
    else:
        metadata["image/png"] = {"width": f'1" onload="alert(1)">{script}'}
    output = new_output("display_data", data=data, metadata=metadata)
    image = new_code_cell("drawn()", outputs=[output])
    return new_notebook(cells=[new_markdown_cell("## Title"), image])


@pytest.mark.parametrize(
    "kind",
    ["formula", "escaped formula", "formula in a tag", "image data", "image metadata"],
)
def test_no_crafted_notebook_runs_a_script(kind: str, tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(content(crafted(kind)))
    page = Page(tmp_path / "page.html")
    assert "script" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert not [each for each in page.addresses if each.startswith("javascript")]


def test_a_function_stands_apart_from_an_argument_without_brackets() -> None:
    assert spaced(r"-(1 - p)^\gamma \log p") == r"-(1 - p)^\gamma \log\,p"
    assert spaced(r"\exp \gamma") == r"\exp\,\gamma"
    bracketed = r"\log(p) + \log \left(p\right)"
    assert spaced(bracketed) == bracketed


def test_a_formula_keeps_its_signs() -> None:
    html = content(new_notebook(cells=[new_markdown_cell("$p < q$ & $T > 0$")]))
    assert "&lt;" in html
    assert html.count("<math") == 2


def test_hostile_text_is_shown(results: Path) -> None:
    assert f"Focal loss beats {HOSTILE}." in page(results, "toy/index.html").text
    assert f"& {HOSTILE}" in page(results, "toy/index.html").text
    assert f"a reason, and {HOSTILE}" in page(results, "toy/pages/focal.html").text
    assert f'"name": "{HOSTILE}"' in page(results, "toy/pages/focal-records.html").text


def test_the_first_page_has_the_picture_the_counts_and_every_claim(
    results: Path,
) -> None:
    assert "img" not in page(results, "index.html").tags
    (results.parent / "docs" / "images").mkdir(parents=True)
    (results.parent / "docs" / "images" / "summary.png").write_bytes(b"drawn")
    (results.parent / "docs" / "images" / "summary-tall.png").write_bytes(b"tall")
    found = page(results, "index.html")
    assert ("src", "data:image/png;base64,ZHJhd24=") in found.attributes
    assert ("srcset", "data:image/png;base64,dGFsbA==") in found.attributes
    for said in (
        "Calibrating deep neural networks using focal loss. The paper's claim:",
        "focal loss, with a gamma for each sample, trains",
        "better calibrated networks. 1 hold, 1 inconclusive, 1 not tested. toy",
        *(
            "✓ holds",
            "≈ inconclusive",
            "[-15.00, -10.00] points of ECE (n = 3 seeds, interval at 90 %)",
            "-25",
        ),
        "LS-0.05 label smoothing with factor 0.05",
        "1 claim that no study tests, and why It is fast. Table 1: no run",
        "Calibrating deep neural networks using focal loss: 1 hold, 1 inconclusive",
    ):
        assert said in found.text


def test_a_page_of_a_study_tells_its_verdicts_from_the_projects(results: Path) -> None:
    (results / "other" / "focal").mkdir(parents=True)
    against = CLAIM | {"verdict": "contradicted", "profile": "other"}
    (results / "other" / "focal" / "claims.json").write_text(json.dumps([against]))
    of_project = "1 disputed, 1 inconclusive, 1 not tested."
    for name in ("other/index.html", "other/pages/focal.html"):
        shown = page(results, name).text
        assert "Verdicts of this study alone: 1 contradicted. The project's" in shown
        assert f"is that of its primary study; all studies: {of_project}" in shown


def test_another_study_that_decides_the_opposite_is_shown_unfolded(
    results: Path,
) -> None:
    (results / "other" / "focal").mkdir(parents=True)
    against = CLAIM | {"verdict": "contradicted", "profile": "other"}
    (results / "other" / "focal" / "claims.json").write_text(json.dumps([against]))
    overview = page(results, "index.html")
    assert "✓ holds disputed" in overview.text
    sides = r"✓ holds toy primary-12\.50 .* ✗ contradicted other"
    assert re.search(sides, overview.text) is not None
    assert "1 disputed, 1 inconclusive, 1 not tested" in overview.text
    html = (results / "index.html").read_text()
    for closed in re.findall(r"<details.*?</details>", html, flags=re.DOTALL):
        assert "contradicted" not in closed
    # The primary study also comes first on the page of the study that contradicts the
    # claim.
    own = page(results, "other/index.html").text
    assert "✗ contradicted disputed" in own
    assert own.index("✓ holds toy primary") < own.index("✗ contradicted other")


def test_a_claim_whose_primary_study_has_not_run_is_not_tested(results: Path) -> None:
    claims = results / "toy" / "focal" / "claims.json"
    claims.write_text(
        claims.read_text().replace('"primary": "toy"', '"primary": "full"')
    )
    shown = page(results, "index.html").text
    assert "3 not tested. toy" in shown
    assert "○ not tested" in shown
    assert "Its primary study, full, has not been run." in shown
    assert "✓ holds toy-12.50" in shown, "the other study is folded"


def test_a_profile_that_shows_directions_only_says_so_and_is_no_evidence(
    results: Path,
) -> None:
    assert (
        "directions only"
        not in page(results, "index.html").text + page(results, "toy/index.html").text
    )
    (results / "toy").rename(results / "mini")
    claims = results / "mini" / "focal" / "claims.json"
    claims.write_text(claims.read_text().replace('"toy"', '"mini"'))
    shown = page(results, "index.html").text
    assert "no study yet" in shown
    assert "directions only: data and networks so small" in shown
    assert "✓ holds" not in shown
    assert "This profile shows directions only" in page(results, "mini/index.html").text


def test_a_page_names_its_data_and_networks() -> None:
    tasks = {
        name: {"dataset": "cifar10", "network": name} for name in ("resnet8", "vgg")
    }
    assert (
        about({"seeds": 2, "tasks": tasks})
        == "data: CIFAR-10; networks: ResNet-8 · VGG"
    )
    assert (
        about({"datasets": ["dtd"], "backbones": ["resnet18"], "sweeps": None})
        == "data: DTD; networks: ResNet-18"
    )
    assert about({}) == ""


def test_a_page_of_translation_names_no_task_with_one_loss() -> None:
    tasks = {
        "alone": {"dataset": "digits", "network": "mlp", "arms": ["CE"]},
        "both": {"dataset": "cifar10", "network": "vgg", "arms": ["CE", "FL-3"]},
    }
    section = {"tasks": tasks, "translation": {"dataset": "multi30k"}}
    assert about(section) == "data: CIFAR-10 · Multi30k; networks: VGG · Transformer"
    section["translation"] = None
    assert (
        about(section)
        == "data: digits · CIFAR-10; networks: multilayer perceptron · VGG"
    )


def test_a_picture_has_its_own_words_or_the_title_of_its_section() -> None:
    data = {"image/png": "ZHJhd24="}
    seen = {"image/png": {"alt": f"Panels: {HOSTILE}."}}
    outputs = [
        new_output("display_data", data=data, metadata=metadata)
        for metadata in (seen, {})
    ]
    cells = [new_markdown_cell("## Title"), new_code_cell("drawn()", outputs=outputs)]
    first, second = re.findall('alt="([^"]*)"', content(new_notebook(cells=cells)))
    assert unescape(first) == f"Title. Panels: {HOSTILE}."
    assert second == "Title"


def test_a_claim_links_to_the_cells_behind_it_with_all_seeds_together(
    results: Path,
) -> None:
    place = "pages/focal-records.html#claim-better"
    assert f"../toy/{place}" in page(results, "toy/index.html").addresses
    assert f"toy/{place}" in page(results, "index.html").addresses
    records = page(results, "toy/pages/focal-records.html")
    assert "focal/evaluation: toy/CE (2)" in records.text
    assert {"#cells-focal-evaluation-toy-CE", "#cells-prepared-toy-."} <= set(
        records.addresses
    )


@pytest.mark.parametrize(
    ("cells", "place"),
    [
        ("focal/evaluation/toy/CE", "#cells-focal-evaluation-toy-CE"),
        ("focal/evaluation/toy", "#cells-focal-evaluation-toy-CE"),
        ("focal/evaluation/toy/C", ""),
        ("nobody/knows", ""),
    ],
)
def test_a_number_links_to_the_cells_in_the_folder_that_it_names(
    results: Path, cells: str, place: str
) -> None:
    show_alone(results, link("1", cells))
    assert (
        f"focal-records.html{place}" in page(results, "toy/pages/focal.html").addresses
    )
    assert_sound(results)


def test_a_number_from_several_groups_of_cells_links_to_a_list_of_them(
    results: Path,
) -> None:
    show_alone(
        results, link("1", "focal/evaluation/toy/CE; prepared/toy") + link("2", HOSTILE)
    )
    records = page(results, "toy/pages/focal-records.html")
    (place,) = (name for name in records.ids if name.startswith("numbers-"))
    assert (
        f"focal-records.html#{place}" in page(results, "toy/pages/focal.html").addresses
    )
    assert "focal/evaluation: toy/CE (2); prepared/toy: toy" in records.text
    assert_sound(results)


def show_alone(results: Path, html: str) -> None:
    """Make the notebook show a table whose only cell has this HTML."""
    path = results / "toy" / "focal" / "notebook.ipynb"
    notebook = nbformat.read(path, as_version=4)
    (output,) = (
        one
        for cell in notebook.cells
        for one in cell.get("outputs", [])
        if "T_table-1" in str(one)
    )
    output.data["text/html"] = output.data["text/html"].replace(">1<", f">{html}<")
    nbformat.write(notebook, path)


def test_the_records_list_everything_behind_a_number(results: Path) -> None:
    shown = page(results, "toy/pages/focal-records.html").text
    digests = ("aaaaaaaaaaaa", "cccccccccccc", "ffffffffffff")
    for said in (
        "toy/CE/0",
        "12345",
        *digests,
        "cores: 2",
        "torch 2.0",
        "1.5",
        "not recorded",
        "not known",
    ):
        assert said in shown


def test_missing_pieces_are_reported(results: Path) -> None:
    folder = results / "toy" / "focal"
    for path in (
        folder / "records.json",
        folder / "notebook.ipynb",
        folder.parent / "params.yaml",
    ):
        path.unlink()
    shutil.rmtree(folder / "tables")
    said = "".join(one.text for one in pages(results))
    for missing in (
        "no executed notebook",
        "no records.json",
        "params.yaml) are missing",
        "no list of deviations",
    ):
        assert missing in said
    assert_sound(results)


def test_without_results_there_is_nothing_to_report(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no results of any paper"):
        write_report(tmp_path)


@pytest.mark.parametrize("profile", profiles_with_results(ROOT / "results"))
def test_every_cell_that_a_committed_table_or_page_names_is_recorded(
    profile: str,
) -> None:
    for paper in read_profile(ROOT / "results" / profile).papers:
        tables = [
            read_csv(path)
            for path in (ROOT / "results" / profile / paper.slug / "tables").glob(
                "*.csv"
            )
        ]
        named = {
            cells
            for table in tables
            if CELLS in table
            for cells in table[CELLS].dropna()
        }
        linked: set[str] = set()
        relinked(paper.content, lambda cells: linked.add(cells) or "")  # noqa: B023
        assert linked or profile in ARCHIVED, paper.slug
        for cells in named | linked:
            assert apart(cells)
            assert all(paper.records.behind([name]) for name in apart(cells)), (
                f"{paper.slug}: {cells}"
            )
