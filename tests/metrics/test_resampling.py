from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from softmax_temperature.metrics import (
    calibration_report,
    confident_report,
    out_of_distribution_auroc,
    out_of_distribution_interval,
)
from softmax_temperature.metrics.resampling import resample_weights


def logits(samples: int, scale: float, seed: int) -> Tensor:
    return scale * torch.randn(samples, 4, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def entropies(some: Tensor) -> np.ndarray:
    probs = torch.softmax(some, dim=1)
    return (-(probs * probs.log()).sum(1)).numpy()


def test_the_interval_of_the_area_is_that_of_areas_of_resampled_rows() -> None:
    inside, outside = logits(60, 3.0, 0), logits(45, 1.5, 1)
    outside[:5] = inside[:5]  # Ties count half.
    scores = [entropies(inside), entropies(outside)]
    areas = []
    for here, there in zip(
        torch.cat(list(resample_weights(60, 120, 7))), torch.cat(list(resample_weights(45, 120, 8))), strict=True
    ):
        drawn = [np.repeat(values, w.numpy().astype(int)) for values, w in zip(scores, (here, there), strict=True)]
        areas.append(roc_auc_score(np.repeat([0, 1], [60, 45]), np.concatenate(drawn)))
    low, high = out_of_distribution_interval(inside, outside, bootstrap=120, seed=7)
    assert (low, high) == pytest.approx(tuple(np.quantile(areas, [0.05, 0.95])), abs=1e-12)
    assert low < float(out_of_distribution_auroc(inside, outside)) < high


def test_both_sets_are_drawn_independently() -> None:
    same = logits(200, 2.0, 3)
    low, high = out_of_distribution_interval(same, same, bootstrap=200)
    assert low < 0.49 < 0.51 < high, "one draw for both would leave every area at one half"


def test_confident_predictions_are_counted_one_by_one() -> None:
    some, labels = logits(300, 6.0, 2), torch.randint(4, (300,), generator=torch.Generator().manual_seed(0))
    report = confident_report(some, labels, threshold=0.9, bootstrap=80, seed=4)
    kept = [
        (row.argmax() == label).item() for row, label in zip(some, labels, strict=True) if row.softmax(0).max() >= 0.9
    ]
    assert report["confident_share"] == pytest.approx(len(kept) / 300)
    assert report["confident_accuracy"] == pytest.approx(sum(kept) / len(kept))
    shares = [
        np.mean([some[row].softmax(0).max() >= 0.9 for row in np.repeat(np.arange(300), weights.numpy().astype(int))])
        for weights in torch.cat(list(resample_weights(300, 80, 4)))
    ]
    assert report["intervals"]["confident_share"] == pytest.approx(tuple(np.quantile(shares, [0.05, 0.95])))


def test_a_network_that_is_never_confident_has_a_share_of_zero_and_no_accuracy() -> None:
    report = confident_report(torch.zeros(20, 4), torch.zeros(20, dtype=torch.long), bootstrap=10)
    assert (report["confident_share"], report["confident_accuracy"]) == (0.0, None)
    assert report["intervals"] == {"confident_share": (0.0, 0.0)}


def test_confident_and_calibration_reports_share_their_resamples() -> None:
    some, labels = logits(100, 3.0, 5), torch.randint(4, (100,), generator=torch.Generator().manual_seed(1))
    whole = confident_report(some, labels, threshold=0.0, bootstrap=50, seed=9)
    accuracy = calibration_report(some, labels, bootstrap=50, seed=9)["intervals"]["accuracy"]
    assert whole["intervals"]["confident_accuracy"] == pytest.approx(accuracy)


@pytest.mark.parametrize("bad", [{"bootstrap": 0}, {"seed": -1}, {"score": "margin"}])
def test_bad_input_is_refused_by_name(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=next(iter(bad))):
        out_of_distribution_interval(logits(5, 1, 0), logits(5, 1, 1), **bad)  # type: ignore[arg-type]
