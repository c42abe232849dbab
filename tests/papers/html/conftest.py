"""A small folder of results, with names that would do harm were they not escaped."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import nbformat
import pandas as pd
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

HOSTILE = "<img src=x onerror=alert(1)>"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
DRAWING = (
    '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="20pt" height="10pt"><metadata>by a program'
    '</metadata><!-- a remark --><path id="a" d="M 0 0 L 9 9" style="stroke: #b2182b; width: 100%"/></svg>'
)
CLAIM: dict[str, Any] = {
    "paper": "focal",
    "id": "better",
    "where": "Table 1",
    "statement": f"Focal loss beats {HOSTILE}.",
    "criterion": f"Difference below 0 & {HOSTILE}",
    "published": -0.25,
    "profile": "toy",
    "value": -0.125,
    "sd": 0.01,
    "low": -0.15,
    "high": -0.1,
    "n": 3,
    "unit": "ECE",
    "verdict": "holds",
    "note": "",
    "cells": ["focal/evaluation/toy/CE"],
}
CLAIMS = [
    CLAIM,
    CLAIM | {"id": "same", "statement": "It is as accurate.", "low": -0.15, "high": 0.1, "cells": ["prepared/toy"]},
    CLAIM
    | {"id": "never", "statement": "It is fast.", "verdict": "not tested", "n": None, "unit": None, "cells": []}
    | dict.fromkeys(("value", "sd", "low", "high", "published")),
]
CLAIMS[1] |= {"verdict": "inconclusive", "n_needed": 7, "each": "seeds"}
CAPTION = "Read it from left to right."


@pytest.fixture
def hostile() -> str:
    """What stands in every place where a page shows a name or a sentence."""
    return HOSTILE


@pytest.fixture
def notebook() -> nbformat.NotebookNode:
    """An executed notebook with words, a table and a figure."""
    return _notebook()


@pytest.fixture
def pixel() -> bytes:
    """The figure that the notebook shows, as PNG."""
    return PIXEL


@pytest.fixture
def table() -> pd.DataFrame:
    """Two tasks, of which one was run, with two methods; a metric that is compared and one that nothing is known of."""
    rows = []
    for task, status in (("toy", "measured"), ("", "not run: profile paper")):
        for method, ours in (("CE", 0.3), (HOSTILE, 0.2)):
            for metric, published in (("ece", 0.25), ("ece_after_scaling", None)):
                names = {"task": task, "dataset": task or "CIFAR-10", "network": "small", "method": method}
                here = {"ours": ours, "ours_sd": 0.01, "seeds": 3, "difference_in_standard_errors": 4.2}
                here["cells"] = f"focal/evaluation/{task}/{method}"
                numbers = here if task else dict.fromkeys(here)
                rows.append({**names, "metric": metric, "published": published, **numbers, "status": status})
    frame = pd.DataFrame(rows)
    frame.loc[frame["published"].isna(), "difference_in_standard_errors"] = None
    frame.loc[frame["method"] != "CE", "difference_in_standard_errors"] *= -0.1
    return frame[(frame["task"] != "") | frame["published"].notna()]


@pytest.fixture
def results(tmp_path: Path, table: pd.DataFrame) -> Path:
    """The folder `results` with one profile, whose only paper has all of its pieces."""
    folder = tmp_path / "results" / "toy" / "focal"
    (folder / "tables").mkdir(parents=True)
    (folder / "figures").mkdir()
    _write(folder / "claims.json", CLAIMS)
    table.to_csv(folder / "tables" / "table_1.csv", index=False)
    pd.DataFrame({"x": [1]}).to_csv(folder / "runs.csv", index=False)
    deviations = pd.DataFrame({"where": ["losses.focal"], "what": [f"a reason, and {HOSTILE}"]})
    deviations.to_csv(folder / "tables" / "deviations.csv", index=False)
    (folder / "figures" / "figure-1.svg").write_text(DRAWING)
    (folder / "figures" / "figure-1.png").write_bytes(PIXEL)
    nbformat.write(_notebook(), folder / "notebook.ipynb")
    _write(folder / "records.json", _records())
    (folder.parent / "params.yaml").write_text("profile: toy\n")
    machine = {"machine": {"cores": 2, "processor": HOSTILE}, "versions": {"torch": "2.0"}}
    environment = {"machines": [machine], "cell_minutes": {"training": 1.5, "evaluation": None}}
    _write(folder.parent / "environment.json", {"focal": environment})
    return tmp_path / "results"


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content))


def _notebook() -> nbformat.NotebookNode:
    picture = {"image/png": base64.b64encode(PIXEL).decode()}
    html = '<style>#T_table-1 td {color: red}</style><table id="T_table-1"><tbody><tr><td>1</td></tr></tbody></table>'
    cells = [
        new_markdown_cell("# Focal loss, checked\n\nSomebody, 2020."),
        new_markdown_cell("## What the study shows\n\nIn this profile."),
        _code("Markdown(words)", {"text/markdown": f"**ECE** of {HOSTILE} and [a link](javascript:alert(2))"}),
        new_markdown_cell("## Figure 0\n\nNot drawn."),
        _code("nothing", {"text/markdown": "*Nothing was trained.*"}),
        new_markdown_cell(f"Before.\n\n## Table 1: errors\n\n{CAPTION}"),
        _code("shown(table)", {"text/html": f"{html}<script>alert(3)</script>"}),
        new_markdown_cell("## Figure 1: curves\n\nWith $\\alpha$ in it."),
        _code("drawn(figure)", picture),
    ]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    return new_notebook(cells=cells)


def _code(source: str, data: dict[str, str]) -> nbformat.NotebookNode:
    return new_code_cell(source, outputs=[new_output("display_data", data=data)], execution_count=1)


def _records() -> dict[str, Any]:
    """A data set, two trainings that read it and two evaluations of them."""

    def cell(stage: str, name: str, inputs: dict[str, str], result: str) -> dict[str, Any]:
        known = {"stage": stage, "cell": name, "inputs": inputs, "result": result * 32, "fingerprint": "f" * 64}
        return known | {"project_seed": 0, "seed": 12345, "parameters": "aa" * 32, "code": "cc" * 32}

    cells = [cell("prepared/toy", ".", {}, "d0")]
    cells += [cell("focal/training", f"toy/CE/{seed}", {"images": "d0" * 32}, f"e{seed}") for seed in (0, 1)]
    cells += [cell("focal/evaluation", f"toy/CE/{seed}", {"training": f"e{seed}" * 32}, f"b{seed}") for seed in (0, 1)]
    cells[0]["code"] = None
    return {
        "cells": cells,
        "parameters": {"aa" * 32: {"lr": 0.1, "name": HOSTILE}},
        "code": {"cc" * 32: {"m": "9" * 64}},
    }
