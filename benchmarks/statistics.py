"""Speed of the 23 statistics against plain calls to scipy and scikit-learn.

Both sides use the same embeddings, process and number of threads. The peer computes the
same 23 statistics in float64 with the shortest calls to numpy, scipy (one dimension at
a time) and scikit-learn. Its silhouette is scikit-learn's, which works in chunks and
compares all pairs of rows, as the paper's wording requires.
"""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.metrics import (
    calinski_harabasz_score,
    davies_bouldin_score,
    silhouette_score,
)
from sklearn.metrics.pairwise import cosine_similarity
from torch import Tensor

from benchmarks.timing import seconds
from softmax_temperature.dataset_statistics import NORMALITY_ROWS, describe

Array = NDArray[np.float64]

FULL_SIZE = (50_000, 512, 100)
QUICK_SIZE = (6_000, 128, 20)
PERCENTAGES = (50, 75, 80, 90, 95, 99)


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Time our implementation and the peer once each, in the same process.

    Args:
        quick: Use 6,000 x 128 embeddings instead of the 50,000 x 512 of the promise.

    Returns:
        name, size, ours_seconds, peer_seconds, ratio (peer over ours) and peer, a
        sentence that describes the peer.
    """
    samples, dim, n_classes = QUICK_SIZE if quick else FULL_SIZE
    embeddings, labels = clustered_embeddings(samples, dim, n_classes)
    ours = seconds(lambda: describe(embeddings, labels))
    peer = seconds(lambda: describe_plainly(embeddings, labels))
    return {
        "name": "23 statistics",
        "size": f"{samples} x {dim} embeddings, {n_classes} classes",
        "ours_seconds": ours,
        "peer_seconds": peer,
        "ratio": peer / ours,
        "peer": (
            "numpy, scipy one dimension at a time, scikit-learn's silhouette_score "
            "over all rows"
        ),
    }


def clustered_embeddings(
    samples: int, dim: int, n_classes: int
) -> tuple[Tensor, Tensor]:
    """Rectified Gaussian clusters in float32, and labels.

    The embeddings are sparse and non-negative, like pooled convolutional features.
    """
    generator = torch.Generator().manual_seed(0)
    labels = torch.randint(0, n_classes, (samples,), generator=generator)
    centres = torch.randn(n_classes, dim, generator=generator)
    noise = 2.0 * torch.randn(samples, dim, generator=generator)
    return torch.relu(centres[labels] + noise), labels


def describe_plainly(embeddings: Tensor, labels: Tensor) -> dict[str, float]:
    """The 23 statistics from the shortest library calls, per dimension and class."""
    raw = embeddings.double().numpy()
    classes = labels.numpy()
    unit = raw / np.linalg.norm(raw, axis=1, keepdims=True)
    n_classes = len(np.unique(classes))
    return {
        "dim": raw.shape[1],
        "n_classes": n_classes,
        "n_samples": len(raw),
        "avg_samp_class": len(raw) / n_classes,
        "mean": unit.mean(),
        "var": unit.var(),
        "train_mean": raw.mean(),
        "train_std": raw.std(),
        **plain_traces(unit, classes),
        **plain_dimensions(unit),
        "silhouette": silhouette_score(unit, classes),
        "calinski_harabasz": calinski_harabasz_score(unit, classes),
        "david_bouldin": davies_bouldin_score(unit, classes),
    }


def plain_traces(unit: Array, classes: NDArray[np.int64]) -> dict[str, float]:
    """Traces of the mean covariance matrices, computed from the matrices."""
    members = [unit[classes == label] for label in np.unique(classes)]
    offsets = [rows.mean(axis=0) - unit.mean(axis=0) for rows in members]
    within = sum(np.cov(rows.T, bias=True) for rows in members) / len(members)
    between = sum(np.outer(offset, offset) for offset in offsets) / len(members)
    return {"sb_trace": np.trace(within), "sw_trace": np.trace(between)}


def plain_dimensions(unit: Array) -> dict[str, float]:
    """Correlations, kurtosis, normality and PCA shares of the dimensions.

    scipy's kurtosis and Shapiro-Wilk test are called once per dimension.
    """
    dim = unit.shape[1]
    off_diagonal = ~np.eye(dim, dtype=bool)
    sample = unit[np.random.default_rng(0).permutation(len(unit))[:NORMALITY_ROWS]]
    explained = np.cumsum(PCA().fit(unit).explained_variance_ratio_)
    shares = {}
    for percentage in PERCENTAGES:
        components = np.searchsorted(explained, percentage / 100) + 1
        shares[f"pca_{percentage}"] = components / dim
    kurtosis = [stats.kurtosis(column) for column in unit.T]
    normality = [stats.shapiro(column).statistic for column in sample.T]
    return {
        "feats_corr": np.square(np.corrcoef(unit.T) - np.eye(dim)).mean(),
        "feats_cos_sim": cosine_similarity(unit.T)[off_diagonal].mean(),
        "avg_kurtosis": float(np.mean(kurtosis)),
        "avg_normality": float(np.mean(normality)),
        **shares,
    }
