"""Temperature scaling as an estimator in the manner of scikit-learn, for arrays and
tensors.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from softmax_temperature.metrics.checks import ArgumentError, check_one_tensor
from softmax_temperature.metrics.probability_check import (
    FEW_ROWS,
    NO_SOFTMAX,
    check_no_softmax_at_end,
    check_not_probs,
)
from softmax_temperature.scaling import fit_temperature
from softmax_temperature.tools.arrays import checked_logits


# scikit-learn ships no annotations.
class TemperatureScaler(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Temperature scaling: fit on held-out logits, then divide logits by `temperature_`
    (focal paper, section 5).

    Arrays give arrays and tensors give tensors, in their dtype and on their device.

    Args:
        criterion: "nll" minimises the negative log-likelihood; "ece" the calibration
            error, over 0.1, 0.2, ..., 10.
        bins: Of the calibration error.

    Attributes:
        temperature_: Divides logits.
        at_bound_: No temperature fits: the logits separate the labels, or say nothing
            about them. `temperature_` is then 1, and `fit` warns.

    Examples:
        >>> from softmax_temperature import sample_logits
        >>> logits, labels = sample_logits()
        >>> scaler = TemperatureScaler().fit(logits[:700], labels[:700])
        >>> round(scaler.temperature_, 2)
        2.73
        >>> scaler.predict_proba(logits[700:]).shape
        (800, 10)
    """

    def __init__(self, *, criterion: str = "nll", bins: int = 15) -> None:
        self.criterion = criterion
        self.bins = bins

    def fit(self, X: Any, y: Any) -> Self:  # noqa: N803 - scikit-learn's names
        """Find the temperature.

        Args:
            X: Held-out logits, shape (n, classes); or (n, 1), the logit of class 1 of
                two.
            y: Classes, shape (n,), whole numbers; or one-hot.

        Raises:
            ValueError: If an argument is not as stated.
        """
        _check_two_dimensions(X)
        if not isinstance(X, Tensor):
            X, y = validate_data(  # noqa: N806
                self, X, y, dtype=[np.float64, np.float32], multi_output=True
            )
            check_classification_targets(y)
        self.n_features_in_ = X.shape[1]
        found = fit_temperature(
            *checked_logits(X, y), criterion=self.criterion, bins=self.bins
        )
        self.at_bound_ = found.at_bound
        self.temperature_ = 1.0 if found.at_bound else found.temperature
        if found.at_bound:
            what = f"No temperature fits: the search ended at {found.temperature:g}. Logits are left as they are."
            warnings.warn(what, ConvergenceWarning, stacklevel=2)
        return self

    def transform(self, X: Any) -> Any:  # noqa: N803
        """The logits over the temperature."""
        check_is_fitted(self)
        _check_two_dimensions(X)
        if not isinstance(X, Tensor):
            X = validate_data(self, X, reset=False, dtype=[np.float64, np.float32])  # noqa: N806
        elif X.shape[1:] != (self.n_features_in_,):
            raise ValueError(
                f"X must have shape (n, {self.n_features_in_}), got {tuple(X.shape)}"
            )
        scaled = X / self.temperature_
        # As they were: an array that is read-only makes no tensor without a warning.
        check_not_probs(torch.as_tensor(scaled) * self.temperature_, name="X")
        return scaled

    def predict_proba(self, X: Any) -> Any:  # noqa: N803
        """Calibrated probabilities, shape (n, classes)."""
        logits = torch.as_tensor(scaled := self.transform(X))
        if logits.shape[1] == 1:
            logits = torch.cat([torch.zeros_like(logits), logits], 1)
        probs = torch.softmax(logits, 1)
        return probs if isinstance(scaled, Tensor) else probs.numpy()

    def wrap(self, network: nn.Module) -> TemperatureScaled:
        """A network that returns the logits of this one over the temperature, which is
        part of its `state_dict`.
        """
        check_is_fitted(self)
        if not isinstance(network, nn.Module):
            raise TypeError(
                f"network must be a torch module, got {type(network).__name__}"
            )
        check_no_softmax_at_end(network, "network")
        return TemperatureScaled(network, self.temperature_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.requires_fit = True
        return tags


def _check_two_dimensions(values: Any) -> None:
    """Refuse a tensor that is no table; scikit-learn checks arrays."""
    if isinstance(values, Tensor) and values.ndim != 2:
        raise ArgumentError(
            f"X must have shape (n, classes), got {tuple(values.shape)}",
            "Give the logits of class 1 of two as X[:, None].",
        )


class TemperatureScaled(nn.Module):
    """A network whose logits are divided by a temperature, a scalar buffer; takes what
    the network takes.
    """

    def __init__(self, network: nn.Module, temperature: float = 1.0) -> None:
        super().__init__()
        self.network = network
        self._has_logits = False  # As far as a batch that is large enough shows.
        self.register_buffer("temperature", torch.tensor(float(temperature)))

    def forward(self, *arguments: Any, **options: Any) -> Any:
        """The network's logits over the temperature."""
        logits = self.network(*arguments, **options)
        check_one_tensor(logits, "network", "scaled")
        self._check_first_logits(logits)
        return logits / self.temperature

    def _check_first_logits(self, logits: Tensor) -> None:
        """Refuse a network that returns probabilities, when it is first called."""
        if torch.compiler.is_compiling():
            return
        if not self._has_logits and logits.ndim >= 2:
            rows = logits.movedim(1, -1).flatten(0, -2)
            check_not_probs(rows, name="the network's logits", remedy=NO_SOFTMAX)
            self._has_logits = len(rows) >= FEW_ROWS
