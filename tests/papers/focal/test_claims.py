"""Verdicts follow the records: as the paper has it, turned by turning them, and open
where they are silent.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.papers.focal.claims import BASELINES, CLAIMS
from softmax_temperature.papers.focal.records import Records, early_stopping
from softmax_temperature.papers.shared.claims import (
    CONTRADICTED,
    HOLDS,
    INCONCLUSIVE,
    NOT_TESTED,
)
from softmax_temperature.papers.shared.claims import judge_all as judge
from softmax_temperature.papers.shared.statistics import OverTasks, Task
from softmax_temperature.papers.shared.tables import published
from tests.papers.focal.conftest import TEXTS as NO_WORDS
from tests.papers.focal.conftest import crossed, made_of

# The later, the better calibrated, and the smaller the norms in the end.
ARMS = ("CE", "Brier", "MMCE", "LS-0.1", "LS-0.05", "FL-1", "FL-2", "FL-3", "FLSD-53")
IMAGES, TEXTS, IMDB = "cifar10-resnet50", "sst-tree-lstm", "imdb-cnn"


@pytest.fixture
def records() -> Records:
    """Of a study in which everything is as the paper says, with a task that it does not
    have.
    """
    texts = NO_WORDS | {"select": "best_validation", "embeddings": "learned"}
    tasks = [NO_WORDS | {"task": IMAGES, "dataset": "cifar10", "select": "last"}]
    tasks += [
        texts | {"task": TEXTS, "dataset": "sst_trees"},
        texts | {"task": IMDB, "dataset": "imdb"},
    ]
    runs = crossed(task=[IMAGES, TEXTS, IMDB], arm=ARMS, seed=range(3)).assign(
        diverged=False, accuracy=0.9
    )
    rank = runs["arm"].map(ARMS.index)
    runs = runs.assign(
        rank=rank, is_ce=rank == 0, jitter=0.001 * runs["seed"] * (1 + rank % 2)
    )
    runs["ece"] = 0.2 * 0.7**rank + runs["jitter"]
    scored = crossed(runs, scaling=["none", "ece"]).assign(at_bound=False)
    confident = pd.Series([0.9, 0.3, 0.5, 0.6])[
        2 * ~scored["is_ce"] + (scored["scaling"] == "ece")
    ]
    history = crossed(runs, split=["train", "validation", "test"], epoch=range(1, 8))
    epoch, jitter = history["epoch"], history["jitter"]
    norms = crossed(runs, epoch=[1, 3, 6], low=[0.01, 0.1])
    counts = np.where(
        (norms["low"] < 0.1) == norms["is_ce"], 10 + norms["seed"] * norms["is_ce"], 30
    )
    images, sets = runs[runs["task"] == IMAGES], ["svhn", "gaussian-noise", "cifar100"]
    outliers = crossed(images, ood=sets, scaling=["none", "ece"])
    better: Any = (
        0.1
        * (outliers["arm"] == "FLSD-53")
        * np.where(outliers["ood"] == "cifar100", -1, 1)
    )
    linear = crossed(loss=["CE", "FL-1"], seed=range(3), place=range(10))
    linear["logit_norm"] = linear["loss"].map({"CE": 6.0, "FL-1": 4.0})
    linear["weight_norm"] = linear["logit_norm"] + 0.1 * linear["seed"]
    sure = linear["place"] < linear["loss"].map({"CE": 7, "FL-1": 1}) + linear["seed"]
    models = crossed(arm=["CE", "LS", "FL"], seed=range(6))
    differs = 0.001 * models["seed"] * models["arm"].map({"CE": 0, "LS": 1, "FL": 2})
    models["temperature"] = models["arm"].map({"CE": 1.2, "LS": 1.0, "FL": 1.0})
    curves = crossed(
        models.rename(columns={"temperature": "best"}), temperature=[0.8, 1.0, 1.2, 1.4]
    )
    at = curves["temperature"]
    history = history.assign(
        nll=0.4 + 0.1 * (epoch - 3).abs(),
        nll_right=0.5 - (0.05 + jitter) * epoch,
        nll_wrong=2 + (0.5 + jitter) * epoch,
        weight_norm=10 + 0.1 * history["rank"] * np.where(epoch <= 3, 1, -1) + jitter,
        feature_norm=20 - history["rank"].where(history["rank"] >= 5, 0) + jitter,
    )
    return made_of(
        tasks=tasks,
        trainings=runs,
        runs=scored.assign(
            evaluated=np.where(scored["task"] == IMAGES, "last", "best_validation"),
            expected_calibration_error=0.1 * scored["ece"],
            accuracy=0.9 + scored["jitter"],
            confident_share=confident.to_numpy() + scored["jitter"],
            temperature=np.where(scored["is_ce"], 2.5, 1.0),
        ),
        history=history,
        early_stopping=early_stopping(history),
        gradient_norms=norms.assign(high=10 * norms["low"], count=counts),
        ood=outliers.assign(auroc=0.7 + better + outliers["jitter"]),
        linear_history=linear[linear["place"] == 9].assign(epoch=9),
        linear_mistakes=linear.assign(confidence=np.where(sure, 0.95, 0.7)),
        translation_runs=models.assign(
            dataset="wmt14_en_de",
            diverged=False,
            ece=models["arm"].map({"CE": 0.06, "LS": 0.03, "FL": 0.01}) + differs,
            best_bleu=models["arm"].map({"CE": 0.24, "LS": 0.25, "FL": 0.27}) + differs,
        ),
        translation_curves=curves.assign(
            bleu=-(at - 1).abs(), validation_ece=(at - curves["best"]).abs()
        ),
    )


def judged(records: Records, name: str) -> dict[str, Any]:
    return judge(
        "focal",
        [claim for claim in CLAIMS if claim.id == name],
        records,
        profile="study",
    )[0]


def shifted(
    records: Records, table: str, column: str, by: float, **where: Any
) -> Records:
    rows: pd.DataFrame = getattr(records, table).copy()
    rows.loc[(rows[list(where)] == pd.Series(where)).all(axis=1), column] += by
    return replace(records, **{table: rows})


def test_records_like_the_papers_hold(records: Records) -> None:
    rows = {
        row["id"]: row["verdict"]
        for row in judge("focal", CLAIMS, records, profile="study")
    }
    assert rows == dict.fromkeys((claim.id for claim in CLAIMS), HOLDS)
    row = judged(records, "flsd-53-detects-outliers")
    assert row["value"] == pytest.approx(0.1), (
        "sets that the paper lacks are shown alone"
    )
    assert [task["pooled"] for task in row["tasks"]] == [True, False]


@pytest.mark.parametrize(
    ("name", "table", "column", "by", "where"),
    [
        ("flsd-53-calibrates", "history", "ece", 0.5, {"arm": "FLSD-53"}),
        (
            "fl-3-calibrates-after-scaling",
            "runs",
            "expected_calibration_error",
            0.1,
            {"arm": "FL-3"},
        ),
        (
            "flsd-53-calibrates-on-texts",
            "history",
            "ece",
            0.5,
            {"arm": "FLSD-53", "task": TEXTS},
        ),
        ("flsd-53-beats-every-baseline", "history", "ece", -0.045, {"arm": "LS-0.05"}),
        ("gamma-order", "history", "ece", 0.3, {"arm": "FL-2"}),
        ("feature-norm-order", "history", "feature_norm", 10, {"arm": "FL-1"}),
        ("flsd-53-detects-outliers", "ood", "auroc", -0.2, {"arm": "FLSD-53"}),
        (
            "focal-is-more-confident-scaled",
            "runs",
            "confident_share",
            -0.5,
            {"arm": "FLSD-53", "scaling": "ece"},
        ),
        ("translation-focal-bleu", "translation_runs", "best_bleu", 0.1, {"arm": "LS"}),
        (
            "translation-focal-temperature-is-one",
            "translation_runs",
            "temperature",
            0.1,
            {"arm": "LS"},
        ),
        (
            "translation-calibrated-where-good",
            "translation_curves",
            "bleu",
            5.0,
            {"temperature": 0.8},
        ),
    ],
)
def test_each_is_contradicted_when_its_records_are_turned(
    records: Records,
    name: str,
    table: str,
    column: str,
    by: float,
    where: dict[str, Any],
) -> None:
    assert (
        judged(shifted(records, table, column, by, **where), name)["verdict"]
        == CONTRADICTED
    )


def test_texts_are_judged_after_their_last_epoch_and_the_selected_one_stands_beside(
    records: Records,
) -> None:
    row = judged(records, "flsd-53-calibrates-on-texts")
    assert row["value"] == pytest.approx(0.2 * (0.7**8 - 1))
    assert [(task["task"], task["pooled"]) for task in row["tasks"]] == [
        (IMDB, False),
        (TEXTS, True),
    ]
    assert (
        row["note"]
        == "at the epoch of best validation accuracy: imdb-cnn -0.019, sst-tree-lstm -0.019"
    )


def test_scaled_texts_are_judged_at_their_last_epoch_where_it_was_evaluated(
    records: Records,
) -> None:
    name = "flsd-53-calibrates-after-scaling"
    assert [task["task"] for task in judged(records, name)["tasks"]] == [IMAGES]
    both = replace(
        records,
        runs=pd.concat(
            [records.runs, records.runs.assign(evaluated="last")]
        ).drop_duplicates(),
    )
    assert judged(both, name)["n"] == 6
    texts = replace(records, tasks=records.tasks[records.tasks["task"] != IMAGES])
    row = judged(texts, "ce-temperature-well-above-one")
    assert (row["verdict"], "focal/runs.csv lacks them" in row["note"]) == (
        NOT_TESTED,
        True,
    )


def test_early_stopping_never_chooses_an_untrained_network(records: Records) -> None:
    # Epoch 1 is the best calibrated of FLSD-53 by far, and 40 points less accurate.
    early = shifted(records, "history", "accuracy", -0.4, epoch=1)
    early = shifted(early, "history", "ece", -1.0, epoch=1, arm="CE")
    stopped = replace(early, early_stopping=early_stopping(early.history))
    assert judged(stopped, "early-stopping-does-not-save-ce")["verdict"] == HOLDS


@pytest.mark.parametrize(("below", "epoch"), [(0.019, 1), (0.021, 2)])
def test_early_stopping_chooses_among_epochs_two_points_below_the_best(
    below: float, epoch: int
) -> None:
    keys = {"task": "a", "arm": "CE", "seed": 0}
    rows = [
        {**keys, "epoch": 1, "accuracy": 0.9 - below, "nll": 0.1, "ece": 0.01},
        {**keys, "epoch": 2, "accuracy": 0.9, "nll": 0.2, "ece": 0.02},
    ]
    history = pd.DataFrame(
        [{**row, "split": split} for split in ("validation", "test") for row in rows]
    )
    chosen = early_stopping(history).set_index("criterion")["epoch"]
    assert chosen.to_dict() == {"last": 2, "accuracy": 2, "nll": epoch, "ece": epoch}


def test_what_diverged_or_was_not_trained_is_not_judged(records: Records) -> None:
    trainings = records.trainings.assign(diverged=records.trainings["arm"] == "FL-3")
    row = judged(replace(records, trainings=trainings), "fl-3-calibrates")
    assert (row["verdict"], row["note"]) == (NOT_TESTED, "every run of FL-3 diverged")
    some = replace(
        records, trainings=records.trainings[records.trainings["arm"] != "FL-2"]
    )
    row = judged(some, "feature-norm-order")
    assert row["verdict"] == INCONCLUSIVE
    assert (
        "not judged: FL-3 against FL-2: no task of this profile trains FL-2"
        in row["note"]
    )


def test_no_criterion_fails_the_printed_rows_and_quoted_numbers_are_printed(
    project_root: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project_root)
    rows = pd.concat(
        [published("focal", "Table 1"), published("focal", "Table 2")]
    ).astype({"value": float})
    rows["value"] /= np.where(rows["unit"] == "percent", 100, 1)
    ece, scaled, errors, temperatures = (
        rows[rows["metric"] == metric].pivot(
            index=["dataset", "model"], columns="method", values="value"
        )
        for metric in ("ece", "ece_after_scaling", "error", "temperature")
    )
    log = np.log(ece)
    cifar10, texts = [("CIFAR-10", "ResNet-50")], ["20 Newsgroups", "SST Binary"]
    values = {
        "fl-3-calibrates": [ece["FL-3"] - ece["CE"]],
        "flsd-53-calibrates": [ece["FLSD-53"] - ece["CE"]],
        "fl-3-calibrates-after-scaling": [scaled["FL-3"] - scaled["CE"]],
        "flsd-53-calibrates-after-scaling": [scaled["FLSD-53"] - scaled["CE"]],
        "flsd-53-calibrates-on-texts": [(ece["FLSD-53"] - ece["CE"]).loc[texts]],
        "flsd-53-beats-every-baseline": [
            log["FLSD-53"] - log[other] for other in ("Brier", *BASELINES)
        ],
        "accuracy-is-kept": [errors["CE"] - errors["FLSD-53"]],
        "ce-temperature-well-above-one": [temperatures["CE"]],
        "flsd-53-temperature-near-one": [temperatures["FLSD-53"]],
    }
    claims = {claim.id: claim for claim in CLAIMS}
    for name, parts in values.items():
        quoted = parts[0].reindex(cifar10).fillna(parts[0].mean()).item()
        assert claims[name].published == pytest.approx(quoted, abs=1e-3), name
        for part in (part.dropna().tolist() for part in parts):
            estimate = OverTasks(
                tuple(Task(str(place), (value,)) for place, value in enumerate(part))
            ).estimate()
            # Two rows have no interval to speak of.
            ends = estimate.ends if len(part) > 2 else (estimate.value, estimate.value)
            assert ends is not None
            assert claims[name].criterion.contains(ends), name
    assert {claim.id for claim in CLAIMS if claim.published} - set(values) == {
        "translation-focal-bleu"
    }
    printed = published("focal", "text of appendix K").query(
        "metric == 'best test BLEU over temperatures'"
    )
    best = printed.set_index("method")["value"].astype(float)
    assert claims["translation-focal-bleu"].published == pytest.approx(
        best["FL"] - best["LS"]
    )
