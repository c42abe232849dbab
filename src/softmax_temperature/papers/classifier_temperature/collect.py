"""Gathering the paper's records in one folder: what the notebook, the report and a
reader without data start from.
"""

from pathlib import Path

import pandas as pd

from softmax_temperature.papers.classifier_temperature.records import SLUG, Records
from softmax_temperature.papers.shared.records import table_names, write_results
from softmax_temperature.params import Params
from softmax_temperature.runner.artifacts import write_text
from softmax_temperature.stages.classifier_temperature import (
    describe,
    rescaling,
    search,
)
from softmax_temperature.stages.embeddings import embed
from softmax_temperature.stages.fetch import fetch
from softmax_temperature.stages.heuristic import heuristic
from softmax_temperature.stages.pretraining import pretrain

STAGES = (fetch, pretrain, embed, describe, search, rescaling, heuristic)
"""What the results rest on."""


def collect(params: Params, folder: Path) -> None:
    """Write records, tables, claims and metrics; a cell that the parameters declare and
    that is missing is an error.
    """
    fitted = heuristic.result(".")
    made = {
        name: pd.read_csv(fitted.path(f"{name}.csv"))
        for name in table_names(Records)
        if name != "rescaling"
    }
    arms = {}
    for arm in rescaling.results(params).values():
        record, curves = (
            arm.json("record.json"),
            arm.tensors("curves.safetensors")["test"],
        )
        best = (
            curves.double().amax(-1).round(decimals=6).numpy()
        )  # Over epochs, of each repeat.
        places = pd.MultiIndex.from_product(
            [range(len(best)), record["inverse_temperatures"]]
        )
        arms[record["optimizer"], record["loss"]] = pd.Series(best.ravel(), places)
    names = ["optimizer", "loss", "repeat", "inverse_temperature"]
    made["rescaling"] = (
        pd.concat(arms, names=names).rename("test_accuracy").reset_index()
    )
    write_text(
        folder / "heuristic.json",
        fitted.path("heuristic.json").read_text(encoding="utf-8"),
    )
    write_results(
        folder, SLUG, params.profile, made=made, code=[stage.module for stage in STAGES]
    )
