"""Tests the linear model of appendix C of the focal paper.

The model's gradient descent is compared with two other implementations.
"""

import math

import numpy as np
import pytest
import torch
from torch import Tensor

from softmax_temperature.training.linear_model import (
    make_data,
    mean_logit_norms,
    misclassified_confidences,
    train_logistic,
    two_class_logits,
)


def small() -> tuple[Tensor, Tensor]:
    train, _ = make_data(300, 1, seed=3)
    return train.for_fitting()


@pytest.mark.parametrize("seed", range(6))
def test_clusters_are_the_corners_of_a_square_of_side_four_with_classes_on_two_sides(
    seed: int,
) -> None:
    train, _ = make_data(8000, 1, seed=seed)
    points, labels = train.for_fitting()
    axis = int(
        (points[labels == 1].mean(dim=0) - points[labels == 0].mean(dim=0))
        .abs()
        .argmax()
    )
    sides = []
    for label in (0, 1):
        for half in (-1, 1):
            cluster = points[(labels == label) & (points[:, 1 - axis] * half > 0)]
            centre = cluster.median(dim=0).values
            assert centre[1 - axis].item() == pytest.approx(2 * half, abs=0.25)
            sides.append(centre[axis].item())
    # The 5 % of wrong labels hardly change a median. Both clusters of a class are on
    # one side of a line, so the line separates the classes.
    assert np.abs(sides) == pytest.approx(2, abs=0.25)
    assert np.sign(sides).tolist() in [[-1, -1, 1, 1], [1, 1, -1, -1]]


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0, 3.0])
def test_the_path_follows_the_gradient_in_closed_form(gamma: float) -> None:
    """The expected gradient is computed point by point, with the paper's function g."""
    points, labels = small()
    w, expected = np.zeros(2), []
    for _ in range(20):
        gradient = np.zeros(2)
        for point, label in zip(points.numpy(), labels.tolist(), strict=True):
            sign = 2 * label - 1
            p = 1 / (1 + math.exp(-sign * (w @ point)))
            g = (1 - p) ** gamma - gamma * p * (1 - p) ** (gamma - 1) * math.log(p)
            gradient -= g * (1 - p) * sign * point / len(points)
        w = w - 0.7 * gradient
        expected.append(w.tolist())
    path = train_logistic(points, labels, gamma, epochs=20, lr=0.7)
    torch.testing.assert_close(
        path, torch.tensor(expected, dtype=torch.float64), rtol=1e-12, atol=1e-13
    )


def test_norms_and_mistakes_by_hand() -> None:
    points = torch.tensor([[3.0, 4.0], [-1.0, 0.0], [0.0, -2.0]], dtype=torch.float64)
    path = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    assert two_class_logits(points, path[0]).tolist() == [[0, 3], [0, -1], [0, 0]]
    assert mean_logit_norms(points, path).tolist() == pytest.approx([4 / 3, 2])
    # With weights (0, 1) the points have scores 4, 0 and -2; at a score of 0, class 0
    # is predicted.
    labels = torch.tensor([0, 1, 0])
    expected = [1 / (1 + math.exp(-4)), 0.5]
    assert misclassified_confidences(points, labels, path[1]).tolist() == pytest.approx(
        expected
    )
