"""The notebook runs to its end on small records, and shows every table and figure."""

import base64
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.papers.cooling import tables
from softmax_temperature.papers.cooling.claims import CLAIMS
from softmax_temperature.papers.cooling.records import Records
from softmax_temperature.papers.shared.claims import judge_all
from softmax_temperature.papers.shared.notebooks import execute
from softmax_temperature.papers.shared.records import table_names, table_path, write_pixels
from softmax_temperature.papers.shared.tables import write_csv
from softmax_temperature.runner.artifacts import write_json

FIGURES = 6


@pytest.fixture(autouse=True)
def _in_the_project(project_root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project_root)


def executed(records: Records, folder: Path) -> list[dict[str, str]]:
    """What the notebook puts out, by kind, with the records written as the pipeline would."""
    for name in table_names(Records):
        write_csv(table_path(folder, name), getattr(records, name))
    for name in tables.SPECS:
        write_csv(folder / "tables" / f"{name}.csv", tables.table(records, name))
    write_csv(folder / "tables" / "deviations.csv", pd.DataFrame({"where": ["here"], "what": ["a reason"]}))
    write_json(folder / "claims.json", judge_all("cooling", CLAIMS, records, profile="test"))
    execute(Path("notebooks/cooling.ipynb"), folder / "notebook.ipynb", {"results": folder.as_posix()})
    cells = json.loads((folder / "notebook.ipynb").read_text())["cells"]
    return [output["data"] for cell in cells for output in cell.get("outputs", []) if "data" in output]


def test_it_shows_every_figure_that_it_writes(records: Records, tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    pixels = np.zeros((1, 8, 8, 3), np.uint8)
    labels = dict.fromkeys(("labels", "none", "last_layer"), pixels[..., 0])
    write_pixels(tmp_path / "tables" / "segmentation.safetensors", {"images": pixels, **labels})
    outputs = executed(records, tmp_path)
    drawn = {base64.b64decode(output["image/png"]) for output in outputs if "image/png" in output}
    written = {path.read_bytes() for path in (tmp_path / "figures").glob("*.png")}
    assert drawn == written
    assert len(drawn) == FIGURES
    text = " ".join("".join(output.get("text/html", "")) for output in outputs)
    for said in ("Exp Decay Slow", "CReLU", "learning rate 0.001", "bench` on cpu: small VGG", "Lemma 3.3", "a reason"):
        assert said in text
