"""What stands below results/: claims, tables, records, notebooks and figures, as the report and others read them."""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pandas as pd
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from softmax_temperature.papers.cooling.cost import cost_of_cooling
from softmax_temperature.papers.focal import result_figures
from softmax_temperature.papers.html import write_report
from softmax_temperature.papers.shared import results
from softmax_temperature.papers.shared.scorecard import END, START, scorecard, write_scorecard
from softmax_temperature.papers.shared.tables import read_csv
from softmax_temperature.runner.artifacts import canonical_json, sealed
from softmax_temperature.tools import plan
from tests.faults.mutations import exchanged
from tests.faults.readers.arrays import npz
from tests.faults.readers.reader import SLOW, Reader

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
CLAIM = {
    "paper": "focal",
    "id": "better",
    "where": "Table 1",
    "statement": "Focal loss is better calibrated.",
    "criterion": "Difference below 0.",
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
}
UNTESTED = {**CLAIM, "id": "other", "verdict": "not tested"} | dict.fromkeys(
    ("value", "sd", "low", "high", "n", "unit")
)
PLACE = {"machine": {"cores": 2, "cuda": None}, "versions": {"torch": "2.0"}}
ENVIRONMENT = {"focal": {"machines": [PLACE], "cell_minutes": {"training": 1.5, "evaluation": None}}}
STEP = {f"{mode}_{what}": 0.5 for mode in ("last_layer", "distributed", "periodic") for what in ("seconds", "share")}
STEP |= {"epoch_seconds": 20.0, "rounds": 3, "size": "49500 images"}
BENCHMARKS = {
    "cpu": {"machine": {"cores": 2}, "results": {"cooling_step": STEP, "overhead": {}}},
    "cuda": {"results": {}},
}
CELL = {
    "stage": "focal/training",
    "cell": "toy/CE/0",
    "inputs": {"images": "d0" * 32},
    "result": "e0" * 32,
    "fingerprint": "f" * 64,
    "project_seed": 0,
    "seed": 12345,
    "parameters": "aa" * 32,
    "code": "cc" * 32,
}
RECORDS = {
    "cells": [CELL, CELL | {"code": None}],
    "parameters": {"aa" * 32: {"lr": 0.1}},
    "code": {"cc" * 32: {"m": "9"}},
}
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" width="20pt" height="10pt"><path d="M 0 0 L 9 9"/></svg>'
README = f"# A heading\n{START}\nold\n{END}\nMore.\n".encode()


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()


def notebook() -> bytes:
    table = '<table id="T_table-1"><tbody><tr><td>1</td></tr></tbody></table>'
    outputs = [
        {"text/markdown": "**ECE** fell."},
        {"text/html": table},
        {"image/png": base64.b64encode(PIXEL).decode()},
    ]
    cells = [new_markdown_cell("# Focal loss\n\n## Table 1: errors\n\nRead it.")]
    cells += [new_code_cell("shown(table)", outputs=[new_output("display_data", data=data)]) for data in outputs]
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    return nbformat.writes(new_notebook(cells=cells)).encode()


def comparison() -> bytes:
    names = {"task": "toy", "dataset": "digits", "network": "small"}
    numbers = {"published": 0.25, "ours": 0.3, "ours_sd": 0.01, "seeds": 3, "difference_in_standard_errors": 4.2}
    rows = [{**names, "method": method, "metric": "ece", **numbers, "status": "measured"} for method in ("CE", "FL")]
    return pd.DataFrame(rows).to_csv(index=False).encode()


@cache
def toy_results() -> dict[str, bytes]:
    return {
        "environment.json": as_json(ENVIRONMENT),
        "focal/claims.json": as_json([CLAIM, UNTESTED]),
        "focal/records.json": as_json(RECORDS),
        "focal/notebook.ipynb": notebook(),
        "focal/runs.csv": b"x,y\n1,2\n",
        "focal/tables/table_1.csv": comparison(),
        "focal/tables/deviations.csv": b"where,what\nlosses.focal,a reason\n",
        "focal/figures/figure-1.svg": SVG,
        "focal/figures/figure-1.png": PIXEL,
    }


def write_results(folder: Path, replaced: dict[str, bytes]) -> Path:
    for name, content in (toy_results() | replaced).items():
        path = folder / "results" / "toy" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder / "results"


def report_reader(name: str, *places: str) -> Reader:
    return Reader(
        places,
        lambda: [toy_results()[name]],
        lambda folder, content: write_report(write_results(folder, {name: content})),
        share=SLOW,
    )


def report_value_reader(name: str) -> Reader:
    """The same for the values in a JSON file."""
    return Reader(
        (),
        lambda: [json.loads(toy_results()[name])],
        lambda folder, value: write_report(write_results(folder, {name: as_json(value)})),
        exchanged,
        share=SLOW,
    )


def read_scorecard(folder: Path, value: Any) -> None:
    scorecard(write_results(folder, {"focal/claims.json": as_json(value)}))


def read_readme(folder: Path, content: bytes) -> None:
    (folder / "README.md").write_bytes(content)
    write_scorecard(folder / "README.md", write_results(folder, {}))


def read_minutes(folder: Path, value: Any) -> None:
    plan._recorded_minutes(write_results(folder, {"environment.json": as_json(value)}) / "toy")


def read_benchmarks(folder: Path, value: Any) -> None:
    (folder / "results.json").write_bytes(as_json(value))
    cost_of_cooling(folder / "results.json")


def read_run(folder: Path, content: bytes) -> None:
    """What stands beside the results of a profile, before a part of it is replaced."""
    results._parts(write_results(folder, {"environment.json": content}) / "toy")


def sealed_environment() -> bytes:
    return canonical_json({paper: sealed({"paper": paper, **part}) for paper, part in ENVIRONMENT.items()}).encode()


def read_contents(folder: Path, content: bytes) -> None:
    (folder / "contents").write_bytes(content)
    results.read_contents(folder / "contents")


def read_table(folder: Path, content: bytes) -> None:
    (folder / "table.csv").write_bytes(content)
    read_csv(folder / "table.csv")


def read_pixels(folder: Path, content: bytes) -> None:
    (folder / "panels.npz").write_bytes(content)
    result_figures._images(folder / "panels.npz", "digits")


READERS = {
    **{
        f"report: {name}": report_reader(name, *places)
        for name, places in {
            "environment.json": ["json_files.read_json"],
            "focal/claims.json": ["json_files.read_json"],
            "focal/records.json": ["json_files.read_json"],
            "focal/notebook.ipynb": ["json_files.read_json", "report.files.read_notebook"],
            "focal/runs.csv": ["tables.read_csv"],
            "focal/tables/table_1.csv": ["tables.read_csv"],
            "focal/tables/deviations.csv": ["tables.read_csv"],
        }.items()
    },
    "report: figures": report_reader("focal/figures/figure-1.svg", "report.files.read_text"),
    **{
        f"report: values of {name}": report_value_reader(name)
        for name in ("environment.json", "focal/claims.json", "focal/records.json", "focal/notebook.ipynb")
    },
    "scorecard": Reader(("json_files.read_json",), lambda: [[CLAIM, UNTESTED]], read_scorecard, exchanged),
    "README": Reader(("scorecard.write_scorecard",), lambda: [README], read_readme),
    "run": Reader(("json_files.read_json", "results._parts"), lambda: [sealed_environment()], read_run),
    "contents": Reader(
        ("results.read_contents",), lambda: [f"{'d' * 64}  results/toy/a.csv\n".encode()], read_contents
    ),
    "benchmarks": Reader(("json_files.read_json",), lambda: [BENCHMARKS], read_benchmarks, exchanged),
    "minutes": Reader(("json_files.read_json",), lambda: [ENVIRONMENT], read_minutes, exchanged),
    "table": Reader(("tables.read_csv", "tables.refuse_marks_of_a_merge"), lambda: [comparison()], read_table),
    "pixels": Reader(
        ("array_files.numpy_files.NpzFile.__init__",),
        lambda: [npz({"digits": np.zeros((4, 8, 8), np.uint8)})],
        read_pixels,
    ),
}
