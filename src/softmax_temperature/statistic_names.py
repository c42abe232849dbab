"""The names of the 23 statistics of embeddings that `dataset_statistics` defines and computes.

Apart from them, so that tables and figures of the statistics need neither torch nor scikit-learn.
"""

from __future__ import annotations

from typing import Final

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
