"""The pages: whole, the same from run to run, loading nothing, with every link leading somewhere."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import nbformat
import pytest

from softmax_temperature.papers.html import write_report
from softmax_temperature.papers.shared.sources import link
from softmax_temperature.runner.errors import InputError

LOADING = {"src", "href", "srcset", "poster", "action", "background", "data"}


class Page(HTMLParser):
    """What a page consists of."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.ids: list[str] = []
        self.addresses: list[str] = []
        self.tags: list[str] = []
        self.handlers: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.text = ""
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.addresses += [value or "" for name, value in attrs if name in LOADING]
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        if tag == "img":
            self.images.append(dict(attrs))

    def handle_data(self, data: str) -> None:
        self.text += data


def pages(results: Path) -> Iterator[Page]:
    write_report(results)
    for path in sorted(results.rglob("*.html")):
        yield Page(path)


def page(results: Path, place: str) -> Page:
    write_report(results)
    return Page(results / place)


def test_every_page_is_written(results: Path) -> None:
    written = write_report(results)
    assert written == [results / "index.html", results / "toy" / "index.html"]
    names = {path.relative_to(results).as_posix() for path in results.rglob("*.html")}
    pages = {f"toy/pages/focal-{name}.html" for name in ("notebook", "records")}
    assert names == {"index.html", "toy/index.html"} | pages


def test_two_runs_give_equal_bytes(results: Path) -> None:
    first = {one.path: one.path.read_bytes() for one in pages(results)}
    assert first == {one.path: one.path.read_bytes() for one in pages(results)}


def test_every_link_leads_somewhere(results: Path) -> None:
    found = {one.path: one for one in pages(results)}
    for one in found.values():
        for address in one.addresses:
            if address.startswith("data:"):
                continue
            place, name = urldefrag(unquote(address))
            target = (one.path.parent / place).resolve() if place else one.path
            assert target.is_file(), f"{one.path}: {address}"
            assert not name or name in found[target].ids, f"{one.path}: {address}"


def test_nothing_is_loaded(results: Path) -> None:
    for one in pages(results):
        assert not [address for address in one.addresses if "//" in address.partition(",")[0]]
        assert {"link", "iframe", "object", "embed"} & set(one.tags) <= {"link"}
        assert "@import" not in one.path.read_text()
        assert "url(" not in one.path.read_text()


def test_names_are_unique_on_a_page(results: Path) -> None:
    for one in pages(results):
        assert len(one.ids) == len(set(one.ids)), one.path


def test_hostile_text_is_shown_and_does_not_act(results: Path, hostile: str) -> None:
    for one in pages(results):
        assert one.handlers == [], one.path
        assert one.tags.count("script") == 1
        assert "javascript:" not in "".join(one.addresses)
    shown = page(results, "toy/index.html").text
    for said in (f"Focal loss beats {hostile}.", f"& {hostile}", f"a reason, and {hostile}", f"of {hostile} and"):
        assert said in shown
    assert f'"name": "{hostile}"' in page(results, "toy/pages/focal-records.html").text


def test_the_scorecard_shows_every_claim_whole(results: Path) -> None:
    shown = " ".join(page(results, "index.html").text.split())
    for said in ("✓ holds", "? inconclusive", "○ not tested", "−0.1250 ± 0.0100", "−0.1500 to −0.1000", "−0.25"):
        assert said in shown


def test_an_inconclusive_claim_says_what_would_decide_it_and_is_counted(results: Path) -> None:
    shown = " ".join(page(results, "index.html").text.split())
    assert shown.count("inconclusive (7 seeds would decide)") == 1
    assert "1 of 3 hold 1 inconclusive 1 not tested" in shown


def test_a_profile_that_shows_directions_only_says_so_wherever_it_is_named(results: Path) -> None:
    assert "directions only" not in page(results, "index.html").text + page(results, "toy/index.html").text
    (results / "toy").rename(results / "mini")
    claims = results / "mini" / "focal" / "claims.json"
    claims.write_text(claims.read_text().replace('"toy"', '"mini"'))
    shown = page(results, "index.html").text
    assert shown.count("(directions only)") == 1 + 3, "in the head of the profile's column, and in each row"
    assert "marked directions only has data and networks so small" in shown
    assert "This profile shows directions only" in page(results, "mini/index.html").text


def test_a_claim_links_to_the_cells_behind_it(results: Path) -> None:
    place = "pages/focal-records.html#claim-better"
    assert place in page(results, "toy/index.html").addresses
    assert f"toy/{place}" in page(results, "index.html").addresses
    records = page(results, "toy/pages/focal-records.html")
    assert "focal/evaluation: toy/CE (2)" in " ".join(records.text.split())
    assert {"#cells-focal-evaluation-toy-CE", "#cells-prepared-toy-."} <= set(records.addresses)


def test_results_without_the_names_of_cells_link_to_the_whole_page(results: Path) -> None:
    claims = results / "toy" / "focal" / "claims.json"
    old = [{name: value for name, value in row.items() if name != "cells"} for row in json.loads(claims.read_text())]
    claims.write_text(json.dumps(old))
    assert "pages/focal-records.html" in page(results, "toy/index.html").addresses
    assert "#claim-" not in (results / "toy/index.html").read_text()


def test_a_table_marks_a_difference_by_sign_and_word(results: Path) -> None:
    shown = " ".join(page(results, "toy/index.html").text.split())
    assert "0.3000 ± 0.0100 printed 0.2500 ▲ +4.2 s.e., above" in shown
    assert "≈ −0.4 s.e., alike" in shown
    assert "2 printed numbers that this profile does not run" in shown


def test_a_table_of_ours_alone_stands_as_the_notebook_shows_it(results: Path) -> None:
    assert "Tables: ours alone" not in page(results, "toy/index.html").text
    notebook = results / "toy" / "focal" / "notebook.ipynb"
    notebook.write_text(notebook.read_text().replace("T_table-1", "T_ablation"))
    shown = page(results, "toy/index.html").text
    assert "Tables: ours alone" in shown
    assert "ablation, rows: 1" in shown


def test_a_number_links_to_its_cells(results: Path) -> None:
    assert "pages/focal-records.html#cells-focal-evaluation-toy-CE" in page(results, "toy/index.html").addresses


@pytest.mark.parametrize(
    ("cells", "place"),
    [
        ("focal/evaluation/toy/CE", "#cells-focal-evaluation-toy-CE"),
        ("focal/evaluation/toy", "#cells-focal-evaluation-toy-CE"),
        ("nobody/knows", ""),
    ],
)
def test_a_number_that_a_notebook_shows_links_to_its_cells(results: Path, cells: str, place: str) -> None:
    show_alone(results, link("1", cells))
    assert f"pages/focal-records.html{place}" in page(results, "toy/index.html").addresses
    assert f"focal-records.html{place}" in page(results, "toy/pages/focal-notebook.html").addresses
    test_every_link_leads_somewhere(results)


def test_a_number_from_several_groups_of_cells_links_to_a_list_of_them(results: Path, hostile: str) -> None:
    show_alone(results, link("1", "focal/evaluation/toy/CE; prepared/toy") + link("2", hostile))
    (place,) = (name for name in page(results, "toy/pages/focal-records.html").ids if name.startswith("numbers-"))
    assert f"pages/focal-records.html#{place}" in page(results, "toy/index.html").addresses
    shown = " ".join(page(results, "toy/pages/focal-records.html").text.split())
    assert "focal/evaluation: toy/CE (2); prepared/toy: toy" in shown
    test_every_link_leads_somewhere(results)
    test_hostile_text_is_shown_and_does_not_act(results, hostile)


def show_alone(results: Path, html: str) -> None:
    """Have the notebook show a table of ours alone, with this in its only cell."""
    path = results / "toy" / "focal" / "notebook.ipynb"
    notebook = nbformat.read(path, as_version=4)
    (output,) = (one for cell in notebook.cells for one in cell.get("outputs", []) if "T_table-1" in str(one))
    output.data["text/html"] = output.data["text/html"].replace("T_table-1", "T_ablation").replace(">1<", f">{html}<")
    nbformat.write(notebook, path)


def test_the_records_say_all_that_made_a_number(results: Path) -> None:
    shown = page(results, "toy/pages/focal-records.html").text
    for said in (
        "toy/CE/0",
        "12345",
        "aaaaaaaaaaaa",
        "cccccccccccc",
        "ffffffffffff",
        "cores: 2",
        "torch\xa02.0",
        "1.5",
    ):
        assert said in shown
    assert "not kept at that time" in shown
    assert "not known here" in shown


def test_a_figure_is_inside_and_described(results: Path) -> None:
    (image,) = page(results, "toy/index.html").images
    assert image["src"] == (
        "data:image/svg+xml,<svg xmlns=%22http://www.w3.org/2000/svg%22 width=%2220pt%22 height=%2210pt%22>"
        "<path id=%22a%22 d=%22M 0 0 L 9 9%22 style=%22stroke: %23b2182b; width: 100%25%22/></svg>"
    )
    assert image["alt"] == "Figure 1: curves"
    assert image["aria-describedby"] in page(results, "toy/index.html").ids


def test_the_notebook_keeps_its_formulas_and_figures(results: Path) -> None:
    shown = page(results, "toy/pages/focal-notebook.html")
    assert r"With $\alpha$ in it." in shown.text
    assert [image["alt"] for image in shown.images] == ["Figure 1: curves"]


@pytest.mark.parametrize(
    ("piece", "place", "said"),
    [
        ("focal/notebook.ipynb", "index.html", "No executed notebook is here."),
        ("focal/figures", "index.html", "No figure of this paper is here."),
        ("focal/tables/table_1.csv", "index.html", "No table with printed numbers is here."),
        ("focal/tables/deviations.csv", "index.html", "No list of deviations is here."),
        ("params.yaml", "index.html", "(params.yaml) are not here"),
        ("focal/records.json", "pages/focal-records.html", "There is no records.json"),
        ("environment.json", "pages/focal-records.html", "No environment.json says"),
    ],
)
def test_a_missing_piece_is_said(results: Path, piece: str, place: str, said: str) -> None:
    missing = results / "toy" / piece
    shutil.rmtree(missing) if missing.is_dir() else missing.unlink()
    assert said in page(results, f"toy/{place}").text
    test_every_link_leads_somewhere(results)


def test_papers_without_results_are_named(results: Path) -> None:
    assert "Not run in this profile: classifier temperature, cooling" in page(results, "toy/index.html").text


@pytest.mark.parametrize(
    "piece",
    [
        *("focal/claims.json", "focal/records.json", "environment.json"),
        "focal/notebook.ipynb",
        "focal/tables/table_1.csv",
    ],
)
def test_a_damaged_piece_is_named(results: Path, piece: str) -> None:
    (results / "toy" / piece).write_text('"a\n1,2,3')
    with pytest.raises(InputError, match=piece.rpartition("/")[2]):
        write_report(results)


def test_without_results_there_is_nothing_to_report(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no results of any paper"):
        write_report(tmp_path)


@pytest.mark.parametrize("field", ["cell_type", "id"])
@pytest.mark.parametrize("value", [None, [], 3])
def test_a_notebook_with_a_cell_of_another_form_is_named(results: Path, field: str, value: object) -> None:
    path = results / "toy" / "focal" / "notebook.ipynb"
    notebook = json.loads(path.read_text())
    notebook["cells"][0][field] = value
    path.write_text(json.dumps(notebook))
    with pytest.raises(InputError, match=rf"notebook\.ipynb: cells\.0\.{field}: .*Take the file from Git"):
        write_report(results)


def test_a_notebook_with_a_figure_cut_short_is_named(results: Path) -> None:
    path = results / "toy" / "focal" / "notebook.ipynb"
    notebook = json.loads(path.read_text())
    figures = [
        output for cell in notebook["cells"] for output in cell.get("outputs", []) if "image/png" in output["data"]
    ]
    figures[0]["data"]["image/png"] = "A"
    path.write_text(json.dumps(notebook))
    with pytest.raises(InputError, match=r"notebook\.ipynb: is not a notebook \(.*base64"):
        write_report(results)
