"""A small folder of results, with names that would do harm were they not escaped."""

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
CLAIM: dict[str, Any] = {
    "paper": "focal",
    "id": "better",
    "where": "Table 1",
    "statement": f"Focal loss beats {HOSTILE}.",
    "criterion": f"Difference & {HOSTILE}. Superiority: holds if the 90 % interval lies below 0.",
    "profile": "toy",
    "cells": ["focal/evaluation/toy/CE"],
}
CLAIM |= {"published": -0.25, "unit": "ECE", "each": "seeds", "n_needed": None, "verdict": "holds", "note": ""}
CLAIM |= {"kind": "superiority", "region": [None, 0.0], "some": False}
CLAIM |= {"share": True, "note_template": "", "note_values": []}
CLAIM |= {"value": -0.125, "sd": 0.01, "low": -0.15, "high": -0.1, "n": 3}
CLAIMS = [
    CLAIM,
    CLAIM | {"id": "same", "statement": "It is as accurate.", "verdict": "inconclusive", "cells": ["prepared/toy"]},
    CLAIM
    | {"id": "never", "statement": "It is fast.", "verdict": "not tested", "cells": [], "note": "no run"}
    | dict.fromkeys(("value", "sd", "low", "high", "published", "n", "unit")),
]
CAPTION = "Read it from left to right."


@pytest.fixture
def notebook() -> nbformat.NotebookNode:
    """An executed notebook with words, a table and a figure."""
    return _notebook()


@pytest.fixture
def results(tmp_path: Path) -> Path:
    """The folder `results` with one profile, whose only paper has all of its pieces."""
    folder = tmp_path / "results" / "toy" / "focal"
    (folder / "tables").mkdir(parents=True)
    _write(folder / "claims.json", CLAIMS)
    pd.DataFrame({"cells": ["focal/evaluation/toy/CE"]}).to_csv(folder / "tables" / "table_1.csv", index=False)
    pd.DataFrame({"x": [1]}).to_csv(folder / "runs.csv", index=False)
    deviations = pd.DataFrame({"where": ["losses.focal"], "what": [f"a reason, and {HOSTILE}"]})
    deviations.to_csv(folder / "tables" / "deviations.csv", index=False)
    nbformat.write(_notebook(), folder / "notebook.ipynb")
    _write(folder / "records.json", _records())
    (folder.parent / "params.yaml").write_text("profile: toy\nfocal: {seeds: 2}\n")
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
        new_markdown_cell("## Claims\n\nJudged here."),
        new_markdown_cell(f"Before.\n\n## Table 1: errors\n\n{CAPTION}"),
        _code("shown(table)", {"text/html": f"{html}<script>alert(3)</script>"}),
        new_markdown_cell("## Figure 1: curves\n\nWith $\\alpha$ in it."),
        _code("drawn(figure)", picture),
    ]
    cells[-1].outputs[0].metadata["image/png"] = {"width": 380}
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
