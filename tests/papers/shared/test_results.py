"""The folder of a paper's results, the file that stands for it, and what stands beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from softmax_temperature.papers.shared.results import read_contents, record_problems, record_run, write_contents
from softmax_temperature.runner.artifacts import digest_of_text
from softmax_temperature.runner.errors import InputError

FOLDER = Path("results/mini")


def test_the_contents_name_every_file_with_its_digest(tmp_path: Path) -> None:
    folder = tmp_path / "results"
    (folder / "tables").mkdir(parents=True)
    (folder / "claims.json").write_text("[]")
    (folder / "tables" / "a.csv").write_text("x")
    write_contents(folder, tmp_path / "contents")
    lines = (tmp_path / "contents").read_text().splitlines()
    assert [line.split("  ")[0] for line in lines] == [digest_of_text("[]"), digest_of_text("x")]
    (folder / "claims.json").write_text("[1]")
    write_contents(folder, tmp_path / "contents")
    assert (tmp_path / "contents").read_text().splitlines()[0] != lines[0]


def test_contents_read_back(tmp_path: Path) -> None:
    (tmp_path / "claims.json").write_text("[]")
    write_contents(tmp_path, tmp_path / "contents")
    assert read_contents(tmp_path / "contents") == {(tmp_path / "claims.json").as_posix(): digest_of_text("[]")}
    assert read_contents(tmp_path / "nothing") == {}


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What stands beside the results of two papers."""
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text("seed: 0\n")
    for paper in ("focal", "cooling"):
        record_run("mini", paper, Path("params.yaml"), [])
    return FOLDER


def test_every_flipped_bit_beside_the_results_is_found(recorded: Path) -> None:
    assert record_problems(recorded) == []
    for name in ("params.yaml", "environment.json"):
        content = (recorded / name).read_bytes()
        for place in range(len(content)):
            flipped = bytearray(content)
            flipped[place] ^= 1 << place % 8
            (recorded / name).write_bytes(flipped)
            (problem,) = record_problems(recorded)
            assert problem.startswith(str(recorded / name))
        (recorded / name).write_bytes(content)


def test_a_damaged_part_of_another_paper_is_not_written_again_as_if_it_were_whole(recorded: Path) -> None:
    path = recorded / "environment.json"
    path.write_text(path.read_text().replace('"cell_minutes": {}', '"cell_minutes": {"a": 1}', 1))
    with pytest.raises(InputError, match=r"environment\.json: damaged.*Git"):
        record_run("mini", "focal", Path("params.yaml"), [])


def test_parts_from_before_they_carried_digests_stay_as_they_are(recorded: Path) -> None:
    path = recorded / "environment.json"
    parts = json.loads(path.read_text())
    for key in ("sha256", "paper", "parameters"):
        del parts["focal"][key]
    path.write_text(json.dumps(parts, sort_keys=True, indent=1) + "\n")
    assert record_problems(recorded) == []
    record_run("mini", "cooling", Path("params.yaml"), [])
    assert json.loads(path.read_text())["focal"] == parts["focal"]
