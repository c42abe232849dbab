"""Stage describe: the 23 statistics of each embedded data set, computed on its training split."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.folders import EMBEDDINGS

if TYPE_CHECKING:
    from softmax_temperature.params import Params

OUTPUT = Path("data/classifier_temperature/statistics")


def cells(params: Params) -> list[Cell]:
    """One cell per data set and backbone."""
    paper = params.classifier_temperature
    return [
        Cell(f"{dataset}/{backbone}", run, {}, {"embeddings": EMBEDDINGS / dataset / backbone})
        for dataset in paper.datasets
        for backbone in paper.backbones
    ]


def run(job: Job) -> None:
    """Describe one embedded data set; writes `statistics.json`, the 23 names with their values."""
    from softmax_temperature.dataset_statistics import describe  # torch, which `--help` must not wait for
    from softmax_temperature.networks.embeddings import open_embeddings

    embeddings, labels = open_embeddings(job.inputs["embeddings"])["train"].for_fitting()
    write_json(job.output / "statistics.json", describe(embeddings, labels, seed=job.seed))
