"""Stage describe: the 23 statistics of each embedded data set, computed on its training split."""

from pathlib import Path

from softmax_temperature import dataset_statistics
from softmax_temperature.networks.embeddings import open_embeddings
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.cells import Cell, Job
from softmax_temperature.runner.folders import EMBEDDINGS
from softmax_temperature.runner.section import Section

PAPER = "classifier_temperature"
OUTPUT = Path("data/classifier_temperature/statistics")


def cells(params: Params) -> list[Cell]:
    """One cell per data set and backbone."""
    names = (f"{dataset}/{backbone}" for dataset, backbone in params.embedded_pairs())
    return [Cell(name, run, Section(), {"embeddings": EMBEDDINGS / name}) for name in names]


def run(job: Job, _: Section) -> None:
    """Describe one embedded data set; writes `statistics.json`, the 23 names with their values."""
    embeddings, labels = open_embeddings(job.inputs["embeddings"])["train"].for_fitting()
    write_json(job.output / "statistics.json", dataset_statistics.describe(embeddings, labels, seed=job.seed))
