"""Files of numbers as the project writes and reads them, of every kind whose text another locale could change."""

from __future__ import annotations

import json
import locale
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from softmax_temperature.array_files import read_arrays
from softmax_temperature.tools.calibration_summary import summary

from softmax_temperature.data.word_vectors import read_word_vectors
from softmax_temperature.papers.html import write_report
from softmax_temperature.papers.shared.tables import read_csv, write_csv
from softmax_temperature.runner.artifacts import write_json, write_text
from softmax_temperature.tools.calibrate import calibrate
from softmax_temperature.tools.profiles import render_profile
from tests.faults.readers.arrays import csv_seeds, npz, values
from tests.faults.readers.results import write_results

PROFILES = Path(__file__).parents[2] / "profiles"
NUMBERS = [1234567.891, -0.1, 1e-9, 1 / 3, 1e16, 0.5]


def write(folder: Path) -> None:
    """Write them into a folder, and write down what reading them gives."""
    write_csv(folder / "table.csv", pd.DataFrame({"number": NUMBERS, "text": ["1,5", "a", "b", "c", "d", "e"]}))
    write_json(folder / "numbers.json", NUMBERS)
    write_text(folder / "params.yaml", render_profile("smoke", PROFILES)[0])
    (folder / "logits.csv").write_bytes(csv_seeds()[0])
    (folder / "logits.npz").write_bytes(npz(values()))
    (folder / "vectors.txt").write_text("the 1.5 -2.25 1e-3\n")
    read = {
        "table": read_csv(folder / "table.csv")["number"].tolist(),
        "json": json.loads((folder / "numbers.json").read_text()),
        "csv": read_arrays(folder / "logits.csv", "logits", required=("logits",))["logits"].tolist(),
        "vectors": read_word_vectors(folder / "vectors.txt", ["the"], width=3).vectors.tolist(),
        "texts": [f"{number:,.3f} {number:g}" for number in NUMBERS] + [str(np.float32(0.1)), str(torch.tensor(0.1))],
    }
    write_json(folder / "read.json", read)
    report, _ = calibrate(folder / "logits.npz", bins=2, bootstrap=5, output=folder / "out", html=folder / "page.html")
    write_text(folder / "summary.txt", summary(report))
    write_report(write_results(folder, {}))


if __name__ == "__main__":
    # As a program does that greets its user in their own way; Python alone leaves the numbers of C as they are.
    locale.setlocale(locale.LC_ALL, "")
    assert locale.localeconv()["decimal_point"] == ",", "this locale has no decimal comma"
    write(Path(sys.argv[1]))
