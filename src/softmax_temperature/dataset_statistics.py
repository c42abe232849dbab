"""The 23 statistics that describe a labelled set of embeddings (classifier_temperature,
section 4.2).

Every statistic is computed on the L2-normalised embeddings, all that the cosine
classifier sees (section 3.1); only train_mean and train_std describe the raw values.
docs/classifier_temperature.md has the other readings of the paper.

=====================
===============================================================================================
dim                    number of dimensions n_classes              number of distinct
labels mean, var              of all n * dim normalised values, population variance
train_mean, train_std  of all n * dim raw values, population form sb_trace
trace of the average over classes of the covariance within a class, population form: the
paper's
                       intra-class trace, although `b` usually means between
sw_trace               trace of the average over classes of (m_c - m)(m_c - m)', m_c the
                       mean of a class, m that of all samples: the paper's inter-class
                       trace
feats_corr             mean of the dim**2 squared entries of (correlation matrix of the
dimensions - identity) feats_cos_sim          mean over pairs of different dimensions of
the cosine of their columns, signed, not centred n_samples              number of rows
avg_samp_class         n_samples / n_classes pca_50 ... pca_99      number of principal
components that explain this percentage of the variance, over dim avg_kurtosis
mean over dimensions of the excess (Fisher) kurtosis, biased form: 0 for a normal
distribution avg_normality          mean over dimensions of Shapiro and Wilk's W, on at
most NORMALITY_ROWS rows silhouette             mean Euclidean silhouette coefficient,
of at most SILHOUETTE_ROWS rows against all rows calinski_harabasz      Calinski and
Harabasz's variance ratio, as scikit-learn (1 where no class has any spread)
david_bouldin          Davies and Bouldin's index, as scikit-learn (the paper's
spelling) =====================
===============================================================================================

feats_corr, feats_cos_sim, avg_kurtosis and avg_normality leave out dimensions that do
not vary (but for rounding, or by less than 1e-19 of a row's length); where none varies
they are 0, 0, 0 and 1 and every pca share is 0. One dimension alone has feats_corr and
feats_cos_sim 0. A class of one sample has no spread and silhouette 0.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from softmax_temperature.metrics.checks import (
    check_classes,
    check_count,
    check_embeddings,
)

# fmt: off
STATISTICS: Final = (
    "dim", "n_classes", "mean", "var", "sb_trace", "sw_trace", "feats_corr", "feats_cos_sim", "n_samples",
    "avg_samp_class", "pca_50", "pca_75", "pca_80", "pca_90", "pca_95", "pca_99", "train_mean",
    "train_std", "avg_kurtosis", "avg_normality", "silhouette", "calinski_harabasz", "david_bouldin",
)
# fmt: on
SILHOUETTE_ROWS: Final = 2_000
# Royston's approximation of the weights is validated up to here; scipy warns beyond.
NORMALITY_ROWS: Final = 5_000

_EXPLAINED_PERCENTAGES: Final = (50, 75, 80, 90, 95, 99)
# Differences below this part of a value are rounding: float32 embeddings resolve 6e-8,
# float64 sums err by 1e-15.
_ROUNDING: Final = 1e-12
# scipy's Shapiro-Wilk treats a smaller range as zero, and fourth powers of much smaller
# values underflow.
_LEAST_RANGE: Final = 1e-19
# Numbers in one block of a pass over the rows, 8 MiB: temporary arrays of this size
# stay in the processor's cache.
_BLOCK_NUMBERS: Final = 2**20

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def describe(embeddings: Tensor, labels: Tensor, *, seed: int = 0) -> dict[str, float]:
    """The 23 statistics of section 4.2, in the paper's order; their definitions are in
    this module's docstring.

    The order of the rows does not matter, to the last bit. Computed on the CPU in
    float64, in about two copies' memory.

    Args:
        embeddings: (n, dim) floating; finite; no row all zero.
        labels: (n,) int64, not negative; at least two classes, at least one of them
            with two samples.
        seed: Draws the rows of `silhouette` above SILHOUETTE_ROWS rows and of
            `avg_normality` above NORMALITY_ROWS.

    Raises:
        ValueError: If an argument is not as above; the message names it.
    """
    _check(embeddings, labels, seed)
    raw, classes = _in_content_order(embeddings, labels)
    raw_moments = _raw_moments(raw)
    unit = _normalised(raw)
    normality_seed, silhouette_seed = np.random.SeedSequence(seed).spawn(2)
    values = {
        **raw_moments,
        **_sizes_and_moments(unit, classes),
        **_class_traces(unit, classes),
        **_dimension_statistics(unit, normality_seed),
        **_separation(unit, classes, silhouette_seed),
    }
    return {name: float(values[name]) for name in STATISTICS}


def _check(embeddings: Tensor, labels: Tensor, seed: int) -> None:
    check_embeddings(embeddings)
    check_classes(labels, len(embeddings))
    check_count(seed, "seed", least=0)
    if not 2 <= (n_classes := len(labels.unique())) < len(labels):
        found = f"{n_classes} classes in {len(labels)} samples"
        raise ValueError(
            f"labels must hold at least two classes, one of them with two samples, got {found}"
        )


def _in_content_order(embeddings: Tensor, labels: Tensor) -> tuple[Array, Indices]:
    """A copy of the rows in an order that depends on what they hold only, and their
    classes numbered from 0.
    """
    # Adding 0.0 turns -0.0 into 0.0: equal numbers must have equal bytes, the bytes are
    # the key.
    rows = (
        embeddings.detach()
        .to("cpu", torch.float64, copy=True)
        .contiguous()
        .add_(0.0)
        .numpy()
    )
    classes = np.unique(labels.cpu().numpy(), return_inverse=True)[1]
    order = np.argsort(
        rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel()
    )
    rows, classes = rows[order], classes[order]
    differs_from_last = (rows[1:] != rows[:-1]).any(axis=1)
    # Among equal rows only the classes have an order left to fix.
    return rows, classes[
        np.lexsort((classes, np.append(0, np.cumsum(differs_from_last))))
    ]


def _raw_moments(raw: Array) -> dict[str, float]:
    # Deviation: the paper describes mean and train_mean, var and train_std in the same
    # words. We read the first pair as the classifier's input and the second as the
    # extractor's output; see the table above.
    train_std, train_mean = torch.std_mean(torch.from_numpy(raw), correction=0)
    return {"train_mean": float(train_mean), "train_std": float(train_std)}


def _normalised(raw: Array) -> Array:
    """The same array with rows of length 1: new memory costs time."""
    raw /= np.sqrt(np.einsum("nd,nd->n", raw, raw))[:, None]
    return raw


def _sizes_and_moments(unit: Array, classes: Indices) -> dict[str, float]:
    (samples, dim), n_classes, mean = unit.shape, classes.max() + 1, unit.mean()
    sizes = {
        "dim": dim,
        "n_classes": n_classes,
        "n_samples": samples,
        "avg_samp_class": samples / n_classes,
    }
    # The squares of a normalised row sum to 1.
    return {**sizes, "mean": mean, "var": 1 / dim - mean**2}


def _membership(classes: Indices) -> tuple[sparse.csc_array, Array]:
    """The (n_classes, n) matrix that sums rows by class, and the class sizes."""
    entries = np.ones(len(classes)), (classes, np.arange(len(classes)))
    return sparse.csc_array(entries), np.bincount(classes).astype(np.float64)


def _class_traces(unit: Array, classes: Indices) -> dict[str, float]:
    by_class, counts = _membership(classes)
    means = by_class @ unit / counts[:, None]
    # Normalised rows are at mean squared distance 1 - |m|**2 from their mean m.
    within = 1 - np.square(means).sum(axis=1)
    between = np.square(means - unit.mean(axis=0)).sum(axis=1)
    # Deviation: sb is usually the scatter between classes and sw that within; the paper
    # describes them the other way round, and its Figure 3 uses these names. Averages
    # over classes and population forms are ours, see the table.
    return {"sb_trace": within.mean().clip(min=0.0), "sw_trace": between.mean()}


def _varies(columns: Array) -> NDArray[np.bool_]:
    """Which columns of normalised rows vary; normalising a constant column may leave
    rounding in it.
    """
    low, high = columns.min(axis=0), columns.max(axis=0)
    rounding = _ROUNDING * np.maximum(np.abs(low), np.abs(high))
    varies: NDArray[np.bool_] = high - low > np.maximum(rounding, _LEAST_RANGE)
    return varies


def _blocks(rows: int, width: int) -> Iterator[slice]:
    step = max(1, _BLOCK_NUMBERS // width)
    return (slice(start, start + step) for start in range(0, rows, step))


def _dimension_statistics(
    unit: Array, seed: np.random.SeedSequence
) -> dict[str, float]:
    # Deviation: the paper does not say what becomes of a dimension that does not vary.
    # It is left out.
    kept = np.flatnonzero(_varies(unit))
    if len(kept) == 0:
        shares = dict.fromkeys(
            (f"pca_{percentage}" for percentage in _EXPLAINED_PERCENTAGES), 0.0
        )
        return {
            "feats_corr": 0.0,
            "feats_cos_sim": 0.0,
            "avg_kurtosis": 0.0,
            "avg_normality": 1.0,
            **shares,
        }
    covariance, fourth_moments = _central_moments(unit)
    covariance, variances = covariance[np.ix_(kept, kept)], covariance.diagonal()[kept]
    correlation = covariance / np.sqrt(np.outer(variances, variances))
    return {
        "feats_corr": np.square(correlation - np.eye(len(kept))).mean(),
        "feats_cos_sim": _mean_cosine(unit, kept),
        "avg_kurtosis": np.mean(fourth_moments[kept] / variances**2) - 3.0,
        "avg_normality": _mean_normality(unit, seed),
        **_explained_shares(covariance, unit.shape[1]),
    }


def _central_moments(unit: Array) -> tuple[Array, Array]:
    """Population covariance (dim, dim) and fourth central moments (dim,), in one pass
    over the rows.
    """
    samples, dim = unit.shape
    centre = unit.mean(axis=0)
    covariance, fourth_moments = np.zeros((dim, dim)), np.zeros(dim)
    for block in _blocks(samples, dim):
        offsets = unit[block] - centre
        covariance += offsets.T @ offsets
        squares = np.square(offsets)
        fourth_moments += np.einsum("nd,nd->d", squares, squares)
    return covariance / samples, fourth_moments / samples


def _mean_cosine(unit: Array, kept: Indices) -> float:
    """The mean over pairs of columns; the squared sum of directions holds every pair
    twice, and each column.
    """
    count = len(kept)
    if count == 1:
        return 0.0
    weights = np.zeros(unit.shape[1])
    weights[kept] = 1.0 / np.sqrt(np.einsum("nd,nd->d", unit, unit)[kept])
    resultant = unit @ weights
    return float((resultant @ resultant - count) / (count * (count - 1)))


def _mean_normality(unit: Array, seed: np.random.SeedSequence) -> float:
    from scipy.stats import shapiro  # A second, which `plan` need not wait for.

    sample = unit[_drawn_rows(len(unit), NORMALITY_ROWS, seed)]
    # A column may vary only outside the sample.
    sample = sample[:, _varies(sample)]
    return (
        float(np.mean([shapiro(column).statistic for column in sample.T]))
        if sample.size
        else 1.0
    )


def _explained_shares(covariance: Array, dim: int) -> dict[str, float]:
    variances = np.linalg.eigvalsh(covariance)[::-1].clip(min=0.0)
    explained = np.cumsum(variances) / variances.sum()
    # Where components explain exactly the percentage, rounding must not ask for one
    # more.
    needed = {
        p: np.searchsorted(explained, p / 100 - _ROUNDING) + 1
        for p in _EXPLAINED_PERCENTAGES
    }
    return {f"pca_{percentage}": count / dim for percentage, count in needed.items()}


def _separation(
    unit: Array, classes: Indices, seed: np.random.SeedSequence
) -> dict[str, float]:
    from sklearn.metrics import (
        calinski_harabasz_score,
        davies_bouldin_score,
    )  # They import scipy.stats.

    rows = _drawn_rows(len(unit), SILHOUETTE_ROWS, seed)
    return {
        "silhouette": _silhouettes(unit, classes, rows).mean(),
        "calinski_harabasz": calinski_harabasz_score(unit, classes),
        "david_bouldin": davies_bouldin_score(unit, classes),
    }


def _silhouettes(unit: Array, classes: Indices, rows: Indices) -> Array:
    """As scikit-learn's `silhouette_samples` for these of the unit rows, among all
    rows.
    """
    # Deviation: the paper does not say whether it sampled. scikit-learn's `sample_size`
    # scores a subset within itself: with 1,000 classes nearly every class of a
    # 2,000-row subset has one or two members, and the score tends to 0. Drawn rows
    # scored against all rows estimate the full score without bias, still in time linear
    # in n.
    by_class, counts = _membership(classes)
    sums = _distance_sums(unit, by_class, rows)
    own, own_entries = classes[rows], (classes[rows], np.arange(len(rows)))
    inside = sums[own_entries] / np.maximum(counts[own] - 1, 1)
    outside = sums / counts[:, None]
    outside[own_entries] = np.inf
    nearest = outside.min(axis=0)
    larger = np.maximum(inside, nearest)
    coefficients = np.zeros(len(rows))
    np.divide(
        nearest - inside,
        larger,
        out=coefficients,
        where=(counts[own] > 1) & (larger > 0),
    )
    return coefficients


def _distance_sums(unit: Array, by_class: sparse.csc_array, rows: Indices) -> Array:
    """(n_classes, rows) sums of the Euclidean distances from each of the rows to all
    members of each class.
    """
    sums = np.zeros((by_class.shape[0], len(rows)))
    opposite = -2.0 * unit[rows].T
    for block in _blocks(len(unit), len(rows)):
        squared = unit[block] @ opposite
        squared += 2.0
        # Equal rows, each row and itself among them, are at distance 0, not at the
        # square root of a rounding error.
        squared[squared < _ROUNDING] = 0.0
        sums += by_class[:, block] @ np.sqrt(squared, out=squared)
    return sums


def _drawn_rows(count: int, limit: int, seed: np.random.SeedSequence) -> Indices:
    """All row numbers, or `limit` of them drawn without replacement, ascending."""
    if count <= limit:
        return np.arange(count)
    return np.sort(np.random.default_rng(seed).choice(count, limit, replace=False))
