"""Verdicts follow from the runs: claims hold, are contradicted, or are inconclusive."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from softmax_temperature.papers.focal.claims import BASELINES, CLAIMS
from softmax_temperature.papers.focal.curves import (
    CONFIDENT_MISTAKES,
    CRITERIA,
    LOG_GRADIENT_NORM,
    change_where_overfitted,
    overfitted_count,
    stopped_at_any_epoch,
    stopped_early,
    stopping_epochs,
)
from softmax_temperature.papers.focal.study import (
    CE,
    ERROR,
    FL_1,
    FL_2,
    FL_3,
    FLSD_53,
    LINEAR,
    LS_005,
    LS_01,
    MAIN,
    MMCE,
    SPLITS,
    TRANSLATION,
    tidied,
)
from softmax_temperature.papers.shared.claims import (
    CONTRADICTED,
    HOLDS,
    INCONCLUSIVE,
    NOT_TESTED,
    judge_all,
)
from softmax_temperature.papers.shared.factors import where
from softmax_temperature.papers.shared.printed import published
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.shared.statistics import OverTasks, Task
from tests.papers.focal.made_runs import diverged, run, runs_of, shifted, without
from tests.papers.unchanged import unchanged

ARMS = ("CE", "Brier", "MMCE", "LS-0.1", "LS-0.05", "FL-1", "FL-2", "FL-3", "FLSD-53")
"""Arms that come later in this tuple are better calibrated and have smaller final
norms.
"""
IMAGES, TEXTS, IMDB = "cifar10-resnet50", "sst-tree-lstm", "imdb-cnn"
DATASETS = {IMAGES: "cifar10", TEXTS: "sst_trees", IMDB: "imdb"}
SELECTED = 6
"""Epoch that is selected in the experiments on texts."""
CALIBRATED = 2
"""Epoch with the lowest ECE; its accuracy is a point lower than in other epochs."""
EPOCHS = range(1, 8)
BLEU = {"CE": 0.24, "LS": 0.25, "FL": 0.27}
TRANSLATION_ECE = {"CE": 0.06, "LS": 0.03, "FL": 0.01}


def classifiers() -> list[dict[str, Any]]:
    rows = []
    for experiment, dataset in DATASETS.items():
        about: dict[str, Any] = {"dataset": dataset}
        if experiment == IMAGES:
            about["classes"] = 100  # The claim needs 100 classes.
        if experiment != IMAGES:
            about |= {"select": "best_validation", "selected_epoch": SELECTED}
            about["embeddings"] = "learned"
        rows += [
            run(experiment, arm, seed, **about) for arm in ARMS for seed in range(3)
        ]
    return rows


def jitter(arm: str, seed: int) -> float:
    return 0.001 * seed * (1 + ARMS.index(arm) % 2)


def _share_of_ece(epoch: int) -> float:
    """The ECE after an epoch, divided by the ECE after the last one."""
    return 0.5 if epoch == CALIBRATED else 0.9 if epoch <= 4 else 1.0


def history(number: int, arm: str, seed: int) -> list[dict[str, Any]]:
    rank = ARMS.index(arm)
    noise = jitter(arm, seed)
    rows = []
    for epoch in EPOCHS:
        shared = {
            "run": number,
            "epoch": epoch,
            "accuracy": 0.9 + 0.002 * rank + noise - 0.01 * (epoch == CALIBRATED),
            "ece": 0.2 * 0.7**rank * _share_of_ece(epoch) + noise,
            "nll": 0.4 + 0.1 * abs(epoch - 3) - 0.01 * rank,
            "nll_right": 0.5 - (0.05 + noise) * epoch + 0.02 * rank,
            "nll_wrong": 2 + (0.5 - 0.05 * rank + noise) * epoch,
            "entropy_wrong": 1 + 0.02 * rank + noise,
            "weight_norm": 10 + 0.1 * rank * (1 if epoch <= 3 else -1) + noise,
            "feature_norm": 20 - rank * (rank >= 5) + noise,
        }
        rows += [shared | {"split": name} for name in ("train", "validation", "test")]
    return rows


def evaluation(row: dict[str, Any], number: int, arm: str) -> list[dict[str, Any]]:
    """Values after a run's selected epoch and after its last one, which are the same
    epoch for images.
    """
    is_ce = arm == "CE"
    noise = jitter(arm, row["seed"])
    ece = 0.2 * 0.7 ** ARMS.index(arm) + noise
    before = {
        "confident_share": (0.9 if is_ce else 0.5) + noise,
        "temperature": 1.0,
        "top5_accuracy": 0.9 - 0.1 * is_ce + noise,
        "adaptive_ece": ece,
        "classwise_ece": ece,
    }
    after = {
        "scaled": True,
        "ece": 0.02 * 0.7 ** ARMS.index(arm) + 0.1 * noise,
        "confident_share": (0.3 if is_ce else 0.6) + noise,
        "ece_by_nll": 0.03 * 0.7 ** ARMS.index(arm) + 0.1 * noise,
        "temperature": 2.5 if arm in {"CE", "MMCE"} else 1.0,
        "at_bound": False,
    }
    epochs = {row["selected_epoch"], row["epochs_done"]}
    return [
        {"run": number, "epoch": epoch, **values}
        for epoch in sorted(epochs)
        for values in (before, after)
    ]


def outliers(number: int, arm: str, seed: int) -> list[dict[str, Any]]:
    rows = []
    for name in ("svhn", "gaussian-noise", "cifar100"):
        better = 0.1 * (arm == "FLSD-53") * (-1 if name == "cifar100" else 1)
        auroc = 0.7 + better + jitter(arm, seed)
        at = {"run": number, "split": name, "epoch": EPOCHS[-1], "auroc": auroc}
        rows += [at, at | {"scaled": True}]
    return rows


def gradient_norms(number: int, arm: str, seed: int) -> list[dict[str, Any]]:
    is_ce = arm == "CE"
    rows = []
    for epoch in (1, 3, 6):
        for low in (0.01, 0.1):
            few = (low < 0.1) == is_ce
            count = 10 + seed * is_ce if few else 30
            bins = {"run": number, "epoch": epoch, "low": low, "high": 10 * low}
            rows.append(bins | {"count": count})
    return rows


Parts = tuple[list[dict[str, Any]], list[dict[str, Any]], list[dict[str, Any]]]
"""Rows for three tables: the runs, their values, and one table specific to the task."""


def linear(first: int) -> Parts:
    table = []
    values = []
    mistakes = []
    for arm, norm, sure in (("CE", 6.0, 7), ("FL-1", 4.0, 1)):
        for seed in range(3):
            number = first + len(table)
            table.append(run("linear", arm, seed, task="linear", dataset="clusters"))
            grown = {"weight_norm": norm + 0.1 * seed, "logit_norm": norm}
            grown |= {"weight_0": norm, "weight_1": norm + 0.01 * seed}
            values.append({"run": number, "epoch": 7, **grown})
            confidences = [0.95 if place < sure + seed else 0.7 for place in range(10)]
            mistakes += [{"run": number, "confidence": value} for value in confidences]
    return table, values, mistakes


def translation(first: int) -> Parts:
    table = []
    values = []
    curves = []
    for place, arm in enumerate(("CE", "LS", "FL")):
        for seed in range(6):
            number = first + len(table)
            best = 1.2 if arm == "CE" else 1.0
            differs = 0.001 * seed * place
            data = {"task": "translation", "dataset": "wmt14_en_de"}
            table.append(run("translation", arm, seed, **data))
            at = {"run": number, "epoch": 7}
            ece = TRANSLATION_ECE[arm] + differs
            values.append(at | {"ece": ece, "best_bleu": BLEU[arm] + differs})
            values.append(at | {"scaled": True, "temperature": best})
            for temperature in (0.8, 1.0, 1.2, 1.4):
                scores = {"bleu": -abs(temperature - 1)}
                scores["validation_ece"] = abs(temperature - best)
                row = {"run": number, "temperature": temperature}
                curves.append(row | scores)
    return table, values, curves


@pytest.fixture(scope="module")
def runs() -> Iterator[Runs]:
    with unchanged(_runs()) as made:
        yield made


def _runs() -> Runs:
    """A study that agrees with the paper and has one data set that the paper lacks."""
    table = classifiers()
    values: list[dict[str, Any]] = []
    norms = []
    for number, row in enumerate(table):
        arm = row["cell"].split("/")[-2]
        values += history(number, arm, row["seed"])
        values += evaluation(row, number, arm)
        norms += gradient_norms(number, arm, row["seed"])
        if row["experiment"] == IMAGES:
            values += outliers(number, arm, row["seed"])
    models, numbers, mistakes = linear(len(table))
    table += models
    translators, scores, curves = translation(len(table))
    return runs_of(
        [*table, *translators],
        [*values, *numbers, *scores],
        gradient_norms=norms,
        linear_mistakes=mistakes,
        translation_curves=curves,
    )


def judged(runs: Runs, name: str) -> dict[str, Any]:
    (claim,) = (claim for claim in CLAIMS if claim.id == name)
    # If a claim's data are the same in all studies, the claim is shown only in its
    # primary study.
    profile = claim.primary if claim.same_everywhere else "study"
    return judge_all("focal", [claim], runs, profile=profile)[0]


def test_all_claims_hold_for_runs_like_the_papers(runs: Runs) -> None:
    verdicts = {claim.id: judged(runs, claim.id)["verdict"] for claim in CLAIMS}
    assert verdicts == dict.fromkeys((claim.id for claim in CLAIMS), HOLDS)
    row = judged(runs, "flsd-53-detects-outliers")
    assert row["value"] == pytest.approx(0.1), (
        "sets that the paper lacks are not pooled"
    )
    assert [task["pooled"] for task in row["tasks"]] == [True, False]


@pytest.mark.parametrize(
    ("name", "metric", "by", "chosen"),
    [
        ("flsd-53-calibrates", "ece", 0.5, {"among": MAIN & FLSD_53}),
        (
            "fl-3-calibrates-after-scaling",
            "ece",
            0.1,
            {"among": MAIN & FL_3, "scaled": True},
        ),
        ("flsd-53-beats-every-baseline", "ece", -0.045, {"among": MAIN & LS_005}),
        ("gamma-order", "ece", 0.3, {"among": MAIN & FL_2}),
        ("feature-norm-order", "feature_norm", 10, {"among": MAIN & FL_1}),
        (
            "flsd-53-is-lowest-after-scaling",
            "ece",
            -0.0045,
            {"among": MAIN & LS_005, "scaled": True},
        ),
        (
            "flsd-53-beats-every-baseline-by-adaece",
            "adaptive_ece",
            -0.045,
            {"among": MAIN & LS_005},
        ),
        (
            "flsd-53-beats-every-baseline-by-classwise-ece",
            "classwise_ece",
            -0.045,
            {"among": MAIN & LS_005},
        ),
        ("top-5-is-higher", "top5_accuracy", 0.2, {"among": MAIN & CE}),
        ("ece-chooses-stronger-baselines", "ece_by_nll", -0.1, {"among": MAIN & CE}),
        (
            "mmce-temperature-well-above-one",
            "temperature",
            -1.5,
            {"among": MAIN & MMCE, "scaled": True},
        ),
        ("ece-rises-late-in-training", "ece", 0.1, {"among": MAIN & CE, "epoch": 4}),
        ("focal-nll-remains-low", "nll", 0.2, {"among": MAIN & FL_3}),
        # One of seven epochs is enough to contradict a claim about all epochs.
        (
            "focal-nll-of-right-is-higher",
            "nll_right",
            -0.5,
            {"among": MAIN & FL_3, "epoch": 5},
        ),
        (
            "entropy-of-wrong-is-higher",
            "entropy_wrong",
            -0.5,
            {"among": MAIN & FL_3, "epoch": 5},
        ),
        # The change makes the rise of the NLL 0.95 instead of 0.45; with cross-entropy
        # the rise is 1.5.
        (
            "rise-of-wrong-nll-is-less-severe",
            "nll_wrong",
            0.5,
            {"among": MAIN & FL_3, "epoch": 7},
        ),
        (
            "every-stopping-criterion-favours-flsd-53",
            "accuracy",
            -0.1,
            {"among": MAIN & FLSD_53, "epoch": CALIBRATED, "split": "test"},
        ),
        (
            "stopping-by-ece-costs-accuracy",
            "accuracy",
            0.1,
            {"among": MAIN & CE, "epoch": CALIBRATED, "split": "test"},
        ),
        ("linear-decision-regions-agree", "weight_1", 1.0, {"among": LINEAR & FL_1}),
        ("flsd-53-detects-outliers", "auroc", -0.2, {"among": MAIN & FLSD_53}),
        (
            "focal-is-more-confident-scaled",
            "confident_share",
            -0.5,
            {"among": MAIN & FLSD_53, "scaled": True},
        ),
        ("translation-focal-bleu", "best_bleu", 0.1, {"among": TRANSLATION & LS_01}),
        (
            "translation-focal-temperature-is-one",
            "temperature",
            0.1,
            {"among": TRANSLATION & LS_01, "scaled": True},
        ),
    ],
)
def test_each_claim_is_contradicted_if_its_runs_are_reversed(
    runs: Runs, name: str, metric: str, by: float, chosen: dict[str, Any]
) -> None:
    assert judged(shifted(runs, metric, by, **chosen), name)["verdict"] == CONTRADICTED


def test_bleu_that_is_highest_far_from_the_least_ece_contradicts(runs: Runs) -> None:
    curves = runs.tables["translation_curves"].copy()
    curves.loc[curves["temperature"] == 0.8, "bleu"] += 5
    turned = tidied(replace(runs, tables={**runs.tables, "translation_curves": curves}))
    row = judged(turned, "translation-calibrated-where-good")
    assert row["verdict"] == CONTRADICTED


@pytest.mark.parametrize(
    ("called", "loss"),
    [
        ("FL-3", ("focal", {"gamma": 5.0})),
        ("CE", ("focal", {"gamma": 2.0})),
        ("FLSD-53", ("sample_dependent_focal", {"policy": "532"})),
    ],
)
def test_an_arm_is_judged_by_its_loss_whatever_a_profile_calls_it(
    called: str, loss: tuple[str, dict[str, Any]]
) -> None:
    table = [
        run(IMAGES, arm, seed, dataset="cifar10", loss=loss if arm == called else None)
        for arm in ("CE", "FL-3", "FLSD-53")
        for seed in range(3)
    ]
    values = [
        {"run": number, "epoch": 7, "ece": 0.01 * (number + number // 3)}
        for number in range(len(table))
    ]
    made = runs_of(table, values)
    names = ["fl-3-calibrates", "flsd-53-calibrates"]
    rows = {name: judged(made, name) for name in names}
    for name, row in rows.items():
        compared = {"FL-3", "CE"} if name.startswith("fl-3") else {"FLSD-53", "CE"}
        is_judged = row["verdict"] != NOT_TESTED
        assert is_judged == (called not in compared), row["note"]
    assert called not in set(made.table["arm"])


def test_texts_are_judged_after_their_last_epoch_and_the_selected_one_is_in_the_note(
    runs: Runs,
) -> None:
    turned = shifted(runs, "ece", 0.3, among=MAIN & FLSD_53, epoch=SELECTED)
    row = judged(turned.only(~where(embeddings=None)), "flsd-53-calibrates")
    assert row["value"] == pytest.approx(0.2 * (0.7**8 - 1))
    assert [(task["task"], task["pooled"]) for task in row["tasks"]] == [
        (IMDB, False),
        (TEXTS, True),
    ]
    beside = "imdb-cnn +0.112, sst-tree-lstm +0.112"
    assert row["note"] == f"at the epoch of best validation accuracy: {beside}"


def test_scaled_texts_are_judged_at_their_last_epoch_where_it_was_evaluated(
    runs: Runs,
) -> None:
    name = "flsd-53-calibrates-after-scaling"
    assert judged(runs, name)["n"] == 6
    values = runs.measurements
    texts = values["run"].isin(runs.select(~where(embeddings=None)).index)
    is_last = values["scaled"] & (values["epoch"] == EPOCHS[-1])
    selected_alone = replace(runs, measurements=values[~(texts & is_last)])
    assert [task["task"] for task in judged(selected_alone, name)["tasks"]] == [IMAGES]


def test_early_stopping_never_chooses_an_untrained_network(runs: Runs) -> None:
    # CE has by far its lowest ECE after epoch 1, but at that point its accuracy is 40
    # points lower.
    early = shifted(runs, "accuracy", -0.4, among=MAIN, epoch=1)
    early = shifted(early, "ece", -1.0, among=MAIN & CE, epoch=1)
    assert judged(early, "early-stopping-does-not-save-ce")["verdict"] == HOLDS


@pytest.mark.parametrize(("below", "epoch"), [(0.019, 1), (0.021, 2)])
def test_early_stopping_chooses_among_epochs_two_points_below_the_best(
    below: float, epoch: int
) -> None:
    measured = [
        {"epoch": 1, "accuracy": 0.9 - below, "nll": 0.1, "ece": 0.01},
        {"epoch": 2, "accuracy": 0.9, "nll": 0.2, "ece": 0.02},
    ]
    values = [{"run": 0, "split": "validation", **row} for row in measured]
    runs = runs_of([run(IMAGES, "CE", 0, dataset="cifar10", epochs_done=2)], values)
    chosen = {name: stopping_epochs(runs, runs.table, name)[0] for name in CRITERIA}
    assert chosen == {"last": 2, "accuracy": 2, "nll": epoch, "ece": epoch}


def test_the_paper_chooses_among_all_epochs() -> None:
    measured = [
        {"epoch": 1, "accuracy": 0.1, "nll": 2.0, "ece": 0.01},
        {"epoch": 2, "accuracy": 0.9, "nll": 0.2, "ece": 0.02},
    ]
    values = [{"run": 0, "split": name, **row} for row in measured for name in SPLITS]
    made = runs_of([run(IMAGES, "CE", 0, dataset="cifar10", epochs_done=2)], values)
    everywhere = stopped_at_any_epoch(ERROR, "ece").of(made, made.table)
    near_best = stopped_early(ERROR, "ece").of(made, made.table)
    assert (everywhere[0], near_best[0]) == pytest.approx((0.9, 0.1))


@pytest.mark.parametrize(("rise", "overfits"), [(0.049, False), (0.051, True)])
def test_a_run_overfits_if_its_test_nll_ends_five_percent_above_its_lowest(
    rise: float, overfits: bool
) -> None:
    measured = [
        {"epoch": 1, "nll": 2.0, "nll_right": 1.5, "nll_wrong": 5.0},
        {"epoch": 2, "nll": 1.0, "nll_right": 0.4, "nll_wrong": 3.0},
        {"epoch": 3, "nll": 1.0 + rise, "nll_right": 0.3, "nll_wrong": 3.5},
    ]
    values = [{"run": 0, **row} for row in measured]
    runs = runs_of([run(IMAGES, "CE", 0, dataset="cifar10", epochs_done=3)], values)
    changes = {
        "nll_wrong": change_where_overfitted("nll_wrong"),
        "nll_right": change_where_overfitted("nll_right", sign=-1),
    }
    found = {name: change.of(runs, runs.table)[0] for name, change in changes.items()}
    expected = {"nll_wrong": 0.5, "nll_right": 0.1}
    if not overfits:
        expected = dict.fromkeys(expected, math.nan)
    assert found == pytest.approx(expected, nan_ok=True)
    count = f"{int(overfits)} of 1 runs overfit"
    assert overfitted_count(runs, runs.table) == count


def test_a_gradient_norm_counts_as_the_geometric_centre_of_its_bin() -> None:
    # The first recorded epoch does not count, and the other two have equal weight.
    # Their mean base-10 logarithms are (3 · -1.5 + 1 · -0.5) / 4 and (1 · -1.5 + 9 ·
    # -0.5) / 10.
    counts = {1: (5, 0), 3: (3, 1), 6: (1, 9)}
    norms = [
        {"run": 0, "epoch": epoch, "low": low, "high": 10 * low, "count": count}
        for epoch, in_bins in counts.items()
        for low, count in zip((0.01, 0.1), in_bins, strict=True)
    ]
    runs = runs_of(
        [run(IMAGES, "CE", 0, dataset="cifar10")],
        [{"run": 0, "epoch": 7, "accuracy": 0.9}],
        gradient_norms=norms,
    )
    logarithm = LOG_GRADIENT_NORM.of(runs, runs.table)[0]
    assert logarithm == pytest.approx((-1.25 - 0.6) / 2 * np.log(10))


def test_a_mistake_is_confident_if_its_confidence_is_above_nine_tenths() -> None:
    confidences = {0: (0.95, 0.91, 0.89, 0.3), 1: (0.9, 0.99)}
    models = {"task": "linear", "dataset": "clusters"}
    mistakes = [
        {"run": number, "confidence": confidence}
        for number, of_run in confidences.items()
        for confidence in of_run
    ]
    runs = runs_of(
        [run("linear", "CE", seed, **models) for seed in (0, 1)],
        [{"run": number, "epoch": 7, "weight_norm": 1.0} for number in (0, 1)],
        linear_mistakes=mistakes,
    )
    shares = CONFIDENT_MISTAKES.of(runs, runs.table)
    assert shares.to_dict() == {0: 0.5, 1: 0.5}


def test_texts_do_not_speak_for_images(runs: Runs) -> None:
    # On the texts, which have separate rows in Table 1, label smoothing is better.
    texts = MAIN & LS_005 & ~where(embeddings=None)
    turned = shifted(runs, "ece", -0.047, among=texts, epoch=EPOCHS[-1])
    row = judged(turned, "flsd-53-beats-every-baseline")
    assert (row["verdict"], row["n"]) == (HOLDS, 3)
    assert {task["task"] for task in row["tasks"]} == {IMAGES}


@pytest.mark.parametrize("name", ["Brier", "LS-0.05"])
def test_a_printed_number_is_that_of_the_part_that_is_shown(
    runs: Runs, name: str
) -> None:
    claim = "flsd-53-beats-every-baseline"
    # The value of the claim is that of its worst part.
    better = 0.9 * 0.2 * 0.7 ** ARMS.index(name)
    turned = shifted(runs, "ece", -better, among=MAIN & BASELINES[name])
    row = judged(turned, claim)
    assert row["unit"].endswith(f"FLSD-53 against {name}")
    printed = {"Brier": np.log(1.55 / 1.82), "LS-0.05": np.log(1.55 / 2.96)}
    assert row["published"] == pytest.approx(printed[name], abs=1e-3)


def test_one_epoch_out_of_order_contradicts_a_claim_about_all_epochs(
    runs: Runs,
) -> None:
    # On average over the seven epochs, the order is unchanged: 14.7 < 15.
    turned = shifted(runs, "feature_norm", 5, among=MAIN & FL_2, epoch=5)
    row = judged(turned, "feature-norm-order")
    assert row["verdict"] == CONTRADICTED
    assert row["value"] == pytest.approx(np.log(15 / 19), abs=1e-3)


def test_a_run_without_one_of_the_outlier_sets_is_left_out(runs: Runs) -> None:
    # The first seed of FLSD-53 has no value for SVHN, and its AUROC on noise is higher.
    first = MAIN & FLSD_53 & where(seed=0)
    easier = shifted(runs, "auroc", 0.2, among=first, split="gaussian-noise")
    values = easier.measurements
    lacking = values["run"].isin(easier.select(first).index)
    lacking &= values["split"] == "svhn"
    row = judged(
        replace(easier, measurements=values[~lacking]), "flsd-53-detects-outliers"
    )
    assert (row["verdict"], row["n"]) == (HOLDS, 2)
    assert row["value"] == pytest.approx(0.1)
    without_svhn = replace(
        runs, measurements=runs.measurements.query("split != 'svhn'")
    )
    assert judged(without_svhn, "flsd-53-detects-outliers")["n"] == 3


@pytest.mark.parametrize(("scaled", "by"), [(True, 0.05), (False, -0.05)])
def test_the_area_after_scaling_is_compared_with_the_one_before(
    runs: Runs, scaled: bool, by: float
) -> None:
    one_side = shifted(runs, "auroc", by, among=MAIN & CE, scaled=scaled)
    row = judged(one_side, "scaling-does-not-help-outliers")
    assert row["value"] == pytest.approx(0.05)
    assert row["verdict"] == CONTRADICTED


def test_angles_are_between_0_and_180_degrees(runs: Runs) -> None:
    # The directions 179 and -179 degrees differ by two degrees.
    turned = runs.measurements.copy()
    for loss, angle in ((CE, 179.0), (FL_1, -179.0)):
        chosen = turned["run"].isin(runs.select(LINEAR & loss).index)
        for name, part in (("weight_0", np.cos), ("weight_1", np.sin)):
            place = chosen & (turned["metric"] == name)
            turned.loc[place, "value"] = part(np.radians(angle))
    row = judged(replace(runs, measurements=turned), "linear-decision-regions-agree")
    assert row["value"] == pytest.approx(2)


def test_what_diverged_or_was_not_trained_is_not_judged(runs: Runs) -> None:
    row = judged(diverged(runs, MAIN & FL_3), "fl-3-calibrates")
    assert row["verdict"] == NOT_TESTED
    assert "every run is lost: FL-3 9 of 9 diverged" in row["note"]
    row = judged(without(runs, MAIN & FL_2), "feature-norm-order")
    assert row["verdict"] == INCONCLUSIVE
    reason = "no run with focal loss with gamma 2, of those for the main recipe"
    assert f"not judged: FL-1 against FL-2: {reason}" in row["note"]


def test_only_the_main_recipe_is_judged(runs: Runs) -> None:
    variant = runs.table.assign(variant="mean", variant_of=IMAGES)
    changed = tidied(replace(runs, table=variant))
    assert judged(changed, "flsd-53-calibrates")["verdict"] == NOT_TESTED


def test_cells_are_of_the_training_or_of_the_evaluation(runs: Runs) -> None:
    trained = judged(runs, "flsd-53-calibrates")["cells"]
    assert f"focal/training/{IMAGES}/FLSD-53" in trained
    evaluated = judged(runs, "flsd-53-calibrates-after-scaling")["cells"]
    assert f"focal/evaluation/{IMAGES}/FLSD-53" in evaluated


def test_no_criterion_fails_the_printed_rows_and_quoted_numbers_are_printed(
    project_root: Path, monkeypatch: pytest.MonkeyPatch
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
    log_ece = np.log(ece)
    log_scaled = np.log(scaled)
    values = {
        "fl-3-calibrates": {"": ece["FL-3"] - ece["CE"]},
        "flsd-53-calibrates": {"": ece["FLSD-53"] - ece["CE"]},
        "fl-3-calibrates-after-scaling": {"": scaled["FL-3"] - scaled["CE"]},
        "flsd-53-calibrates-after-scaling": {"": scaled["FLSD-53"] - scaled["CE"]},
        "flsd-53-beats-every-baseline": {
            f"FLSD-53 against {name}": log_ece["FLSD-53"] - log_ece[name]
            for name in BASELINES
        },
        "flsd-53-is-lowest-after-scaling": {
            f"FLSD-53 against {name}": log_scaled["FLSD-53"] - log_scaled[name]
            for name in BASELINES
        },
        "accuracy-is-kept": {"": errors["CE"] - errors["FLSD-53"]},
        "ce-temperature-well-above-one": {"": temperatures["CE"]},
        "mmce-temperature-well-above-one": {"": temperatures["MMCE"]},
        "flsd-53-temperature-near-one": {"": temperatures["FLSD-53"]},
    }
    claims = {claim.id: claim for claim in CLAIMS}
    cifar10 = ("CIFAR-10", "ResNet-50")
    for name, parts in values.items():
        stated = claims[name].published
        quoted = stated if isinstance(stated, Mapping) else {"": stated}
        assert quoted == pytest.approx(
            {part: numbers[cifar10] for part, numbers in parts.items()}, abs=1e-3
        ), name
        for numbers in (numbers.dropna().tolist() for numbers in parts.values()):
            estimate = OverTasks(
                tuple(Task(str(place), (value,)) for place, value in enumerate(numbers))
            ).estimate()
            # Two printed numbers are too few for an interval.
            ends = (
                estimate.ends if len(numbers) > 2 else (estimate.value, estimate.value)
            )
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
