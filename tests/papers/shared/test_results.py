"""A paper's results are written with stable digits, digests and environments."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load_file

from softmax_temperature.papers.shared import provenance, records
from softmax_temperature.papers.shared.files import (
    read_csv,
    round_again,
    rounded,
    write_csv,
    write_results,
)
from softmax_temperature.papers.shared.printed import published
from softmax_temperature.papers.shared.provenance import record_run
from softmax_temperature.papers.shared.records import (
    deviations,
    table_path,
    write_pixels,
)
from softmax_temperature.runner.artifacts import digest_of_text
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools.notebooks import write_contents

FOLDER = Path("results/mini")


def test_a_table_has_its_significant_digits_and_is_written_the_same_again(
    tmp_path: Path,
) -> None:
    normal = np.random.default_rng(0).normal(size=50)
    columns = {"a": normal * 1e-7, "b": [1 / 3] * 50, "c": range(50), "d": 1.0}
    table = pd.DataFrame(columns)
    write_csv(table_path(tmp_path, "runs"), table)
    write_csv(table_path(tmp_path, "history"), -table)
    assert (tmp_path / "tables/history.csv").is_file()
    stored = read_csv(tmp_path / "runs.csv")
    pd.testing.assert_frame_equal(stored, table, rtol=5e-6, atol=0)
    write_csv(tmp_path / "again.csv", stored)
    assert (tmp_path / "again.csv").read_bytes() == (tmp_path / "runs.csv").read_bytes()


def test_last_bits_of_numbers_change_no_file(tmp_path: Path) -> None:
    numbers = {"accuracy": 0.91234, "nll": 1234.56, "difference": 3e-16}
    # Two values differ by one unit in the last place of a float32, and the third by a
    # rounding error near zero.
    others = {"accuracy": 0.91234 + 6e-8, "nll": 1234.56 + 1.2e-4, "difference": -1e-15}
    for name, row in (("first", numbers), ("second", others)):
        write_csv(tmp_path / f"{name}.csv", pd.DataFrame([row]))
        write_results(tmp_path / f"{name}.json", {"rows": [row]})
    for ending in ("csv", "json"):
        first = (tmp_path / f"first.{ending}").read_bytes()
        assert first == (tmp_path / f"second.{ending}").read_bytes()


def test_rounding_reaches_numbers_at_any_depth_and_nothing_else() -> None:
    others = {"n": 12345678901, "text": "0.1234567890123", "none": None}
    assert rounded({"a": [1 / 3, {"b": 2e10 / 3}, 1e-13], **others}) == {
        "a": [0.333333, {"b": 6666670000.0}, 0.0],
        **others,
    }


def test_numbers_are_rounded_again_and_texts_stay(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(
        'gamma,rate,text,count,empty\n1,0.316227766,"0.123456789, or so",12345678,\n'
        "531,1e-05,1.2.3,3.0,\n"
    )
    round_again(tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text() == (
        'gamma,rate,text,count,empty\n1,0.316228,"0.123456789, or so",12345678,\n'
        "531,1e-05,1.2.3,3.0,\n"
    )
    (tmp_path / "t.json").write_text('{"a": [0.123456789, 7]}')
    round_again(tmp_path / "t.json")
    assert json.loads((tmp_path / "t.json").read_text()) == {"a": [0.123457, 7]}


def test_committed_numbers_have_only_significant_digits(project_root: Path) -> None:
    paths = sorted((project_root / "results").glob("*/*/tables/*.csv"))
    paths += sorted((project_root / "results").glob("*/*/runs.csv"))
    fields = {
        field
        for path in paths
        if path.stem != "deviations"
        for field in re.split(r"[,\n]", path.read_text())
    }
    long = [field for field in fields if re.fullmatch(r"-?\d*\.\d{7,}(e-\d+)?", field)]
    assert [field for field in long if rounded(float(field)) != float(field)] == []


def test_pictures_read_back_have_equal_bytes_and_no_file_where_there_are_none(
    tmp_path: Path,
) -> None:
    pictures = {"task": np.arange(24, dtype=np.uint8).reshape(2, 3, 4)[:, ::-1]}
    for name in ("first", "second"):
        write_pixels(tmp_path / name, pictures)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "second").read_bytes()
    np.testing.assert_array_equal(
        load_file(tmp_path / "first")["task"], pictures["task"]
    )
    write_pixels(tmp_path / "none", {})
    assert not (tmp_path / "none").exists()


def test_a_missing_table_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"t\.csv: table not found"):
        read_csv(tmp_path / "t.csv")


def test_published_numbers_are_the_papers() -> None:
    table = published("classifier_temperature", "Table 1")
    row = table[
        (table["method"] == "All Stats") & (table["metric"] == "median_correlation")
    ]
    assert row["value"].tolist() == [0.9563]
    with pytest.raises(ValueError, match="Table 9"):
        published("classifier_temperature", "Table 9")


def test_the_contents_name_every_file_with_its_digest(tmp_path: Path) -> None:
    texts = {
        tmp_path / "results/claims.json": "[]",
        tmp_path / "results/tables/a.csv": "x",
    }
    for path, text in texts.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    write_contents(tmp_path / "results", tmp_path / "contents")
    lines = [
        f"{digest_of_text(text)}  {path.as_posix()}\n" for path, text in texts.items()
    ]
    assert (tmp_path / "contents").read_text() == "".join(lines)


def test_minutes_and_machines_are_written_again_only_where_the_records_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text("seed: 0\n")
    minutes = iter([1.0, 2.0, 3.0, 4.0])
    monkeypatch.setattr(
        provenance,
        "_environment",
        lambda _: {"machines": [], "cell_minutes": {"search": next(minutes)}},
    )

    def recorded(paper: str, content: str) -> dict[str, float]:
        (FOLDER / paper).mkdir(parents=True, exist_ok=True)
        (FOLDER / paper / "records.json").write_text(content)
        record_run("mini", paper, Path("params.yaml"), [])
        papers = json.loads((FOLDER / "environment.json").read_text())
        return {name: part["cell_minutes"]["search"] for name, part in papers.items()}

    assert recorded("focal", "one") == {"focal": 1.0}
    assert recorded("focal", "one") == {"focal": 1.0}
    assert recorded("cooling", "one") == {"focal": 1.0, "cooling": 2.0}
    assert recorded("focal", "two") == {"focal": 3.0, "cooling": 2.0}
    assert (FOLDER / "params.yaml").read_text() == "seed: 0\n"


def test_deviations_are_listed_each_joined_over_its_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        "x = 1",
        "    # Deviation: the paper says so,",
        "    # we say this.",
        "y = 2  # not this",
        "# Deviation: one line.",
        "z = 3",
        "# other\n",
    ]
    (tmp_path / "some.py").write_text("\n".join(lines))
    monkeypatch.setattr(records, "import_closure", lambda name, **_: [name])
    monkeypatch.setattr(records, "source_path", lambda _: tmp_path / "some.py")
    expected = [["some", "the paper says so, we say this."], ["some", "one line."]]
    assert deviations(["softmax_temperature.some"]).to_numpy().tolist() == expected
