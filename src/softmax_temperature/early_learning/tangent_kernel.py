"""Logits as a function of a parameter vector, Jacobian products, and Θ = J Jᵀ."""

import copy
import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from softmax_temperature.early_learning.pair import BATCH_NORMS


class FlatNetwork:
    """Computes z(θ) for fixed inputs, and products with its Jacobian J.

    The network is in float64 and evaluation mode. Parameters, and directions in their
    space, are vectors of shape (p,); weights of logits have shape (n, classes).

    Args:
        network: The network, which is copied and not changed.
        inputs: Samples, shape (n, ...).
        frozen: The parameters of a pair's frozen network, keyed by name. The logits of
            that network are subtracted; see `CorrelatedPair`.
        chunk: Samples per forward pass, which bounds the memory of activations.

    Attributes:
        start: Parameters of `network`, shape (p,).
        shape: (n, classes).
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
        self._network = copy.deepcopy(network).double().eval()
        self._network.requires_grad_(requires_grad=False)
        parameters = dict(self._network.named_parameters())
        self._shapes = {name: value.shape for name, value in parameters.items()}
        self.start = torch.cat([value.flatten() for value in parameters.values()])
        self._inputs = inputs.to(self.start)
        self._chunk = chunk
        self._baseline = torch.zeros(len(inputs), 1).to(self.start)
        if frozen is not None:
            # Apply the same operations as for the trained network, so that equal
            # parameters give a difference of exactly 0.
            vector = torch.cat([frozen[name].flatten() for name in self._shapes])
            self._baseline = self.logits(vector.to(self.start))
        self.shape = self.logits(self.start).shape

    @torch.no_grad()
    def logits(self, parameters: Tensor) -> Tensor:
        """Compute z as a float64 tensor of shape (n, classes)."""
        chunks = [self._logits_of(rows)(parameters) for rows in self._chunks()]
        return torch.cat(chunks)

    def pull_back(self, parameters: Tensor, weights: Tensor) -> Tensor:
        """Compute Jᵀ v for weights v of logits, shape (p,)."""
        return self.descend(parameters, lambda _, rows: weights[rows])

    def kernel_product(self, parameters: Tensor, weights: Tensor) -> Tensor:
        """Compute Θ v = J Jᵀ v, shape (n, classes), without forming the kernel."""
        direction = self.pull_back(parameters, weights)
        products = []
        with warnings.catch_warnings():
            # On first use, torch loads forward derivatives through torch.jit, and warns
            # that torch.jit is deprecated.
            warnings.filterwarnings(
                "ignore",
                message=".*torch.jit.script. is deprecated",
                category=FutureWarning,
            )
            for rows in self._chunks():
                outputs = torch.func.jvp(
                    self._logits_of(rows), (parameters,), (direction,)
                )
                products.append(outputs[1])
        return torch.cat(products)

    def descend(
        self, parameters: Tensor, weigh: Callable[[Tensor, slice], Tensor]
    ) -> Tensor:
        """Compute Jᵀ v, shape (p,), for weights v that depend on the logits.

        Args:
            parameters: The point at which J is evaluated, shape (p,).
            weigh: Function that maps the logits of some samples, and the slice of these
                samples, to the weights of the logits.
        """
        leaf = parameters.detach().requires_grad_()
        total = torch.zeros_like(parameters)
        for rows in self._chunks():
            # Plain autograd gives the result of torch.func.vjp and takes half the time
            # for small networks.
            logits = self._logits_of(rows)(leaf)
            weights = weigh(logits.detach(), rows)
            total += torch.autograd.grad(logits, leaf, weights)[0]
        return total

    def kernel(self, parameters: Tensor) -> Tensor:
        """Compute the whole Θ, shape (n * classes, n * classes), for small problems.

        The classes of one sample are consecutive.
        """

        def logits_of_sample(vector: Tensor, sample: Tensor) -> Tensor:
            return self._call(vector, sample[None])[0]

        jacobian_of_sample = torch.func.jacrev(logits_of_sample)
        jacobian_of_chunk = torch.func.vmap(jacobian_of_sample, in_dims=(None, 0))
        chunks = [
            jacobian_of_chunk(parameters, self._inputs[rows]) for rows in self._chunks()
        ]
        jacobian = torch.cat(chunks).flatten(0, 1)
        return jacobian @ jacobian.T

    def _chunks(self) -> Iterator[slice]:
        for first in range(0, len(self._inputs), self._chunk):
            yield slice(first, first + self._chunk)

    def _logits_of(self, rows: slice) -> Callable[[Tensor], Tensor]:
        """Build the function from parameters to the logits of the samples `rows`."""

        def logits(vector: Tensor) -> Tensor:
            return self._call(vector, self._inputs[rows]) - self._baseline[rows]

        return logits

    def _call(self, vector: Tensor, inputs: Tensor) -> Tensor:
        sizes = [shape.numel() for shape in self._shapes.values()]
        parts = zip(self._shapes.items(), vector.split(sizes), strict=True)
        parameters = {name: part.view(shape) for (name, shape), part in parts}
        logits: Tensor = torch.func.functional_call(
            self._network, parameters, (inputs,)
        )
        return logits


def refuse_batch_norm(network: nn.Module) -> None:
    """Raise ValueError if the network has batch normalisation.

    Batch normalisation would make the logits of one sample depend on the other samples,
    or on running estimates that an untrained network does not have.
    """
    for name, module in network.named_modules():
        if isinstance(module, BATCH_NORMS):
            kind = type(module).__name__
            raise ValueError(  # noqa: TRY004 - the value is wrong, not its type.
                "network must not have batch normalisation, which couples samples, got "
                f"{kind} at {name!r}"
            )


class Estimate(NamedTuple):
    """A number and its standard error, which is 0 for a whole kernel."""

    value: float
    standard_error: float


class KernelSketch:
    """Sketches Θ, at any parameters, by its products Θ g_i with fixed probes g_i.

    For standard normal probes, the mean of ||A g||² over the probes is an unbiased
    estimate of the squared Frobenius norm of any symmetric A: Θ, or a difference of two
    kernels. The spread over at least two probes gives the standard error of that
    estimate. Without probes, the whole kernel of (n * classes)² numbers is computed.

    Args:
        network: The network and its samples.
        probes: Number of probes. If None, the whole kernel is computed.
        seed: Seed of the probes.
    """

    def __init__(
        self, network: FlatNetwork, *, probes: int | None, seed: int = 0
    ) -> None:
        self._network = network
        self._probes = None
        if probes is not None:
            generator = torch.Generator().manual_seed(seed)
            drawn = torch.randn(
                probes, *network.shape, generator=generator, dtype=torch.float64
            )
            self._probes = drawn.to(network.start)

    def at(self, parameters: Tensor) -> Tensor:
        """Compute all Θ g_i at `parameters`.

        The result is a float64 tensor of shape (probes, n * classes). Without probes,
        it is the whole kernel.
        """
        if self._probes is None:
            return self._network.kernel(parameters)
        columns = [
            self._network.kernel_product(parameters, probe).flatten()
            for probe in self._probes
        ]
        return torch.stack(columns)

    def norm(self, kernel: Tensor) -> Estimate:
        """Estimate the Frobenius norm of `kernel`, which `at` returned."""
        squares = kernel.square().sum(dim=1)
        if self._probes is None:
            return Estimate(squares.sum().sqrt().item(), 0.0)
        value = squares.mean().sqrt()
        # The relative error of a square root is half the relative error of its
        # argument.
        relative_error = squares.std() / squares.mean() / len(squares) ** 0.5 / 2
        return Estimate(value.item(), (value * relative_error).item())

    def drift(self, kernel: Tensor, reference: Tensor) -> Estimate:
        """Estimate ||Θ - Θ_0||_F / ||Θ_0||_F from two kernels that `at` returned.

        The delta method for a ratio gives the standard error.
        """
        numerator = (kernel - reference).square().sum(dim=1)
        denominator = reference.square().sum(dim=1)
        value = (numerator.sum() / denominator.sum()).sqrt()
        if self._probes is None or not numerator.any():
            return Estimate(value.item(), 0.0)
        deviations = numerator / numerator.mean() - denominator / denominator.mean()
        relative_error = deviations.std() / len(numerator) ** 0.5 / 2
        return Estimate(value.item(), (value * relative_error).item())
