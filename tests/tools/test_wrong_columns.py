"""Scores that are not class logits are named: other thresholds, weights, decisions."""

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning

from softmax_temperature import (
    Cooling,
    FocalLoss,
    TemperatureScaler,
    calibrate,
    suggest_temperature,
)
from softmax_temperature.metrics import brier_score
from softmax_temperature.metrics.class_order import threshold_hint
from softmax_temperature.scaling import fit_temperature

RANDOM = np.random.default_rng(0)
LOGITS = RANDOM.normal(size=(400, 3)) * 3
LABELS = (LOGITS + RANDOM.gumbel(size=LOGITS.shape)).argmax(1)
ONE_HOT = np.eye(3)[LOGITS.argmax(1)]
TWO = RANDOM.integers(2, size=1500)
CREDIT = (600 + 60 * (2 * TWO - 1) + 90 * RANDOM.normal(size=1500)).clip(300, 850)


def two_logits(scores: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.stack([np.zeros_like(scores), scores], axis=1))


@pytest.mark.parametrize(
    ("scores", "labels", "predicted"),
    [(CREDIT, TWO, 1), (-CREDIT, 1 - TWO, 0), (CREDIT - 299, TWO, 1)],
)
def test_a_score_whose_threshold_is_not_0_is_named_in_the_verdict(
    scores: np.ndarray, labels: np.ndarray, predicted: int
) -> None:
    hint = f"Every row is predicted class {predicted}, but .* part near .*not near 0"
    verdict = calibrate(scores[:, None], labels, bootstrap=0).data["verdict"]
    assert pd.Series([verdict]).str.contains(hint).all()
    with pytest.warns(ConvergenceWarning, match=hint):
        TemperatureScaler().fit(scores[:, None], labels)
    assert "negate" not in verdict


def test_the_threshold_in_the_hint_parts_the_classes() -> None:
    hint = threshold_hint(torch.from_numpy(TWO), two_logits(CREDIT))
    threshold = float(hint.split("part near ")[1].split(",")[0])
    # Both classes have the same spread around 540 and 660, and the same number of rows.
    assert 590 < threshold < 610
    assert not threshold_hint(torch.from_numpy(TWO), two_logits(CREDIT - threshold))


def test_a_score_that_rises_with_class_0_must_also_be_negated() -> None:
    hint = threshold_hint(torch.from_numpy(1 - TWO), two_logits(CREDIT))
    assert hint.endswith("so negate it, too.")


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("scale", [0.5, 1, 2])
def test_a_rare_class_that_is_never_predicted_gets_no_hint(
    seed: int, scale: float
) -> None:
    random = np.random.default_rng(seed)
    logits = -4 + 0.6 * random.normal(size=3000)
    labels = random.random(3000) < 1 / (1 + np.exp(-logits))
    rows = two_logits(scale * logits)
    assert rows[:, 1].max() < 0
    assert not threshold_hint(torch.from_numpy(labels).long(), rows)


def test_scores_that_say_nothing_about_the_labels_get_no_hint() -> None:
    labels = torch.from_numpy(np.random.default_rng(1).permutation(TWO))
    assert not threshold_hint(labels, two_logits(CREDIT))


def test_labels_in_another_order_than_the_embeddings_are_named() -> None:
    random = np.random.default_rng(7)
    labels = random.integers(10, size=1000)
    embeddings = random.normal(size=(10, 64))[labels] + random.normal(size=(1000, 64))
    aligned = suggest_temperature(embeddings, labels)
    assert aligned.separated
    assert "better than chance" not in str(aligned)
    shuffled = suggest_temperature(embeddings, random.permutation(labels))
    assert not shuffled.separated
    assert "The labels do not separate the embeddings better than chance" in str(
        shuffled
    )


def test_labels_that_separate_many_small_classes_weakly_are_accepted() -> None:
    random = np.random.default_rng(8)
    labels = random.integers(300, size=1500)
    centres = random.normal(size=(300, 64))
    embeddings = 0.5 * centres[labels] + random.normal(size=(1500, 64))
    assert suggest_temperature(embeddings, labels).separated


@pytest.mark.parametrize(
    "name",
    ["weight", "weights", "Class Weight", "loss", "prob", "score", "conf", "top1_prob"],
)
def test_a_column_of_weights_or_losses_beside_logits_is_refused(name: str) -> None:
    frame = pd.DataFrame(LOGITS, columns=["cat", "dog", "bird"])
    frame[name] = np.random.default_rng(2).uniform(0.5, 2, len(frame))
    with pytest.raises(ValueError, match=f"not scores: '{name}'"):
        calibrate(frame, LABELS)
    with pytest.raises(ValueError, match=f"not scores: '{name}'"):
        TemperatureScaler().fit(frame, LABELS)


@pytest.mark.parametrize("names", [["win", "draw", "loss"], ["height", "weight", "x"]])
def test_classes_called_loss_or_weight_are_accepted(names: list[str]) -> None:
    expected = calibrate(LOGITS, LABELS, bootstrap=0).data["temperature"]
    frame = pd.DataFrame(LOGITS, columns=names)
    assert calibrate(frame, LABELS, bootstrap=0).data["temperature"] == expected
    probs = np.exp(LOGITS) / np.exp(LOGITS).sum(1, keepdims=True)
    report = calibrate(
        pd.DataFrame(probs, columns=names), LABELS, kind="probs", bootstrap=0
    )
    assert report.temperature == pytest.approx(expected["nll"]["temperature"], rel=1e-6)


@pytest.mark.parametrize("classes", [(2, 2, 2), (2, 3)])
@pytest.mark.parametrize("several", [True, False])
def test_a_list_of_tables_of_several_outputs_is_refused(
    classes: tuple[int, ...], several: bool
) -> None:
    random = np.random.default_rng(3)
    tables = [random.dirichlet(np.ones(size), 300) for size in classes]
    labels = random.integers(2, size=(300, len(classes)))
    if not several:
        labels = labels[:, 0]
    for call in (
        lambda: calibrate(tables, labels),
        lambda: calibrate(tables, labels, kind="probs"),
        lambda: TemperatureScaler().fit(tables, labels),
    ):
        with pytest.raises(ValueError, match=r"several outputs.* Give one"):
            call()
    tensors = [torch.from_numpy(table) for table in tables]
    for score in (tables, tensors):
        for function in (FocalLoss(), brier_score):
            with pytest.raises(TypeError, match="several outputs, give one"):
                function(score, torch.from_numpy(labels))


@pytest.mark.parametrize(
    "scores",
    [
        LOGITS.argmax(1),
        LOGITS.argmax(1).astype(float),
        LOGITS.argmax(1)[:, None],
        ONE_HOT.astype(int),
    ],
)
def test_predicted_classes_given_as_logits_are_refused(scores: np.ndarray) -> None:
    rows, labels = torch.from_numpy(scores), torch.from_numpy(LABELS)
    network = torch.nn.Linear(4, 3)
    for call in (
        lambda: Cooling(network).cool(rows, labels),
        lambda: fit_temperature(rows, labels),
        lambda: calibrate(scores, LABELS),
        lambda: FocalLoss()(rows, labels),
    ):
        with pytest.raises(ValueError, match=r"look like predicted classes\. Give"):
            call()
    assert network.cooling_temperature == 1


def test_one_hot_probabilities_of_a_tree_are_scored() -> None:
    score = brier_score(torch.from_numpy(ONE_HOT), torch.from_numpy(LABELS))
    wrong = (LOGITS.argmax(1) != LABELS).mean()
    assert score.item() == pytest.approx(2 * wrong)
