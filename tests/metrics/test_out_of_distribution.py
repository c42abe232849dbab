import math
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from softmax_temperature import metrics
from softmax_temperature.metrics.report import resample_weights

SCORES = ("entropy", "confidence")


def sets(classes: int = 10) -> tuple[Tensor, Tensor]:
    """Logits on two sets of samples; those on the second set are less confident."""
    generator = torch.Generator().manual_seed(0)
    sure, unsure = torch.randn(
        2, 400, classes, generator=generator, dtype=torch.float64
    )
    return 3 * sure, 2 * unsure


def slow_uncertainty(logits: Tensor, score: str) -> Tensor:
    probs = torch.softmax(logits.double(), dim=1)
    return (
        -(probs * probs.log()).sum(1) if score == "entropy" else 1 - probs.max(1).values
    )


@pytest.mark.parametrize("score", SCORES)
def test_auroc_is_the_share_of_pairs_ranked_right_with_out_as_the_positive_class(
    score: str,
) -> None:
    logits_in, logits_out = sets()
    inside, outside = (
        slow_uncertainty(logits, score) for logits in (logits_in, logits_out)
    )
    area = metrics.out_of_distribution_auroc(logits_in, logits_out, score=score)
    assert area.dtype == torch.float64
    assert area.item() == pytest.approx(
        (outside[:, None] > inside).double().mean().item(), abs=1e-12
    )
    sure, flat = 8 * torch.eye(4), 0.1 * torch.eye(4)
    assert metrics.out_of_distribution_auroc(sure, flat, score=score).item() == 1
    assert metrics.out_of_distribution_auroc(flat, sure, score=score).item() == 0
    assert metrics.out_of_distribution_auroc(sure, flat[:1], score=score).item() == 1
    assert metrics.out_of_distribution_auroc(flat, flat, score=score).item() == 0.5


def test_the_curve_encloses_the_area() -> None:
    false, true = metrics.out_of_distribution_curve(*sets(), points=1000).T
    assert (false[[0, -1]].tolist(), true[-1].item()) == ([0, 1], 1)
    area = metrics.out_of_distribution_auroc(*sets()).item()
    assert torch.trapezoid(true, false).item() == pytest.approx(area, abs=1e-3)


@pytest.mark.parametrize("score", SCORES)
def test_samples_that_float32_calls_certain_are_still_ranked(score: str) -> None:
    # In float32 every maximum probability here rounds to 1, so an area computed from
    # these probabilities would be 0.5.
    margins = torch.linspace(20, 60, 200)
    logits = torch.stack([margins, torch.zeros(200)], dim=1)
    assert torch.softmax(logits, dim=1)[:, 0].min() == 1
    assert (
        metrics.out_of_distribution_auroc(
            logits[100:], logits[:100], score=score
        ).item()
        == 1
    )


def test_the_interval_of_the_area_is_that_of_areas_of_resampled_rows() -> None:
    inside, outside = sets()[0][:60], sets()[1][:45]
    outside[:5] = inside[:5]  # A tie between a sample from each set counts as one half.
    scores = [slow_uncertainty(some, "entropy").numpy() for some in (inside, outside)]
    areas = []
    streams = (
        torch.cat(list(resample_weights(*each)))
        for each in ((60, 120, 7), (45, 120, 8))
    )
    for here, there in zip(*streams, strict=True):
        drawn = [
            np.repeat(values, w.numpy().astype(int))
            for values, w in zip(scores, (here, there), strict=True)
        ]
        areas.append(roc_auc_score(np.repeat([0, 1], [60, 45]), np.concatenate(drawn)))
    low, high = metrics.out_of_distribution_interval(
        inside, outside, bootstrap=120, seed=7
    )
    assert (low, high) == pytest.approx(
        tuple(np.quantile(areas, [0.05, 0.95])), abs=1e-12
    )
    assert low < float(metrics.out_of_distribution_auroc(inside, outside)) < high


def test_bad_input_is_refused_by_name() -> None:
    logits_in, logits_out = sets()
    for outside, keywords, message in (
        (
            logits_out,
            {"score": "energy"},
            "score must be 'entropy' or 'confidence', got 'energy'",
        ),
        (logits_out[:, :9], {}, "logits_out must have 10 classes, got 9"),
        (logits_out[:0], {}, "logits_out must have shape"),
        (logits_out, {"bootstrap": 0}, "bootstrap=0: fewer than 19"),
    ):
        with pytest.raises(ValueError, match=message):
            metrics.out_of_distribution_interval(logits_in, outside, **keywords)


@pytest.mark.parametrize("points", [-3, 0, 2.5, "7"])
def test_a_curve_has_a_whole_number_of_points(points: Any) -> None:
    logits = torch.randn(20, 3, generator=torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match="points must be an integer of at least 1"):
        metrics.out_of_distribution_curve(logits, logits, points=points)


@pytest.mark.parametrize("score", SCORES)
def test_masked_classes_are_as_if_absent(score: str) -> None:
    inside, outside = sets()
    expected = metrics.out_of_distribution_auroc(inside, outside, score=score)
    columns = torch.tensor([1, 2, 3, 5, 6, 7, 8, 9, 10, 12])

    def masked(logits: Tensor) -> Tensor:
        wider = logits.new_full((len(logits), 13), -math.inf)
        wider[:, columns] = logits
        return wider

    pair = (masked(inside), masked(outside))
    found = metrics.out_of_distribution_auroc(*pair, score=score)
    assert found.item() == pytest.approx(expected.item(), abs=1e-12)
    interval = metrics.out_of_distribution_interval(*pair, score=score, bootstrap=50)
    unmasked = metrics.out_of_distribution_interval(
        inside, outside, score=score, bootstrap=50
    )
    assert interval == pytest.approx(unmasked, abs=1e-12)
    curve = metrics.out_of_distribution_curve(*pair, score=score)
    assert curve.equal(metrics.out_of_distribution_curve(inside, outside, score=score))


@pytest.mark.parametrize("score", SCORES)
def test_a_row_with_a_single_unmasked_class_is_certain(score: str) -> None:
    inside, outside = sets()
    inside[:, 1:] = -math.inf
    assert metrics.out_of_distribution_auroc(inside, outside, score=score) == 1
    inside[3] = -math.inf
    with pytest.raises(ValueError, match="logits_in must be finite, got -inf in row 3"):
        metrics.out_of_distribution_auroc(inside, outside, score=score)
