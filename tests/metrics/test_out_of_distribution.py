from __future__ import annotations

import pytest
import torch
from scipy.stats import mannwhitneyu
from torch import Tensor

from softmax_temperature import metrics

SCORES = ("entropy", "confidence")


def sets(classes: int = 10) -> tuple[Tensor, Tensor]:
    """Logits of a sure and of a less sure set."""
    generator = torch.Generator().manual_seed(0)
    sure, unsure = torch.randn(2, 400, classes, generator=generator, dtype=torch.float64)
    return 3 * sure, 2 * unsure


def slow_uncertainty(logits: Tensor, score: str) -> Tensor:
    probs = torch.softmax(logits.double(), dim=1)
    return -(probs * probs.log()).sum(1) if score == "entropy" else 1 - probs.max(1).values


@pytest.mark.parametrize("score", SCORES)
def test_auroc_is_the_share_of_pairs_ranked_right(score: str) -> None:
    logits_in, logits_out = sets()
    inside, outside = (slow_uncertainty(logits, score) for logits in (logits_in, logits_out))
    pairs = (outside[:, None] > inside).double().mean().item()
    area = metrics.out_of_distribution_auroc(logits_in, logits_out, score=score)
    assert area.dtype == torch.float64
    assert area.item() == pytest.approx(pairs, abs=1e-12)
    assert area.item() == pytest.approx(mannwhitneyu(outside, inside).statistic / inside.numel() ** 2)


@pytest.mark.parametrize("score", SCORES)
def test_swapping_the_sets_and_shifting_the_logits(score: str) -> None:
    logits_in, logits_out = sets()
    area = metrics.out_of_distribution_auroc(logits_in, logits_out, score=score).item()
    back = metrics.out_of_distribution_auroc(logits_out, logits_in, score=score).item()
    shifted = metrics.out_of_distribution_auroc(logits_in + 7, logits_out - 100, score=score).item()
    assert area > 0.6
    assert back == pytest.approx(1 - area, abs=1e-12)
    assert shifted == pytest.approx(area, abs=1e-3)


@pytest.mark.parametrize("score", SCORES)
def test_out_of_distribution_is_the_positive_class(score: str) -> None:
    sure, flat = 8 * torch.eye(4), 0.1 * torch.eye(4)
    assert metrics.out_of_distribution_auroc(sure, flat, score=score).item() == 1
    assert metrics.out_of_distribution_auroc(flat, sure, score=score).item() == 0
    assert metrics.out_of_distribution_auroc(sure, flat[:1], score=score).item() == 1
    assert metrics.out_of_distribution_auroc(flat, flat, score=score).item() == 0.5


@pytest.mark.parametrize("score", SCORES)
def test_samples_that_float32_calls_certain_are_still_told_apart(score: str) -> None:
    # In float32 every probability here is 1 and in float64 all but a few are: an area of 0.5 or nearly.
    margins = torch.linspace(20, 60, 200)
    logits = torch.stack([margins, torch.zeros(200)], dim=1)
    assert torch.softmax(logits, dim=1)[:, 0].min() == 1
    assert metrics.out_of_distribution_auroc(logits[100:], logits[:100], score=score).item() == 1


def test_bad_input_is_refused_by_name() -> None:
    logits_in, logits_out = sets()
    with pytest.raises(ValueError, match="score must be 'entropy' or 'confidence', got 'energy'"):
        metrics.out_of_distribution_auroc(logits_in, logits_out, score="energy")
    with pytest.raises(ValueError, match="logits_out must have 10 classes, got 9"):
        metrics.out_of_distribution_auroc(logits_in, logits_out[:, :9])
    with pytest.raises(ValueError, match="logits_out must have shape"):
        metrics.out_of_distribution_auroc(logits_in, logits_out[:0])
    with pytest.raises(ValueError, match="logits_in must be finite"):
        metrics.out_of_distribution_auroc(logits_in / 0, logits_out)
