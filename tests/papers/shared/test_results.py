"""The folder of a paper's results: what stands for it, the run beside it, and the deviations that its code states."""

import json
from pathlib import Path

import pytest

from softmax_temperature.papers.shared import results
from softmax_temperature.papers.shared.records import comments, deviations
from softmax_temperature.papers.shared.results import read_json, record_run, write_contents
from softmax_temperature.runner.artifacts import digest_of_text
from softmax_temperature.runner.errors import InputError

FOLDER = Path("results/mini")


@pytest.fixture(autouse=True)
def _in_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text("seed: 0\n")


def test_the_contents_name_every_file_with_its_digest(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    (folder / "tables").mkdir(parents=True)
    (folder / "claims.json").write_text("[]")
    (folder / "tables" / "a.csv").write_text("x")
    write_contents(folder, tmp_path / "contents")
    expected = {folder / "claims.json": "[]", folder / "tables" / "a.csv": "x"}
    lines = [f"{digest_of_text(text)}  {path.as_posix()}\n" for path, text in expected.items()]
    assert (tmp_path / "contents").read_text() == "".join(lines)


def test_minutes_and_machines_are_written_again_only_where_the_records_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    minutes = iter([1.0, 2.0, 3.0, 4.0])
    monkeypatch.setattr(results, "_environment", lambda _: {"machines": [], "cell_minutes": {"search": next(minutes)}})

    def recorded(paper: str, records: str) -> dict[str, float]:
        (FOLDER / paper).mkdir(parents=True, exist_ok=True)
        (FOLDER / paper / "records.json").write_text(records)
        record_run("mini", paper, Path("params.yaml"), [])
        papers = json.loads((FOLDER / "environment.json").read_text())
        return {name: part["cell_minutes"]["search"] for name, part in papers.items()}

    assert recorded("focal", "one") == {"focal": 1.0}
    assert recorded("focal", "one") == {"focal": 1.0}
    assert recorded("cooling", "one") == {"focal": 1.0, "cooling": 2.0}
    assert recorded("focal", "two") == {"focal": 3.0, "cooling": 2.0}
    assert (FOLDER / "params.yaml").read_text() == "seed: 0\n"


def test_a_file_that_is_not_json_is_named() -> None:
    Path("claims.json").write_text("<<<<<<< HEAD\n[]\n")
    with pytest.raises(InputError, match=r"^claims\.json: is not JSON"):
        read_json(Path("claims.json"))
    assert read_json(Path("elsewhere")) is None


def test_a_comment_is_joined_over_its_lines() -> None:
    source = "x = 1\n    # Deviation: the paper says so,\n    # we say this.\ny = 2  # not this\n"
    source += "# Deviation: one line.\nz = 3\n# other\n"
    assert comments(source) == ["the paper says so, we say this.", "one line."]


def test_the_first_papers_deviations_are_listed() -> None:
    table = deviations(["softmax_temperature.stages.search", "softmax_temperature.stages.heuristic"])
    assert set(table.columns) == {"where", "what"}
    assert len(table) >= 3
    assert table["what"].str.len().min() > 20
