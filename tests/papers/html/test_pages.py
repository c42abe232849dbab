"""The pages: whole, the same from run to run, loading nothing, with every link leading somewhere."""

import shutil
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import nbformat
import pytest

from softmax_temperature.papers.html import write_report
from softmax_temperature.papers.html.reading import clean, content
from softmax_temperature.papers.shared.sources import link
from softmax_temperature.runner.errors import InputError
from tests.conftest import ROOT

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


def test_every_page_is_written_and_two_runs_give_equal_bytes(results: Path) -> None:
    first = {one.path.relative_to(results).as_posix(): one.path.read_bytes() for one in pages(results)}
    assert set(first) == {"index.html", "toy/index.html", "toy/pages/focal.html", "toy/pages/focal-records.html"}
    assert list(first.values()) == [one.path.read_bytes() for one in pages(results)]


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


@pytest.mark.parametrize("notebook", sorted((ROOT / "notebooks").glob("*.ipynb")), ids=lambda path: path.stem)
def test_equations_are_mathml(notebook: Path) -> None:
    html = content(clean(nbformat.read(notebook, as_version=4)))
    assert "<math" in html
    assert not {"$", "\\"} & set(html), "no TeX is left"


def test_nothing_is_loaded_and_names_are_unique(results: Path) -> None:
    for one in pages(results):
        assert len(one.ids) == len(set(one.ids)), one.path
        assert not [address for address in one.addresses if "//" in address.partition(",")[0]]
        assert {"link", "iframe", "object", "embed"} & set(one.tags) <= {"link"}
        assert "@import" not in one.path.read_text()
        assert "url(" not in one.path.read_text()


def test_hostile_text_is_shown_and_does_not_act(results: Path, hostile: str) -> None:
    for one in pages(results):
        assert one.handlers == [], one.path
        assert one.tags.count("script") == 1
        assert "javascript:" not in "".join(one.addresses)
    assert f"Focal loss beats {hostile}." in page(results, "toy/index.html").text
    assert f"& {hostile}" in page(results, "toy/index.html").text
    assert f"a reason, and {hostile}" in page(results, "toy/pages/focal.html").text
    assert f'"name": "{hostile}"' in page(results, "toy/pages/focal-records.html").text


def test_the_first_page_has_the_picture_the_counts_and_every_claim(results: Path) -> None:
    assert page(results, "index.html").images == []
    (results.parent / "docs" / "images").mkdir(parents=True)
    (results.parent / "docs" / "images" / "summary.png").write_bytes(b"drawn")
    found = page(results, "index.html")
    assert [image["src"] for image in found.images] == ["data:image/png;base64,ZHJhd24="]
    shown = " ".join(found.text.split())
    assert "better calibrated networks. 1 hold, 1 inconclusive, 1 not tested. toy" in shown
    for said in ("✓ holds", "≈ inconclusive", "-12.50 ± 1.00 [-15.00, -10.00] points of ECE (n = 3 seeds)", "-25"):
        assert said in shown
    assert "1 claim not tested, and why It is fast. Table 1: no run" in shown
    assert "focal: 1 hold, 1 inconclusive, 1 not tested (seeds: 2)" in shown


def test_a_profile_that_shows_directions_only_says_so_and_is_no_evidence(results: Path) -> None:
    assert "directions only" not in page(results, "index.html").text + page(results, "toy/index.html").text
    (results / "toy").rename(results / "mini")
    claims = results / "mini" / "focal" / "claims.json"
    claims.write_text(claims.read_text().replace('"toy"', '"mini"'))
    shown = page(results, "index.html").text
    assert "no study yet" in shown
    assert "directions only: data and networks so small" in shown
    assert "✓ holds" not in shown
    assert "This profile shows directions only" in page(results, "mini/index.html").text


def test_a_claim_links_to_the_cells_behind_it(results: Path) -> None:
    place = "pages/focal-records.html#claim-better"
    assert place in page(results, "toy/index.html").addresses
    assert f"toy/{place}" in page(results, "index.html").addresses
    records = page(results, "toy/pages/focal-records.html")
    assert "focal/evaluation: toy/CE (2)" in " ".join(records.text.split())
    assert {"#cells-focal-evaluation-toy-CE", "#cells-prepared-toy-."} <= set(records.addresses)


@pytest.mark.parametrize(
    ("cells", "place"),
    [
        ("focal/evaluation/toy/CE", "#cells-focal-evaluation-toy-CE"),
        ("focal/evaluation/toy", "#cells-focal-evaluation-toy-CE"),
        ("nobody/knows", ""),
    ],
)
def test_a_number_links_to_its_cells(results: Path, cells: str, place: str) -> None:
    show_alone(results, link("1", cells))
    assert f"focal-records.html{place}" in page(results, "toy/pages/focal.html").addresses
    test_every_link_leads_somewhere(results)


def test_a_number_from_several_groups_of_cells_links_to_a_list_of_them(results: Path, hostile: str) -> None:
    show_alone(results, link("1", "focal/evaluation/toy/CE; prepared/toy") + link("2", hostile))
    (place,) = (name for name in page(results, "toy/pages/focal-records.html").ids if name.startswith("numbers-"))
    assert f"focal-records.html#{place}" in page(results, "toy/pages/focal.html").addresses
    shown = " ".join(page(results, "toy/pages/focal-records.html").text.split())
    assert "focal/evaluation: toy/CE (2); prepared/toy: toy" in shown
    test_every_link_leads_somewhere(results)
    test_hostile_text_is_shown_and_does_not_act(results, hostile)


def show_alone(results: Path, html: str) -> None:
    """Have the notebook show a table with this in its only cell."""
    path = results / "toy" / "focal" / "notebook.ipynb"
    notebook = nbformat.read(path, as_version=4)
    (output,) = (one for cell in notebook.cells for one in cell.get("outputs", []) if "T_table-1" in str(one))
    output.data["text/html"] = output.data["text/html"].replace(">1<", f">{html}<")
    nbformat.write(notebook, path)


def test_the_records_say_all_that_made_a_number(results: Path) -> None:
    shown = page(results, "toy/pages/focal-records.html").text
    digests = ("aaaaaaaaaaaa", "cccccccccccc", "ffffffffffff")
    for said in ("toy/CE/0", "12345", *digests, "cores: 2", "torch\xa02.0", "1.5", "not kept at that time"):
        assert said in shown
    assert "not known here" in shown


def test_pieces_that_are_missing_are_said_to_be(results: Path) -> None:
    folder = results / "toy" / "focal"
    for path in (folder / "records.json", folder / "notebook.ipynb", folder.parent / "params.yaml"):
        path.unlink()
    shutil.rmtree(folder / "tables")
    said = "".join(one.text for one in pages(results))
    for missing in ("No executed notebook", "no records.json", "params.yaml) are not here", "No list of deviations"):
        assert missing in said
    test_every_link_leads_somewhere(results)


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
