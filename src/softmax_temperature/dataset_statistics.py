"""The 23 statistics of a labelled set of embeddings.

Source: the classifier_temperature paper, section 4.2. The statistics describe the
L2-normalised embeddings, which are the cosine classifier's input (section 3.1). Only
train_mean and train_std describe the raw values. docs/classifier_temperature.md lists
other ways to read the paper.

- dim: Number of dimensions.
- n_classes: Number of distinct labels.
- mean, var: Mean and population variance of all n * dim normalised values.
- train_mean, train_std: Mean and population standard deviation of all n * dim raw
  values.
- sb_trace: Trace of the covariance within a class (population form), averaged over
  classes. The paper calls it the intra-class trace, although `b` usually means between.
- sw_trace: Trace of (m_c - m)(m_c - m)', averaged over classes, where m_c is the mean
  of a class and m the mean of all samples. The paper calls it the inter-class trace.
- feats_corr: Mean squared entry of R - I, where R is the correlation matrix of the
  dimensions and I the identity.
- feats_cos_sim: Mean cosine between the columns of two different dimensions. The
  cosines keep their signs, and the columns are not centred.
- n_samples: Number of rows.
- avg_samp_class: n_samples / n_classes.
- pca_50, pca_75, pca_80, pca_90, pca_95, pca_99: Smallest number of principal
  components that explain at least 50, 75, 80, 90, 95 or 99 % of the variance, divided
  by dim.
- avg_kurtosis: Excess (Fisher) kurtosis, biased form, averaged over dimensions; 0 for a
  normal distribution.
- avg_normality: The Shapiro-Wilk statistic W of at most NORMALITY_ROWS rows, averaged
  over dimensions.
- silhouette: Mean Euclidean silhouette coefficient of at most SILHOUETTE_ROWS rows,
  each compared with all rows.
- calinski_harabasz: The Calinski-Harabasz index, from scikit-learn; 1 if no class has
  any spread.
- david_bouldin: The Davies-Bouldin index, from scikit-learn; the name is the paper's
  spelling.

feats_corr, feats_cos_sim, avg_kurtosis and avg_normality leave out each dimension whose
range is within rounding error or at most 1e-19. If no dimension varies, these four are
0, 0, 0 and 1, and all pca values are 0. If only one dimension varies, feats_corr and
feats_cos_sim are 0. A class of one sample has no spread, and the silhouette of that
sample is 0.
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

STATISTICS: Final = (
    "dim",
    "n_classes",
    "mean",
    "var",
    "sb_trace",
    "sw_trace",
    "feats_corr",
    "feats_cos_sim",
    "n_samples",
    "avg_samp_class",
    "pca_50",
    "pca_75",
    "pca_80",
    "pca_90",
    "pca_95",
    "pca_99",
    "train_mean",
    "train_std",
    "avg_kurtosis",
    "avg_normality",
    "silhouette",
    "calinski_harabasz",
    "david_bouldin",
)
# Silhouettes are computed for at most this many rows, each compared with all rows.
SILHOUETTE_ROWS: Final = 2_000
# Royston's approximation of the Shapiro-Wilk weights is validated up to this number of
# rows; scipy warns beyond it.
NORMALITY_ROWS: Final = 5_000

_EXPLAINED_PERCENTAGES: Final = (50, 75, 80, 90, 95, 99)
# Differences below this fraction of a value are treated as rounding errors. The
# fraction lies between the errors of float64 sums, near 1e-15, and the resolution of
# float32 embeddings, 6e-8.
_ROUNDING: Final = 1e-12
# scipy's Shapiro-Wilk treats a smaller range as zero, and fourth powers of much smaller
# values underflow.
_LEAST_RANGE: Final = 1e-19
# Number of float64 values in one block of rows. A block takes 8 MiB, so temporary
# arrays stay in the processor's cache.
_BLOCK_NUMBERS: Final = 2**20

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


def describe(embeddings: Tensor, labels: Tensor, *, seed: int = 0) -> dict[str, float]:
    """Compute the 23 statistics of section 4.2, in the paper's order.

    This module's docstring defines them. The order of the rows does not change a single
    bit of the result. The function computes on the CPU in float64 and needs memory for
    about two float64 copies of the embeddings.

    Args:
        embeddings: Finite floating-point tensor of shape (n, dim), without a row of
            zeros.
        labels: Nonnegative int64 tensor of shape (n,). It must have at least two
            classes, and at least two samples of one of them.
        seed: Seed for drawing rows. Rows are drawn for `silhouette` if there are more
            than SILHOUETTE_ROWS of them, and for `avg_normality` if there are more than
            NORMALITY_ROWS.

    Raises:
        ValueError: If an argument violates a condition above; the message names the
            argument.
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
    n_classes = len(labels.unique())
    if not 2 <= n_classes < len(labels):
        raise ValueError(
            "labels must hold at least two classes, one of them with two samples, "
            f"got {n_classes} classes in {len(labels)} samples"
        )


def _in_content_order(embeddings: Tensor, labels: Tensor) -> tuple[Array, Indices]:
    """Copy the rows, sort them by content, and number their classes from 0."""
    copied = embeddings.detach().to("cpu", torch.float64, copy=True).contiguous()
    # Rows are sorted by their bytes, so equal numbers must have equal bytes. Adding 0.0
    # turns -0.0, which equals 0.0 but has other bytes, into 0.0.
    rows = copied.add_(0.0).numpy()
    _, classes = np.unique(labels.cpu().numpy(), return_inverse=True)
    row_bytes = np.dtype((np.void, rows.itemsize * rows.shape[1]))
    order = np.argsort(rows.view(row_bytes).ravel())
    rows = rows[order]
    classes = classes[order]
    # Equal rows are now in arbitrary order, so sort their classes within each group of
    # equal rows.
    differs_from_last = (rows[1:] != rows[:-1]).any(axis=1)
    distinct_row = np.append(0, np.cumsum(differs_from_last))
    return rows, classes[np.lexsort((classes, distinct_row))]


def _raw_moments(raw: Array) -> dict[str, float]:
    # Deviation: we compute mean and var from the classifier's input, and train_mean and
    # train_std from the extractor's output. The paper describes mean and train_mean in
    # the same words, and also var and train_std.
    train_std, train_mean = torch.std_mean(torch.from_numpy(raw), correction=0)
    return {"train_mean": float(train_mean), "train_std": float(train_std)}


def _normalised(raw: Array) -> Array:
    """Scale the rows of `raw` to length 1, in place, and return them."""
    lengths = np.sqrt(np.einsum("nd,nd->n", raw, raw))
    raw /= lengths[:, None]
    return raw


def _sizes_and_moments(unit: Array, classes: Indices) -> dict[str, float]:
    samples, dim = unit.shape
    n_classes = classes.max() + 1
    mean = unit.mean()
    return {
        "dim": dim,
        "n_classes": n_classes,
        "n_samples": samples,
        "avg_samp_class": samples / n_classes,
        "mean": mean,
        # The squares of a normalised row sum to 1, so the mean square is 1 / dim.
        "var": 1 / dim - mean**2,
    }


def _membership(classes: Indices) -> tuple[sparse.csc_array, Array]:
    """Return the matrix (n_classes, n) that sums rows by class, and the class sizes."""
    ones = np.ones(len(classes))
    positions = (classes, np.arange(len(classes)))
    counts = np.bincount(classes).astype(np.float64)
    return sparse.csc_array((ones, positions)), counts


def _class_traces(unit: Array, classes: Indices) -> dict[str, float]:
    by_class, counts = _membership(classes)
    means = by_class @ unit / counts[:, None]
    # The mean squared distance of normalised rows from their mean m is 1 - |m|**2.
    within = 1 - np.square(means).sum(axis=1)
    between = np.square(means - unit.mean(axis=0)).sum(axis=1)
    # Deviation: we keep the paper's swapped names, which its Figure 3 also uses:
    # sb_trace is the scatter within classes and sw_trace the scatter between them;
    # elsewhere sb means between and sw within. We read both as averages over classes,
    # in population form.
    return {"sb_trace": within.mean().clip(min=0.0), "sw_trace": between.mean()}


def _varies(columns: Array) -> NDArray[np.bool_]:
    """Whether each column of normalised rows varies by more than rounding errors."""
    low = columns.min(axis=0)
    high = columns.max(axis=0)
    # Normalising the rows may leave rounding errors in a constant column.
    rounding = _ROUNDING * np.maximum(np.abs(low), np.abs(high))
    varies: NDArray[np.bool_] = high - low > np.maximum(rounding, _LEAST_RANGE)
    return varies


def _blocks(rows: int, width: int) -> Iterator[slice]:
    """Yield slices of at most _BLOCK_NUMBERS / `width` rows, but at least one row."""
    step = max(1, _BLOCK_NUMBERS // width)
    for start in range(0, rows, step):
        yield slice(start, start + step)


def _dimension_statistics(
    unit: Array, seed: np.random.SeedSequence
) -> dict[str, float]:
    # Deviation: we leave out dimensions that do not vary; the paper does not say how it
    # treats them.
    varying = np.flatnonzero(_varies(unit))
    if len(varying) == 0:
        shares = {f"pca_{percentage}": 0.0 for percentage in _EXPLAINED_PERCENTAGES}
        return {
            "feats_corr": 0.0,
            "feats_cos_sim": 0.0,
            "avg_kurtosis": 0.0,
            "avg_normality": 1.0,
            **shares,
        }
    covariance, fourth_moments = _central_moments(unit)
    variances = covariance.diagonal()[varying]
    covariance = covariance[np.ix_(varying, varying)]
    correlation = covariance / np.sqrt(np.outer(variances, variances))
    kurtosis = fourth_moments[varying] / variances**2
    return {
        "feats_corr": np.square(correlation - np.eye(len(varying))).mean(),
        "feats_cos_sim": _mean_cosine(unit, varying),
        "avg_kurtosis": np.mean(kurtosis) - 3.0,
        "avg_normality": _mean_normality(unit, seed),
        **_explained_shares(covariance, unit.shape[1]),
    }


def _central_moments(unit: Array) -> tuple[Array, Array]:
    """The population covariance (dim, dim) and fourth central moments (dim,)."""
    samples, dim = unit.shape
    centre = unit.mean(axis=0)
    covariance = np.zeros((dim, dim))
    fourth_moments = np.zeros(dim)
    for block in _blocks(samples, dim):
        offsets = unit[block] - centre
        covariance += offsets.T @ offsets
        squares = np.square(offsets)
        fourth_moments += np.einsum("nd,nd->d", squares, squares)
    return covariance / samples, fourth_moments / samples


def _mean_cosine(unit: Array, varying: Indices) -> float:
    """Mean cosine over all pairs of different columns in `varying`."""
    count = len(varying)
    if count == 1:
        return 0.0
    squared_lengths = np.einsum("nd,nd->d", unit, unit)
    weights = np.zeros(unit.shape[1])
    weights[varying] = 1.0 / np.sqrt(squared_lengths[varying])
    # The squared length of the sum of all columns, each scaled to length 1, counts
    # every pair of columns twice, and each column once with itself.
    resultant = unit @ weights
    return float((resultant @ resultant - count) / (count * (count - 1)))


def _mean_normality(unit: Array, seed: np.random.SeedSequence) -> float:
    # Imported here because the import takes a second and the `plan` command does not
    # need it.
    from scipy.stats import shapiro

    sample = unit[_drawn_rows(len(unit), NORMALITY_ROWS, seed)]
    # Leave out columns that vary over all rows but are constant on the drawn ones.
    sample = sample[:, _varies(sample)]
    if sample.size == 0:
        return 1.0
    return float(np.mean([shapiro(column).statistic for column in sample.T]))


def _explained_shares(covariance: Array, dim: int) -> dict[str, float]:
    variances = np.linalg.eigvalsh(covariance)[::-1].clip(min=0.0)
    explained = np.cumsum(variances) / variances.sum()
    shares: dict[str, float] = {}
    for percentage in _EXPLAINED_PERCENTAGES:
        # If the first components explain exactly the percentage, a rounding error must
        # not add another component.
        threshold = percentage / 100 - _ROUNDING
        count = np.searchsorted(explained, threshold) + 1
        shares[f"pca_{percentage}"] = count / dim
    return shares


def _separation(
    unit: Array, classes: Indices, seed: np.random.SeedSequence
) -> dict[str, float]:
    # Imported here because scikit-learn imports scipy.stats, which takes a second.
    from sklearn.metrics import calinski_harabasz_score, davies_bouldin_score

    rows = _drawn_rows(len(unit), SILHOUETTE_ROWS, seed)
    return {
        "silhouette": _silhouettes(unit, classes, rows).mean(),
        "calinski_harabasz": calinski_harabasz_score(unit, classes),
        "david_bouldin": davies_bouldin_score(unit, classes),
    }


def _silhouettes(unit: Array, classes: Indices, rows: Indices) -> Array:
    """Compute the silhouette coefficients of `rows`, each compared with all rows.

    The coefficients equal those of scikit-learn's `silhouette_samples`.
    """
    # Deviation: we score a random sample of the rows against all rows, which estimates
    # the full score without bias in time linear in n. The paper does not say whether it
    # scored a sample. With `sample_size`, scikit-learn compares the sampled rows only
    # with each other: with 1,000 classes, most classes in a sample of 2,000 rows have
    # one or two members, which biases the score downwards.
    by_class, counts = _membership(classes)
    sums = _distance_sums(unit, by_class, rows)
    own_class = classes[rows]
    own_entries = (own_class, np.arange(len(rows)))
    inside = sums[own_entries] / np.maximum(counts[own_class] - 1, 1)
    outside = sums / counts[:, None]
    outside[own_entries] = np.inf
    nearest = outside.min(axis=0)
    larger = np.maximum(inside, nearest)
    defined = (counts[own_class] > 1) & (larger > 0)
    coefficients = np.zeros(len(rows))
    np.divide(nearest - inside, larger, out=coefficients, where=defined)
    return coefficients


def _distance_sums(unit: Array, by_class: sparse.csc_array, rows: Indices) -> Array:
    """Sum the distances from each of `rows` to the members of each class.

    The result has shape (n_classes, rows).
    """
    sums = np.zeros((by_class.shape[0], len(rows)))
    opposite = -2.0 * unit[rows].T
    for block in _blocks(len(unit), len(rows)):
        squared = unit[block] @ opposite
        squared += 2.0
        # Set the distance between equal rows, for instance from a row to itself, to 0;
        # otherwise it would be the square root of a rounding error.
        squared[squared < _ROUNDING] = 0.0
        sums += by_class[:, block] @ np.sqrt(squared, out=squared)
    return sums


def _drawn_rows(count: int, limit: int, seed: np.random.SeedSequence) -> Indices:
    """Return all row indices below `count`, or `limit` random ones, ascending."""
    if count <= limit:
        return np.arange(count)
    drawn = np.random.default_rng(seed).choice(count, limit, replace=False)
    return np.sort(drawn)
