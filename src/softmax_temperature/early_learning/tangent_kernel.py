"""The logits of fixed samples as a function of a parameter vector, products with its
Jacobian, and Θ = J Jᵀ.
"""

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from softmax_temperature.early_learning.pair import BATCH_NORMS


class FlatNetwork:
    """z(θ) of fixed inputs (n, ...), in float64 and evaluation mode; J is its Jacobian.

    `start` (p,) are the parameters that the network came with, `shape` is (n, classes).
    Parameters and directions are vectors (p,), weights of logits are (n, classes). The
    logits of the parameters `frozen`, by name, are subtracted (see `CorrelatedPair`).
    `chunk` samples at a time bound the memory of activations.
    """

    def __init__(
        self,
        network: nn.Module,
        inputs: Tensor,
        *,
        frozen: Mapping[str, Tensor] | None = None,
        chunk: int = 256,
    ) -> None:
        refuse_batch_norm(network)
        self._network = (
            copy.deepcopy(network).double().eval().requires_grad_(requires_grad=False)
        )
        self._shapes = {
            name: value.shape for name, value in self._network.named_parameters()
        }
        self.start = torch.cat(
            [value.flatten() for value in self._network.parameters()]
        )
        self._inputs, self._chunk = inputs.to(self.start), chunk
        self._baseline = torch.zeros(len(inputs), 1).to(self.start)
        if frozen is not None:
            # By the same operations, so that equal parameters give a difference of
            # exactly 0.
            self._baseline = self.logits(
                torch.cat([frozen[name].flatten() for name in self._shapes]).to(
                    self.start
                )
            )
        self.shape = self.logits(self.start).shape

    @torch.no_grad()
    def logits(self, parameters: Tensor) -> Tensor:
        """z, (n, classes) float64."""
        return torch.cat([self._of(rows)(parameters) for rows in self._chunks()])

    def pull_back(self, parameters: Tensor, weights: Tensor) -> Tensor:
        """Jᵀ v, (p,)."""
        return self.descend(parameters, lambda _, rows: weights[rows])

    def kernel_product(self, parameters: Tensor, weights: Tensor) -> Tensor:
        """Θ v = J Jᵀ v, (n, classes); no kernel is formed."""
        move = ((parameters,), (self.pull_back(parameters, weights),))
        with warnings.catch_warnings():
            # At its first use, torch loads forward derivatives through a compiler of
            # its own that it calls deprecated.
            warnings.filterwarnings(
                "ignore",
                message=".*torch.jit.script. is deprecated",
                category=FutureWarning,
            )
            return torch.cat(
                [torch.func.jvp(self._of(rows), *move)[1] for rows in self._chunks()]
            )

    def descend(
        self, parameters: Tensor, weigh: Callable[[Tensor, slice], Tensor]
    ) -> Tensor:
        """Jᵀ v, (p,), for a v that `weigh` makes of the logits z of some rows."""
        leaf, total = parameters.detach().requires_grad_(), torch.zeros_like(parameters)
        for rows in self._chunks():
            # Plain autograd: the same as torch.func.vjp, in half its time for small
            # networks.
            logits = self._of(rows)(leaf)
            total += torch.autograd.grad(logits, leaf, weigh(logits.detach(), rows))[0]
        return total

    def kernel(self, parameters: Tensor) -> Tensor:
        """Θ whole, (n classes, n classes), for small problems; logits are counted
        sample by sample.
        """
        of_one = torch.func.jacrev(
            lambda vector, sample: self._call(vector, sample[None])[0]
        )
        of_all = torch.func.vmap(of_one, in_dims=(None, 0))
        jacobian = torch.cat(
            [of_all(parameters, self._inputs[rows]) for rows in self._chunks()]
        ).flatten(0, 1)
        return jacobian @ jacobian.T

    def _chunks(self) -> Iterator[slice]:
        return (
            slice(first, first + self._chunk)
            for first in range(0, len(self._inputs), self._chunk)
        )

    def _of(self, rows: slice) -> Callable[[Tensor], Tensor]:
        return lambda vector: (
            self._call(vector, self._inputs[rows]) - self._baseline[rows]
        )

    def _call(self, vector: Tensor, inputs: Tensor) -> Tensor:
        parts = vector.split([shape.numel() for shape in self._shapes.values()])
        named = {
            name: part.view(shape)
            for part, (name, shape) in zip(parts, self._shapes.items(), strict=True)
        }
        logits: Tensor = torch.func.functional_call(self._network, named, (inputs,))
        return logits


def refuse_batch_norm(network: nn.Module) -> None:
    """Refuse a network in which one sample's logits depend on the others, or on
    estimates that a start has not.
    """
    for name, module in network.named_modules():
        if isinstance(module, BATCH_NORMS):
            found = f"{type(module).__name__} at {name!r}: it couples samples"
            raise ValueError(f"network must not have batch normalisation, got {found}")  # noqa: TRY004


class Estimate(NamedTuple):
    """A number and its standard error, which is 0 where the kernel is whole."""

    value: float
    standard_error: float


class KernelSketch:
    """Θ at any parameters, as the columns Θ g_i for probes g_i that stay the same.

    With standard normal probes, the mean of ||A g||² over them is an unbiased estimate
    of the squared Frobenius norm of any symmetric A, here Θ or a difference of two; its
    standard error comes from the spread over at least two probes. Without probes the
    kernel is whole, and takes (n classes)² numbers.
    """

    def __init__(
        self, network: FlatNetwork, *, probes: int | None, seed: int = 0
    ) -> None:
        self._network, self._probes = network, None
        if probes is not None:
            generator = torch.Generator().manual_seed(seed)
            drawn = torch.randn(
                probes, *network.shape, generator=generator, dtype=torch.float64
            )
            self._probes = drawn.to(network.start)

    def at(self, parameters: Tensor) -> Tensor:
        """Θ g_i at parameters (p,), one row for each probe: (probes, n classes)
        float64.
        """
        if self._probes is None:
            return self._network.kernel(parameters)
        return torch.stack(
            [
                self._network.kernel_product(parameters, one).flatten()
                for one in self._probes
            ]
        )

    def norm(self, kernel: Tensor) -> Estimate:
        """Frobenius norm of what `at` returned."""
        squares = kernel.square().sum(dim=1)
        if self._probes is None:
            return Estimate(squares.sum().sqrt().item(), 0.0)
        value, relative = (
            squares.mean().sqrt(),
            squares.std() / squares.mean() / len(squares) ** 0.5 / 2,
        )
        return Estimate(value.item(), (value * relative).item())

    def drift(self, kernel: Tensor, reference: Tensor) -> Estimate:
        """||Θ - Θ_0||_F / ||Θ_0||_F of what `at` returned at two places; the error is
        that of a ratio (delta).
        """
        above, below = (
            (kernel - reference).square().sum(dim=1),
            reference.square().sum(dim=1),
        )
        value = (above.sum() / below.sum()).sqrt()
        if self._probes is None or not above.any():
            return Estimate(value.item(), 0.0)
        relative = (
            (above / above.mean() - below / below.mean()).std() / len(above) ** 0.5 / 2
        )
        return Estimate(value.item(), (value * relative).item())
