"""Stage describe: the 23 statistics of each embedded data set, computed on its training split."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from softmax_temperature.artifacts import write_json
from softmax_temperature.cells import Cell, Job
from softmax_temperature.dataset_statistics import describe
from softmax_temperature.embeddings import open_embeddings

if TYPE_CHECKING:
    from softmax_temperature.params import Params

EMBEDDINGS = Path("data/embeddings")
OUTPUT = Path("data/statistics")


def cells(params: Params, dataset: str) -> list[Cell]:
    """One cell per backbone."""
    return [
        Cell(name, run, {}, {"embeddings": EMBEDDINGS / dataset / name})
        for name in params.classifier_temperature.backbones
    ]


def run(job: Job) -> None:
    """Describe one embedded data set; writes `statistics.json`, the 23 names with their values."""
    embeddings, labels = open_embeddings(job.inputs["embeddings"])["train"].for_fitting()
    write_json(job.output / "statistics.json", describe(embeddings, labels, seed=job.seed))
