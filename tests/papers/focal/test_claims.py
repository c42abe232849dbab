"""Verdicts follow the records: as the paper has it, turned by turning them, and open where they are silent."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.papers.focal.claims import BASELINES, CLAIMS
from softmax_temperature.papers.focal.records import Records
from softmax_temperature.papers.shared.claims import CONTRADICTED, HOLDS, INCONCLUSIVE, NOT_TESTED
from softmax_temperature.papers.shared.claims import judge_all as judge
from softmax_temperature.papers.shared.statistics import OverTasks, Task
from softmax_temperature.papers.shared.tables import published
from tests.papers.focal.conftest import made_of

ARMS = ("CE", "Brier", "MMCE", "LS-0.1", "LS-0.05", "FL-1", "FL-2", "FL-3", "FLSD-53")
IMAGES, TEXTS, IMDB = "cifar10-resnet50", "sst-tree-lstm", "imdb-cnn"
SEEDS, EPOCHS = range(3), 7
RANK = {arm: rank for rank, arm in enumerate(ARMS)}
"""Of the losses: the later, the better calibrated, and the smaller their norms in the end."""


@pytest.fixture
def records() -> Records:
    """Of a study in which everything is as the paper says, with a task that it does not have."""
    runs = [
        {"task": task, "arm": arm, "seed": seed} for task in (IMAGES, TEXTS, IMDB) for arm in ARMS for seed in SEEDS
    ]
    tables: dict[str, list[dict[str, Any]]] = {
        "tasks": [
            {"task": IMAGES, "dataset": "cifar10", "select": "last"},
            {"task": TEXTS, "dataset": "sst_trees", "select": "best_validation", "embeddings": "learned"},
            {"task": IMDB, "dataset": "imdb", "select": "best_validation", "embeddings": "learned"},
        ],
        "trainings": [{**run, "diverged": False} for run in runs],
        "runs": [{**run, **row} for run in runs for row in _scored(run)],
        "history": [{**run, **row} for run in runs for row in _history(run)],
        "gradient_norms": [{**run, **row} for run in runs for row in _gradient_norms(run)],
        "ood": [{**run, **row} for run in runs if run["task"] == IMAGES for row in _outliers(run)],
        "linear_history": [
            {"loss": loss, "seed": seed, "epoch": 9, "weight_norm": norm + 0.1 * seed, "logit_norm": norm}
            for loss, norm in (("CE", 6.0), ("FL-1", 4.0))
            for seed in SEEDS
        ],
        "linear_mistakes": [
            {"loss": loss, "seed": seed, "confidence": 0.95 if place < sure + seed else 0.7}
            for loss, sure in (("CE", 7), ("FL-1", 1))
            for seed in SEEDS
            for place in range(10)
        ],
        "translation_runs": [
            {"arm": arm, "seed": seed, "dataset": "wmt14_en_de", "diverged": False, "temperature": temperature}
            | {"ece": ece + 0.001 * seed * rank, "best_bleu": bleu + 0.001 * seed * rank}
            for rank, (arm, temperature, ece, bleu) in enumerate(
                (("CE", 1.2, 0.06, 0.24), ("LS", 1.0, 0.03, 0.25), ("FL", 1.0, 0.01, 0.27))
            )
            for seed in range(6)
        ],
        "translation_curves": [
            {"arm": arm, "seed": seed, "temperature": at, "bleu": -abs(at - 1), "validation_ece": abs(at - best)}
            for arm, best in (("CE", 1.2), ("LS", 1.0), ("FL", 1.0))
            for seed in range(6)
            for at in (0.8, 1.0, 1.2, 1.4)
        ],
    }
    about = dict.fromkeys(("variant", "variant_of", "printed_dataset", "printed_network", "differs"), "")
    return made_of(tables | {"tasks": [about | task for task in tables["tasks"]]})


def _jitter(run: dict[str, Any]) -> float:
    return 0.001 * run["seed"] * (1 + RANK[run["arm"]] % 2)


def _ece(run: dict[str, Any]) -> float:
    return 0.2 * 0.7 ** RANK[run["arm"]] + _jitter(run)


def _scored(run: dict[str, Any]) -> list[dict[str, Any]]:
    confident = {"none": 0.9, "ece": 0.3} if run["arm"] == "CE" else {"none": 0.5, "ece": 0.6}
    temperature = 2.5 if run["arm"] == "CE" else 1.0
    return [
        {"evaluated": "last" if run["task"] == IMAGES else "best_validation", "scaling": scaling}
        | {"expected_calibration_error": 0.1 * _ece(run), "confident_share": share + _jitter(run)}
        | {"accuracy": 0.9 + _jitter(run), "temperature": temperature, "at_bound": False}
        for scaling, share in confident.items()
    ]


def _history(run: dict[str, Any]) -> list[dict[str, Any]]:
    rank = RANK[run["arm"]]
    return [
        {"split": split, "epoch": epoch, "nll": 0.4 + 0.1 * abs(epoch - 3), "ece": _ece(run), "accuracy": 0.9}
        | {"nll_right": 0.5 - (0.05 + _jitter(run)) * epoch, "nll_wrong": 2 + (0.5 + _jitter(run)) * epoch}
        | {"weight_norm": 10 + (0.1 * rank if epoch <= 3 else -0.1 * rank) + _jitter(run)}
        | {"feature_norm": 20 - (0 if rank < 5 else rank) + _jitter(run)}
        for split in ("train", "validation", "test")
        for epoch in range(1, EPOCHS + 1)
    ]


def _gradient_norms(run: dict[str, Any]) -> list[dict[str, Any]]:
    counts = (10 + run["seed"], 30) if run["arm"] == "CE" else (30, 10)
    return [
        {"epoch": epoch, "low": low, "high": 10 * low, "count": count}
        for epoch in (1, 3, 6)
        for low, count in zip((0.01, 0.1), counts, strict=True)
    ]


def _outliers(run: dict[str, Any]) -> list[dict[str, Any]]:
    better = 0.1 if run["arm"] == "FLSD-53" else 0.0
    return [
        {"ood": ood, "scaling": scaling, "auroc": 0.7 + (better if ood != "cifar100" else -better) + _jitter(run)}
        for ood in ("svhn", "gaussian-noise", "cifar100")
        for scaling in ("none", "ece")
    ]


def judged(records: Records, name: str) -> dict[str, Any]:
    return judge("focal", [claim for claim in CLAIMS if claim.id == name], records, profile="study")[0]


def shifted(records: Records, table: str, column: str, by: float, **where: Any) -> Records:
    rows: pd.DataFrame = getattr(records, table).copy()
    chosen = pd.Series(True, rows.index)
    for name, value in where.items():
        chosen &= rows[name] == value
    rows.loc[chosen, column] += by
    return replace(records, **{table: rows})


def test_records_like_the_papers_hold(records: Records) -> None:
    rows = {row["id"]: row["verdict"] for row in judge("focal", CLAIMS, records, profile="study")}
    assert rows == dict.fromkeys((claim.id for claim in CLAIMS), HOLDS)


@pytest.mark.parametrize(
    ("name", "turn"),
    [
        ("flsd-53-calibrates", ("history", "ece", 0.5, {"arm": "FLSD-53"})),
        ("fl-3-calibrates-after-scaling", ("runs", "expected_calibration_error", 0.1, {"arm": "FL-3"})),
        ("flsd-53-calibrates-on-texts", ("history", "ece", 0.5, {"arm": "FLSD-53", "task": TEXTS})),
        ("flsd-53-beats-every-baseline", ("history", "ece", -0.045, {"arm": "LS-0.05"})),
        ("gamma-order", ("history", "ece", 0.3, {"arm": "FL-2"})),
        ("accuracy-is-kept", ("history", "accuracy", -0.05, {"arm": "FLSD-53"})),
        ("ce-temperature-well-above-one", ("runs", "temperature", -1.5, {"arm": "CE"})),
        ("overfitting-is-of-the-wrong", ("history", "nll_right", 0.9, {"arm": "CE", "epoch": EPOCHS})),
        ("weight-norms-end-reversed", ("history", "weight_norm", -3, {"arm": "FL-3"})),
        ("feature-norm-order", ("history", "feature_norm", 10, {"arm": "FL-1"})),
        ("flsd-53-detects-outliers", ("ood", "auroc", -0.2, {"arm": "FLSD-53"})),
        ("focal-is-more-confident-scaled", ("runs", "confident_share", -0.5, {"arm": "FLSD-53", "scaling": "ece"})),
        ("translation-focal-bleu", ("translation_runs", "best_bleu", 0.1, {"arm": "LS"})),
        ("translation-focal-temperature-is-one", ("translation_runs", "temperature", 0.1, {"arm": "LS"})),
        ("translation-calibrated-where-good", ("translation_curves", "bleu", 5.0, {"temperature": 0.8})),
    ],
)
def test_each_is_contradicted_when_its_records_are_turned(
    records: Records, name: str, turn: tuple[str, str, float, dict[str, Any]]
) -> None:
    table, column, by, where = turn
    assert judged(shifted(records, table, column, by, **where), name)["verdict"] == CONTRADICTED


def test_texts_are_judged_after_their_last_epoch_and_the_selected_one_stands_beside(records: Records) -> None:
    row = judged(records, "flsd-53-calibrates-on-texts")
    differences = [0.2 * (0.7**8 - 1)] * 3
    assert row["value"] == pytest.approx(sum(differences) / 3)
    assert [(task["task"], task["pooled"]) for task in row["tasks"]] == [(IMDB, False), (TEXTS, True)]
    assert row["note"] == "at the epoch of best validation accuracy: imdb-cnn -0.019, sst-tree-lstm -0.019"


def test_scaled_texts_are_judged_at_their_last_epoch_where_it_was_evaluated(records: Records) -> None:
    name = "flsd-53-calibrates-after-scaling"
    row = judged(records, name)
    assert [task["task"] for task in row["tasks"]] == [IMAGES]
    both = replace(records, runs=pd.concat([records.runs, records.runs.assign(evaluated="last")]).drop_duplicates())
    assert judged(both, name)["n"] == 6
    texts = replace(records, tasks=records.tasks[records.tasks["task"] != IMAGES])
    row = judged(texts, "ce-temperature-well-above-one")
    assert (row["verdict"], "focal/runs.csv lacks them" in row["note"]) == (NOT_TESTED, True)


def test_early_stopping_never_chooses_an_untrained_network(records: Records) -> None:
    # Epoch 1 is the best calibrated of FLSD-53 by far, and 40 points less accurate.
    early = shifted(records, "history", "accuracy", -0.4, epoch=1)
    early = shifted(early, "history", "ece", -1.0, epoch=1, arm="CE")
    assert judged(early, "early-stopping-does-not-save-ce")["verdict"] == HOLDS


def test_out_of_distribution_sets_that_the_paper_lacks_are_shown_alone(records: Records) -> None:
    row = judged(records, "flsd-53-detects-outliers")
    assert row["value"] == pytest.approx(0.1)
    assert [task["pooled"] for task in row["tasks"]] == [True, False]


def test_diverged_runs_do_not_count(records: Records) -> None:
    trainings = records.trainings.assign(diverged=records.trainings["arm"] == "FL-3")
    row = judged(replace(records, trainings=trainings), "fl-3-calibrates")
    assert (row["verdict"], row["note"]) == (NOT_TESTED, "every run of FL-3 diverged")


def test_a_loss_that_was_not_trained_leaves_an_order_open(records: Records) -> None:
    some = replace(records, trainings=records.trainings[records.trainings["arm"] != "FL-2"])
    row = judged(some, "feature-norm-order")
    assert row["verdict"] == INCONCLUSIVE
    assert "not judged: FL-3 against FL-2: no task of this profile trains FL-2" in row["note"]


@pytest.fixture
def printed(project_root: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, pd.DataFrame]:
    """Tables 1 and 2 by metric: a row per data set and network, a column per method; fractions."""
    monkeypatch.chdir(project_root)
    rows = pd.concat([published("focal", "Table 1"), published("focal", "Table 2")]).astype({"value": float})
    rows["value"] /= np.where(rows["unit"] == "percent", 100, 1)
    return {
        str(metric): some.pivot(index=["dataset", "model"], columns="method", values="value")
        for metric, some in rows.groupby("metric")
    }


def test_no_criterion_fails_the_printed_rows_and_quoted_numbers_are_printed(printed: dict[str, pd.DataFrame]) -> None:
    ece, scaled, errors, temperatures = (
        printed[metric] for metric in ("ece", "ece_after_scaling", "error", "temperature")
    )
    log = np.log(ece)
    values = {
        "fl-3-calibrates": [ece["FL-3"] - ece["CE"]],
        "flsd-53-calibrates": [ece["FLSD-53"] - ece["CE"]],
        "fl-3-calibrates-after-scaling": [scaled["FL-3"] - scaled["CE"]],
        "flsd-53-calibrates-after-scaling": [scaled["FLSD-53"] - scaled["CE"]],
        "flsd-53-calibrates-on-texts": [(ece["FLSD-53"] - ece["CE"]).loc[["20 Newsgroups", "SST Binary"]]],
        "flsd-53-beats-every-baseline": [log["FLSD-53"] - log[other] for other in ("Brier", *BASELINES)],
        "accuracy-is-kept": [errors["CE"] - errors["FLSD-53"]],
        "ce-temperature-well-above-one": [temperatures["CE"]],
        "flsd-53-temperature-near-one": [temperatures["FLSD-53"]],
    }
    claims = {claim.id: claim for claim in CLAIMS}
    for name, parts in values.items():
        claim, row = claims[name], ("CIFAR-10", "ResNet-50")
        quoted = parts[0][row] if row in parts[0] else parts[0].mean()
        assert claim.published == pytest.approx(quoted, abs=1e-3), name
        for part in parts:
            rows = part.dropna()
            estimate = OverTasks(tuple(Task(str(row), (value,)) for row, value in rows.items())).estimate()
            # Two rows have no interval to speak of.
            ends = (estimate.value, estimate.value) if len(rows) < 3 else estimate.ends
            assert ends is not None
            assert claim.criterion.contains(ends), name
    others = {claim.id for claim in CLAIMS if claim.published is not None} - set(values)
    assert others == {"translation-focal-bleu"}
    best = published("focal", "text of appendix K").set_index(["metric", "method"])["value"].astype(float)
    best = best["best test BLEU over temperatures"]
    assert claims["translation-focal-bleu"].published == pytest.approx(best["FL"] - best["LS"])
