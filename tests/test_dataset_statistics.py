"""The 23 statistics equal slow and hand-worked computations, for rows in any order."""

from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats
from sklearn.decomposition import PCA
from sklearn.metrics import (
    calinski_harabasz_score,
    davies_bouldin_score,
    silhouette_samples,
    silhouette_score,
)
from torch import Tensor

from softmax_temperature.dataset_statistics import (
    NORMALITY_ROWS,
    SILHOUETTE_ROWS,
    STATISTICS,
    describe,
)

Array = NDArray[np.float64]

OF_DIMENSIONS = ("feats_corr", "feats_cos_sim", "avg_kurtosis", "avg_normality")
DRAWN = {"avg_normality", "silhouette"}
PCA_NAMES = [name for name in STATISTICS if name.startswith("pca_")]


def clustered(
    samples: int, dim: int, n_classes: int, *, seed: int = 0
) -> tuple[Tensor, Tensor]:
    """Skewed clusters of unequal size in float32, and labels; no class is empty."""
    generator = torch.Generator().manual_seed(seed)
    sizes = torch.rand(n_classes, generator=generator) + 0.2
    drawn = torch.multinomial(
        sizes, samples - n_classes, replacement=True, generator=generator
    )
    labels = torch.cat([torch.arange(n_classes), drawn])
    centres = torch.randn(n_classes, dim, generator=generator)
    noise = torch.randn(samples, dim, generator=generator)
    return torch.exp(0.5 * (centres[labels] + noise)) - 0.3, labels


def shuffled(embeddings: Tensor, labels: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(seed))
    return embeddings[order], labels[order]


def unit_rows(embeddings: Tensor) -> Array:
    raw = embeddings.double().numpy()
    return np.stack([row / np.sqrt(sum(value * value for value in row)) for row in raw])


def intra_class_trace(unit: Array, labels: NDArray[np.int64]) -> float:
    matrices = [
        np.cov(unit[labels == label].T, bias=True) for label in np.unique(labels)
    ]
    return float(np.trace(np.mean(matrices, axis=0)))


def inter_class_trace(unit: Array, labels: NDArray[np.int64]) -> float:
    offsets = [
        unit[labels == label].mean(axis=0) - unit.mean(axis=0)
        for label in np.unique(labels)
    ]
    return float(
        np.trace(np.mean([np.outer(offset, offset) for offset in offsets], axis=0))
    )


def correlation_error(unit: Array) -> float:
    dim = unit.shape[1]
    entries = [
        (stats.pearsonr(unit[:, i], unit[:, j]).statistic - (i == j)) ** 2
        for i in range(dim)
        for j in range(dim)
    ]
    return float(np.mean(entries))


def mean_pair_cosine(unit: Array) -> float:
    pairs = combinations(unit.T, 2)
    return float(
        np.mean([a @ b / (np.linalg.norm(a) * np.linalg.norm(b)) for a, b in pairs])
    )


def explained_share(unit: Array, percentage: int) -> float:
    ratios = PCA(svd_solver="full").fit(unit).explained_variance_ratio_
    total = 0.0
    needed = 0
    while total < percentage / 100:
        total += ratios[needed]
        needed += 1
    return float(needed / unit.shape[1])


def expected(embeddings: Tensor, labels: Tensor) -> dict[str, float]:
    """The 23 statistics from plain expressions, with every library option given."""
    raw = embeddings.double().numpy()
    unit = unit_rows(embeddings)
    classes = labels.numpy()
    n_classes = len(set(classes.tolist()))
    return {
        "dim": raw.shape[1],
        "n_classes": n_classes,
        "mean": np.mean(unit),
        "var": np.var(unit, ddof=0),
        "sb_trace": intra_class_trace(unit, classes),
        "sw_trace": inter_class_trace(unit, classes),
        "feats_corr": correlation_error(unit),
        "feats_cos_sim": mean_pair_cosine(unit),
        "n_samples": len(raw),
        "avg_samp_class": len(raw) / n_classes,
        **{
            name: explained_share(unit, int(name.removeprefix("pca_")))
            for name in PCA_NAMES
        },
        "train_mean": np.mean(raw),
        "train_std": np.std(raw, ddof=0),
        "avg_kurtosis": np.mean(
            [stats.kurtosis(column, fisher=True, bias=True) for column in unit.T]
        ),
        "avg_normality": np.mean(
            [stats.shapiro(column).statistic for column in unit.T]
        ),
        "silhouette": silhouette_score(unit, classes, metric="euclidean"),
        "calinski_harabasz": calinski_harabasz_score(unit, classes),
        "david_bouldin": davies_bouldin_score(unit, classes),
    }


@pytest.mark.parametrize(
    ("samples", "dim", "n_classes"),
    # The cases are: more samples than dimensions, more dimensions than samples, many
    # small classes, two dimensions.
    [(400, 12, 5), (25, 40, 4), (90, 6, 40), (30, 2, 2)],
)
def test_every_statistic_equals_its_naive_computation(
    samples: int, dim: int, n_classes: int
) -> None:
    embeddings, labels = clustered(samples, dim, n_classes)
    described = describe(embeddings, labels)
    assert tuple(described) == STATISTICS
    assert described == pytest.approx(expected(embeddings, labels), rel=1e-9, abs=1e-9)


def test_two_collapsed_classes_by_hand() -> None:
    # After normalisation, the rows are e1, e1, e2, e2.
    embeddings = torch.tensor([[2.0, 0.0], [3.0, 0.0], [0.0, 1.0], [0.0, 5.0]])
    described = describe(embeddings, torch.tensor([4, 4, 9, 9]))
    by_hand = {
        "mean": 0.5,
        "var": 0.25,
        "train_mean": 11 / 8,
        "avg_samp_class": 2,
        "silhouette": 1,
        "david_bouldin": 0,
        # The class means differ from the centre by (1/2, -1/2) and by the opposite
        # vector.
        "sb_trace": 0,
        "sw_trace": 0.5,
        # Two of the four entries of R - I are -1.
        "feats_corr": 0.5,
        "feats_cos_sim": 0,
        # In each dimension two values are equally frequent, so the excess kurtosis is
        # -2.
        "avg_kurtosis": -2,
        # scikit-learn returns 1 if the classes have no spread.
        "calinski_harabasz": 1,
        # One direction explains all the variance.
        **dict.fromkeys(PCA_NAMES, 0.5),
    }
    assert {name: described[name] for name in by_hand} == pytest.approx(
        by_hand, abs=1e-12
    )


@pytest.mark.parametrize("seed", range(5))
def test_components_that_explain_exactly_a_percentage(seed: int) -> None:
    # Forty points lie on twenty randomly rotated axes, so every axis explains a
    # twentieth, up to rounding.
    axes = torch.linalg.qr(
        torch.randn(
            20, 20, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
        )
    ).Q
    described = describe(torch.cat([axes, -axes]), torch.arange(40) % 4)
    assert [described[name] for name in PCA_NAMES] == [0.5, 0.75, 0.8, 0.9, 0.95, 1.0]
    assert described["feats_corr"] == pytest.approx(0.0, abs=1e-15)


@settings(max_examples=25, deadline=None)
@given(st.integers(3, 12), st.integers(1, 4), st.integers(0, 2**16))
def test_order_of_rows_never_matters(samples: int, dim: int, seed: int) -> None:
    # Small integers give equal rows, signed zeros and constant columns.
    generator = torch.Generator().manual_seed(seed)
    embeddings = torch.randint(-1, 2, (samples, dim), generator=generator).double()
    embeddings[:, 0] = torch.where(embeddings[:, 0] == 0, 2.0, embeddings[:, 0])
    negative = torch.rand(embeddings.shape, generator=generator) < 0.5
    embeddings = torch.where((embeddings == 0) & negative, -0.0, embeddings)
    labels = torch.cat(
        [
            torch.tensor([0, 0, 1]),
            torch.randint(0, 3, (samples - 3,), generator=generator),
        ]
    )
    described = describe(embeddings, labels)
    assert all(np.isfinite(value) for value in described.values())
    assert described == describe(*shuffled(embeddings, labels, seed))


@pytest.mark.parametrize("size", [0.0, 1e-25, 1e-35])
def test_a_dead_unit_changes_only_statistics_that_count_dimensions(size: float) -> None:
    embeddings, labels = clustered(200, 7, 4)
    described = describe(embeddings, labels)
    padded = describe(torch.cat([embeddings, size * torch.rand(200, 1)], dim=1), labels)
    for name in (
        *OF_DIMENSIONS,
        "sb_trace",
        "sw_trace",
        "silhouette",
        "calinski_harabasz",
        "david_bouldin",
    ):
        assert padded[name] == pytest.approx(described[name], rel=1e-12), name
    for name in PCA_NAMES:
        assert padded[name] == pytest.approx(described[name] * 7 / 8, rel=1e-12)
    assert padded["dim"] == 8.0


@pytest.mark.parametrize("dim", [1, 3])
def test_statistics_of_identical_rows_are_finite(dim: int) -> None:
    described = describe(torch.full((6, dim), 2.5), torch.tensor([0, 0, 0, 1, 1, 1]))
    assert [described[name] for name in OF_DIMENSIONS] == [0.0, 0.0, 0.0, 1.0]
    assert {described[name] for name in PCA_NAMES} == {0.0}
    assert described["silhouette"] == 0.0
    assert described["sb_trace"] == pytest.approx(0.0, abs=1e-15)
    assert all(np.isfinite(value) for value in described.values())


def test_the_seed_only_draws_rows() -> None:
    small = clustered(300, 4, 3)
    assert describe(*small, seed=0) == describe(*small, seed=1)
    large = clustered(NORMALITY_ROWS + 1_000, 4, 3)
    first = describe(*large, seed=3)
    assert describe(*large, seed=3) == first
    reseeded = describe(*large, seed=4)
    assert {name for name in STATISTICS if first[name] != reseeded[name]} == DRAWN


def test_drawn_silhouettes_estimate_the_full_score_with_many_classes() -> None:
    # There are five rows per class. A silhouette that compared only a sample of the
    # rows with each other would be far off, because most classes would have one or two
    # rows in the sample.
    embeddings, labels = clustered(3_000, 6, 600)
    every = silhouette_samples(unit_rows(embeddings), labels.numpy())
    drawn = [describe(embeddings, labels, seed=seed)["silhouette"] for seed in range(3)]
    spread = every.std() * np.sqrt((1 - SILHOUETTE_ROWS / 3_000) / SILHOUETTE_ROWS)
    assert all(abs(value - every.mean()) < 4 * spread for value in drawn)


def test_bad_input_is_refused_by_name() -> None:
    embeddings, labels = clustered(10, 3, 2)
    zero_row = embeddings * (torch.arange(10) != 1)[:, None]
    for rows, classes, seed, message in (
        (
            embeddings / 0,
            labels,
            0,
            "embeddings must be finite and not all zeros, but row 0 holds NaN",
        ),
        (
            zero_row,
            labels,
            0,
            "embeddings must be finite and not all zeros, but row 1 is all zeros",
        ),
        (embeddings[0], labels, 0, r"embeddings must be .* \(3,\)"),
        (
            embeddings[:9],
            labels,
            0,
            r"labels must have shape \(9,\) like the embeddings, got \(10,\)",
        ),
        (
            embeddings,
            labels * 0,
            0,
            "labels must hold at least two classes.* got 1 classes in 10 samples",
        ),
        (embeddings, labels - 1, 0, "labels must not be negative, got -1"),
        (embeddings, labels + 0.5, 0, r"labels must be int64, got torch\.float32"),
        (embeddings, labels, -1, "seed must be an integer of at least 0, got -1"),
    ):
        with pytest.raises(ValueError, match=message):
            describe(rows, classes, seed=seed)
