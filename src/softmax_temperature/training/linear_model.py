"""A logistic regression with two weights on four Gaussian clusters.

The model is trained by gradient descent (focal paper, appendix C). Points have shape
(n, features). Labels have shape (n,) and are 0 or 1. Weights have shape (features,).
"""

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from softmax_temperature.data.splits import Part
from softmax_temperature.losses.focal import focal_loss
from softmax_temperature.params.focal import LinearTraining

# Deviation: our data come from scikit-learn's make_classification with these settings,
# which match appendix C's description in words: corners at +-2 give the side of 4, and
# unit normals are mixed by a random matrix in each cluster. flip_y redraws the labels
# of 10 % of the points, so about 5 % of all labels change. If the authors changed the
# labels of 10 % of the points, their task is harder.
SETTINGS = {
    "n_features": 2,
    "n_redundant": 0,
    "n_clusters_per_class": 2,
    "class_sep": 2.0,
    "flip_y": 0.1,
}


def make_data(train: int, test: int, *, seed: int) -> tuple[Part, Part]:
    """Draw a training and a test set.

    The two classes have two clusters each, at the corners of a square, and some labels
    are wrong.
    """
    # Imported here because the import also loads scipy.stats and pandas, which takes a
    # second.
    from sklearn.datasets import make_classification

    # Derive a seed of 32 bits, because scikit-learn does not accept longer ones.
    state = int(np.random.default_rng(seed).integers(2**32))
    points, labels = make_classification(train + test, random_state=state, **SETTINGS)
    train_points, test_points = torch.from_numpy(points).split([train, test])
    train_labels, test_labels = torch.from_numpy(labels).split([train, test])
    return (
        Part.of_all("linear", "train", train_points, train_labels),
        Part.of_all("linear", "test", test_points, test_labels),
    )


def fit(
    task: LinearTraining, gamma: float, *, seed: int
) -> tuple[dict[str, Tensor], dict[str, float]]:
    """Train with focal loss on one draw of the data; return tensors and the accuracies.

    `weight_norm` and `logit_norm` have an entry for each epoch. The weights, the
    confidences of misclassified test points and the accuracies are those after the last
    epoch.
    """
    train, test = make_data(task.train, task.test, seed=seed)
    # Train on the CPU even if there is a GPU, because a step is only four thousand
    # multiplications.
    path = train_logistic(*train.for_fitting(), gamma, epochs=task.epochs, lr=task.lr)
    points, labels = test.for_evaluation()
    weights = path[-1].clone()
    mistakes = misclassified_confidences(points, labels, weights)
    tensors = {
        "weight_norm": path.norm(dim=1),
        "logit_norm": mean_logit_norms(points, path),
        "weights": weights,
        "misclassified_confidence": mistakes,
        "test_points": points.contiguous(),
        "test_labels": labels.contiguous(),
    }
    training_mistakes = misclassified_confidences(*train.for_evaluation(), weights)
    accuracies = {
        "train": 1 - len(training_mistakes) / task.train,
        "test": 1 - len(mistakes) / task.test,
    }
    return tensors, accuracies


def two_class_logits(points: Tensor, weights: Tensor) -> Tensor:
    """Compute the logits (0, w·x), shape (n, 2).

    The softmax over these logits is the logistic model, and their norm is |w·x|.
    """
    return F.pad((points @ weights)[:, None], (1, 0))


def train_logistic(
    points: Tensor, labels: Tensor, gamma: float, *, epochs: int, lr: float
) -> Tensor:
    """Train on the mean focal loss, and return the weights after each step.

    The weights have the shape (epochs, features), because each epoch is one step.
    """
    # Deviation: the model has two weights and no bias, which is our reading of "a
    # simple 2-parameter logistic regression" in two dimensions; the centres are placed
    # around the origin, so the best boundary passes through it.
    # Deviation: every step uses all training points, and the weights start at zero,
    # which favours no direction and is the same for every loss. Appendix C names
    # gradient descent but not its step size, length or start.
    weights = points.new_zeros(points.shape[1], requires_grad=True)
    path = points.new_empty(epochs, points.shape[1])
    for epoch in range(epochs):
        loss = focal_loss(two_class_logits(points, weights), labels, gamma)
        (gradient,) = torch.autograd.grad(loss, weights)
        with torch.no_grad():
            path[epoch] = weights.sub_(lr * gradient)
    return path


def mean_logit_norms(points: Tensor, path: Tensor) -> Tensor:
    """Compute the mean Euclidean norm of the points' logits after each epoch.

    `path` holds the weights, with shape (epochs, features). The result has shape
    (epochs,).
    """
    norms = [two_class_logits(points, weights).norm(dim=1) for weights in path]
    return torch.stack([norm.mean() for norm in norms])


def misclassified_confidences(
    points: Tensor, labels: Tensor, weights: Tensor
) -> Tensor:
    """Return the predicted class's probability for each misclassified point."""
    probs = torch.softmax(two_class_logits(points, weights), dim=1)
    confidences, predicted = probs.max(dim=1)
    return confidences[predicted != labels]
