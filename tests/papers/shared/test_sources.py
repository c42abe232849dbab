"""Records show the cells behind each number; they are reproducible and linked."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from softmax_temperature.data.seeds import seed_of
from softmax_temperature.papers.shared import sources
from softmax_temperature.papers.shared.provenance import provenance
from softmax_temperature.papers.shared.sources import (
    apart,
    cell_of_each,
    link,
    relinked,
    together,
)
from softmax_temperature.runner.artifacts import (
    canonical_json,
    open_artifact,
    write_json,
)
from softmax_temperature.runner.cells import Cell, Job, run_cells
from softmax_temperature.runner.fingerprint import code_digest
from softmax_temperature.runner.section import Compute

ROWS = pd.DataFrame(
    {
        "arm": ["a", "a", "b"],
        "rate": [0.003, 0.003, 10.0],
        "count": [7, 7, 8],
        "seed": [0, 1, 0],
    }
)
HOSTILE = ('a"><script>alert(1)</script>/b', "c & d; e", "50 %/ä#f?g")
SOURCE, SUMS = Path("data/prepared/numbers"), Path("data/sums")


def total(job: Job, factor: int) -> None:
    numbers = [one.json("total.json") for one in job.inputs.values()]
    write_json(job.output / "total.json", factor * (1 + sum(numbers)))


def made(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Records of two training runs on a data set, and one record of another paper."""
    monkeypatch.chdir(folder)
    settings = {
        "engine": "serial",
        "workers": 1,
        "threads_per_cell": 1,
        "device": "cpu",
        "checkpoint_seconds": 0,
    }
    compute = Compute.model_validate(
        settings | {"ray_address": None, "gpus_per_cell": 0}
    )
    for output, factor in ((SOURCE, 4), (SOURCE.with_name("of-another-paper"), 5)):
        run_cells(
            [Cell(".", total, {"factor": factor})],
            output=output,
            compute=compute,
            seed=7,
        )
    cells = [
        Cell(f"sum/{seed}", total, {"factor": 2}, {"numbers": SOURCE})
        for seed in (0, 1)
    ]
    run_cells(cells, output=SUMS, compute=compute, seed=7)
    return provenance([SOURCE.parent, SUMS])


def test_a_record_says_what_a_cell_was_made_from_and_is_the_same_from_run_to_run(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = made(tmp_path_factory.mktemp("first"), monkeypatch)
    source, first, second = found["cells"]
    assert source["stage"] == "prepared/numbers", "an unread data set must be left out"
    assert (first["stage"], first["cell"], first["project_seed"]) == (
        "sums",
        "sum/0",
        7,
    )
    assert first["seed"] == seed_of(7, "sums", "sum/0") != second["seed"]
    assert found["parameters"][first["parameters"]] == {"factor": 2}
    assert first["inputs"] == {"numbers": source["result"]}
    assert first["result"] == open_artifact(SUMS / "sum/0").digest
    assert found["code"][first["code"]] == {
        total.__module__: code_digest(total.__module__)
    }
    assert canonical_json(
        made(tmp_path_factory.mktemp("second"), monkeypatch)
    ) == canonical_json(found)


def test_cells_are_named_by_their_stage_and_numbers_as_their_names_have_them() -> None:
    names = ("paper/training/a/0.003/7", "paper/training/b/10/8")
    assert sources.cells_of("paper/training", ROWS, "arm", "rate", "count") == names
    assert cell_of_each("paper/training", ROWS, "arm", "rate", "count") == [
        names[0],
        *names,
    ]
    for some in ((), names[:1], names):
        assert apart(together([*some, *some])) == some


def test_links_carry_hostile_names_as_text_and_other_links_are_unchanged() -> None:
    html = "".join(f"<td>{link('1', name)}</td>" for name in (*HOSTILE, HOSTILE[0]))
    assert "<script>" not in html
    pages = relinked(html, lambda name: f"page#{HOSTILE.index(name)}")
    assert [pages.count(f'<a href="page#{number}">1</a>') for number in range(4)] == [
        2,
        1,
        1,
        0,
    ]
    assert "<script>" not in relinked(html, lambda name: name)
    other = '<a href="elsewhere.json#a">1</a>'
    assert relinked(other, lambda name: name) == other
