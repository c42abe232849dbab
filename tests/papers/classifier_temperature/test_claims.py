"""Data sets count once, untrained backbones not at all, and temperatures are chosen on validation data."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.papers.classifier_temperature.claims import CLAIMS
from softmax_temperature.papers.classifier_temperature.records import Records
from softmax_temperature.papers.shared.claims import CONTRADICTED, HOLDS, INCONCLUSIVE, NOT_TESTED, judge_all

DATASETS, BACKBONES = [f"set{number}" for number in range(8)], ["small", "large", "wide", "deep", "untrained-64"]


@pytest.fixture
def records() -> Records:
    """The best inverse temperature is a line in feats_corr and nearly independent of all else."""
    generator = np.random.default_rng(0)
    pairs, runs = [], []
    for dataset in DATASETS:
        for backbone in BACKBONES:
            statistics = dict(zip(STATISTICS, generator.normal(size=len(STATISTICS)), strict=True))
            optimum = 100 + 20 * statistics["feats_corr"] + generator.normal()
            pairs.append({"dataset": dataset, "backbone": backbone, "inverse_temperature": optimum} | statistics)
            # On test data 250 is best by luck; validation data choose 50.
            for place, validation, test in ((1.0, 0.70, 0.70), (50.0, 0.80, 0.80), (250.0, 0.75, 0.99)):
                accuracy = test + 0.001 * DATASETS.index(dataset) * (place == 50)
                runs.append(
                    {"dataset": dataset, "backbone": backbone, "inverse_temperature": place}
                    | {"validation_accuracy": validation, "test_accuracy_at_validation_best": accuracy}
                )
    rescaling = [
        {"optimizer": optimizer, "loss": loss, "repeat": repeat, "inverse_temperature": place}
        | {"test_accuracy": 0.7 + (0.05 + 0.001 * repeat) * (place > 100 and (optimizer, loss) == ("sgd", "rescaled"))}
        for optimizer in ("sgd", "adam")
        for loss in ("plain", "rescaled")
        for repeat in range(4)
        for place in (1.0, 50.0, 150.0, 250.0)
    ]
    empty = pd.DataFrame()
    return Records(pd.DataFrame(runs), pd.DataFrame(pairs), *[empty] * 5, rescaling=pd.DataFrame(rescaling))


def judged(records: Records) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in judge_all("classifier_temperature", CLAIMS, records, profile="study")}


def test_records_of_known_answers(records: Records) -> None:
    rows = judged(records)
    open_ones = {name for name, row in rows.items() if row["verdict"] == INCONCLUSIVE}
    assert open_ones <= {"dimension-is-weak", "several-beat-one"}, "one statistic says all there is to say"
    assert {row["verdict"] for name, row in rows.items() if name not in open_ones} == {HOLDS}
    assert rows["feats-corr-is-strongest"]["note"].startswith("rank 1 of 23")
    assert rows["prediction-is-significant"]["n"] == len(DATASETS)


def test_the_temperature_is_chosen_on_validation_data(records: Records) -> None:
    row = judged(records)["temperature-matters"]
    assert (row["value"], row["n"], row["each"]) == (pytest.approx(0.1035), 8, "data sets")


def test_rescaling_is_judged_on_the_upper_half_of_the_grid(records: Records) -> None:
    rows = judged(records)
    assert rows["rescaling-helps-sgd"]["value"] == pytest.approx(0.0515)
    swapped = records.rescaling["loss"].map({"plain": "rescaled", "rescaled": "plain"})
    turned = judged(replace(records, rescaling=records.rescaling.assign(loss=swapped)))
    assert turned["rescaling-helps-sgd"]["verdict"] == CONTRADICTED


def test_another_statistic_that_says_it_all_contradicts_the_strongest(records: Records) -> None:
    turned = replace(records, pairs=records.pairs.rename(columns={"feats_corr": "dim", "dim": "feats_corr"}))
    rows = judged(turned)
    assert rows["feats-corr-is-strongest"]["verdict"] == CONTRADICTED
    assert rows["dimension-is-weak"]["verdict"] == CONTRADICTED


def test_untrained_backbones_do_not_count(records: Records) -> None:
    where = records.pairs["backbone"] == "untrained-64"
    wild = replace(
        records, pairs=records.pairs.assign(inverse_temperature=records.pairs["inverse_temperature"] + where)
    )
    assert judged(wild)["dimension-is-weak"]["value"] == judged(records)["dimension-is-weak"]["value"]


def test_generated_data_sets_are_shown_apart(records: Records) -> None:
    names = {f"set{number}": f"glyphs-{number}" for number in range(2)}
    row = judged(replace(records, runs=records.runs.replace({"dataset": names})))["temperature-matters"]
    assert [(task["task"], task["n"], task["pooled"]) for task in row["tasks"]] == [
        ("data sets", 6, True),
        ("generated data sets", 2, False),
    ]
    every = {f"set{number}": f"glyphs-{number}" for number in range(8)}
    row = judged(replace(records, runs=records.runs.replace({"dataset": every})))["temperature-matters"]
    assert row["verdict"] == NOT_TESTED
