"""The folder of a paper's results, and the file that stands for it."""

from __future__ import annotations

from pathlib import Path

from softmax_temperature.artifacts import digest_of_text
from softmax_temperature.results import write_contents


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
