"""What one would take for the inverse temperature without a search and without statistics (section 2)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

EPSILON = 1e-3  # Section 2 quotes the bound of Liu, Li and Xu 2017 with a loss of "10e - 4".


def square_root_of_dimension(dim: ArrayLike) -> Any:
    """The square root of the embeddings' length, as in attention; for a number or an array of them."""
    return np.sqrt(dim)


def lower_bound_from_classes(n_classes: Any) -> Any:
    """The least value at which the loss of embeddings in the best possible place falls to EPSILON, and at least 1."""
    return np.maximum(0.5 * np.log((n_classes - 1) / math.expm1(EPSILON)), 1.0)
