"""The tangent kernel Θ = J Jᵀ: whole for small problems, otherwise what it does to random probes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from softmax_temperature.metrics.checks import check_count

if TYPE_CHECKING:
    from torch import Tensor

    from softmax_temperature.early_learning.flat_network import FlatNetwork


@dataclass(frozen=True)
class Estimate:
    """A number and its standard error, which is 0 where the kernel is whole."""

    value: float
    standard_error: float


class KernelSketch:
    """Θ at any parameters, as the columns Θ g_i for probes g_i that stay the same.

    With probes from the standard normal distribution, the mean of ||A g||² over them is an unbiased estimate of the
    squared Frobenius norm of any symmetric A, here Θ or a difference of two. Its relative standard deviation is
    sqrt(2 / (probes r)) with r = tr(A²)² / tr(A⁴), which lies between 1 (one direction is all of A) and the rank of A;
    that of the norm itself is half as large. Norms and drifts come with the standard error that the spread over the
    probes gives.

    Args:
        network: whose kernel; (n, classes) logits.
        probes: how many, at least 2; None for the whole kernel, whose columns are those of the unit vectors: (n
            classes)² numbers, and the Jacobian of (n, classes, parameters) while it is made.
        seed: of the probes.

    Raises:
        ValueError: `probes` is below 2.
    """

    def __init__(self, network: FlatNetwork, *, probes: int | None, seed: int = 0) -> None:
        self._network, self._probes = network, None
        if probes is not None:
            check_count(probes, "probes", least=2)
            generator = torch.Generator().manual_seed(seed)
            drawn = torch.randn(probes, *network.shape, generator=generator, dtype=torch.float64)
            self._probes = drawn.to(network.start)

    def at(self, parameters: Tensor) -> Tensor:
        """Θ g_i at parameters (p,), one row for each probe: (probes, n classes) float64."""
        if self._probes is None:
            return full_kernel(self._network, parameters)
        return torch.stack([self._network.kernel_product(parameters, one).flatten() for one in self._probes])

    def norm(self, kernel: Tensor) -> Estimate:
        """Frobenius norm of what `at` returned."""
        squares = kernel.square().sum(dim=1)
        if self._probes is None:
            return Estimate(squares.sum().sqrt().item(), 0.0)
        mean = squares.mean()
        relative = squares.std() / mean / len(squares) ** 0.5 / 2
        return Estimate(mean.sqrt().item(), (mean.sqrt() * relative).item())

    def drift(self, kernel: Tensor, reference: Tensor) -> Estimate:
        """||Θ - Θ_0||_F / ||Θ_0||_F of what `at` returned at two places.

        Above and below the line stand the same probes: their common error cancels to first order, and the standard
        error is that of the ratio (delta method).
        """
        above, below = (kernel - reference).square().sum(dim=1), reference.square().sum(dim=1)
        value = (above.sum() / below.sum()).sqrt()
        if self._probes is None or not above.any():
            return Estimate(value.item(), 0.0)
        relative = (above / above.mean() - below / below.mean()).std() / len(above) ** 0.5 / 2
        return Estimate(value.item(), (value * relative).item())


def full_kernel(network: FlatNetwork, parameters: Tensor) -> Tensor:
    """Θ at parameters (p,), (n classes, n classes) float64; logits are counted sample by sample."""
    jacobian = network.jacobian(parameters).flatten(0, 1)
    return jacobian @ jacobian.T
