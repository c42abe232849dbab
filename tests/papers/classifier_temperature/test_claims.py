"""Data sets count once, untrained backbones not at all, and temperatures are chosen on
validation data.
"""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.papers.classifier_temperature.claims import CLAIMS
from softmax_temperature.papers.classifier_temperature.records import Records
from softmax_temperature.papers.shared.claims import (
    CONTRADICTED,
    HOLDS,
    INCONCLUSIVE,
    NOT_TESTED,
    judge_all,
)

DATASETS, BACKBONES = (
    [f"set{number}" for number in range(8)],
    ["small", "large", "wide", "deep", "untrained-64"],
)


@pytest.fixture
def records() -> Records:
    """The best inverse temperature is a line in feats_corr and nearly independent of
    all else.
    """
    names = pd.DataFrame(product(DATASETS, BACKBONES), columns=["dataset", "backbone"])
    drawn = np.random.default_rng(0).normal(size=(len(names), len(STATISTICS) + 1))
    pairs = pd.concat(
        [names, pd.DataFrame(drawn, columns=[*STATISTICS, "noise"])], axis=1
    )
    pairs["inverse_temperature"] = 100 + 20 * pairs["feats_corr"] + pairs["noise"]
    # On test data 250 is best by luck; validation data choose 50.
    columns = [
        "inverse_temperature",
        "validation_accuracy",
        "test_accuracy_at_validation_best",
    ]
    accuracies = pd.DataFrame(
        [(1.0, 0.70, 0.70), (50.0, 0.80, 0.80), (250.0, 0.75, 0.99)], columns=columns
    )
    runs = names.merge(accuracies, how="cross")
    better = (
        0.001
        * runs["dataset"].map(DATASETS.index)
        * (runs["inverse_temperature"] == 50)
    )
    runs[columns[-1]] += better
    arms = product(
        ("sgd", "adam"), ("plain", "rescaled"), range(4), (1.0, 50.0, 150.0, 250.0)
    )
    rescaling = pd.DataFrame(
        arms, columns=["optimizer", "loss", "repeat", "inverse_temperature"]
    )
    helped = (rescaling["optimizer"] + rescaling["loss"] == "sgdrescaled") & (
        rescaling["inverse_temperature"] > 100
    )
    rescaling["test_accuracy"] = 0.7 + (0.05 + 0.001 * rescaling["repeat"]) * helped
    return Records(runs, pairs, *[pd.DataFrame()] * 5, rescaling=rescaling)


def judged(records: Records) -> dict[str, dict[str, Any]]:
    return {
        row["id"]: row
        for row in judge_all("classifier_temperature", CLAIMS, records, profile="study")
    }


def test_records_of_known_answers(records: Records) -> None:
    rows = judged(records)
    open_ones = {name for name, row in rows.items() if row["verdict"] == INCONCLUSIVE}
    assert open_ones <= {"dimension-is-weak", "several-beat-one"}, (
        "one statistic says all there is to say"
    )
    assert {row["verdict"] for name, row in rows.items() if name not in open_ones} == {
        HOLDS
    }
    assert rows["feats-corr-is-strongest"]["note"].startswith("rank 1 of 23")
    assert rows["prediction-is-significant"]["n"] == len(DATASETS)
    gain = rows["temperature-matters"]
    assert (gain["value"], gain["n"], gain["each"]) == (
        pytest.approx(0.1035),
        8,
        "data sets",
    )
    # Over the upper half of the grid.
    assert rows["rescaling-helps-sgd"]["value"] == pytest.approx(0.0515)


def test_records_that_say_the_opposite(records: Records) -> None:
    """A plain loss that is the better one, and another statistic that says it all."""
    swapped = records.rescaling["loss"].map({"plain": "rescaled", "rescaled": "plain"})
    pairs = records.pairs.rename(columns={"feats_corr": "dim", "dim": "feats_corr"})
    rows = judged(
        replace(records, rescaling=records.rescaling.assign(loss=swapped), pairs=pairs)
    )
    for name in ("rescaling-helps-sgd", "feats-corr-is-strongest", "dimension-is-weak"):
        assert rows[name]["verdict"] == CONTRADICTED


def test_untrained_backbones_do_not_count(records: Records) -> None:
    untrained = records.pairs["backbone"] == "untrained-64"
    wild = records.pairs.assign(
        inverse_temperature=records.pairs["inverse_temperature"] + untrained
    )
    rows = [
        judged(some)["dimension-is-weak"]
        for some in (records, replace(records, pairs=wild))
    ]
    assert rows[0]["value"] == rows[1]["value"]


@pytest.mark.parametrize(
    ("generated", "tasks"), [(2, {"data sets": 6, "generated data sets": 2}), (8, None)]
)
def test_generated_data_sets_are_shown_apart(
    records: Records, generated: int, tasks: Any
) -> None:
    names = {f"set{number}": f"glyphs-{number}" for number in range(generated)}
    row = judged(replace(records, runs=records.runs.replace({"dataset": names})))[
        "temperature-matters"
    ]
    if tasks is None:
        assert row["verdict"] == NOT_TESTED
    else:
        assert {task["task"]: task["n"] for task in row["tasks"]} == tasks
        assert [task["pooled"] for task in row["tasks"]] == [True, False]
