from __future__ import annotations

import math

import pytest
import torch

from softmax_temperature.early_learning.problem import SoftmaxCrossEntropy, SquaredError

LOGITS = torch.tensor([[0.0, math.log(3)], [1.0, 1.0], [40.0, -40.0]], dtype=torch.float64)
LABELS = torch.tensor([0, 1, 1])


def test_cross_entropy_by_hand() -> None:
    loss = SoftmaxCrossEntropy(LABELS, 2)
    expected = torch.tensor([[0.75, -0.75], [-0.5, 0.5], [-1.0, 1.0]], dtype=torch.float64)
    torch.testing.assert_close(loss.residual(LOGITS), expected)
    assert loss.mean(LOGITS) == pytest.approx((math.log(4) + math.log(2) + 80) / 3)


@pytest.mark.parametrize("name", ["cross-entropy", "squared"])
def test_residuals_are_minus_the_gradients_of_the_sum(name: str) -> None:
    targets = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 2.0]], dtype=torch.float64)
    loss = SoftmaxCrossEntropy(LABELS, 2) if name == "cross-entropy" else SquaredError(targets)
    for place in range(LOGITS.numel()):
        step = torch.zeros(LOGITS.numel(), dtype=torch.float64)
        step[place] = 1e-5
        step = step.view(LOGITS.shape)
        slope = len(LOGITS) * (loss.mean(LOGITS + step) - loss.mean(LOGITS - step)) / 2e-5
        assert loss.residual(LOGITS).flatten()[place].item() == pytest.approx(-slope, abs=1e-7)
    for rows in (slice(0, 2), slice(2, 3)):
        torch.testing.assert_close(loss.residual(LOGITS[rows], rows), loss.residual(LOGITS)[rows])


def test_labels_that_are_no_classes_are_refused() -> None:
    with pytest.raises(ValueError, match=r"labels must be in \[0, 2\), got 2"):
        SoftmaxCrossEntropy(torch.tensor([0, 2]), 2)
