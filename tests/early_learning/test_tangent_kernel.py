import copy
import math

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev

from softmax_temperature.early_learning.pair import CorrelatedPair, frozen_parameters
from softmax_temperature.early_learning.tangent_kernel import FlatNetwork, KernelSketch

from .conftest import make_network

EVERY = pytest.mark.parametrize(
    "name", ["mlp", "mlp-relu", "convnet", "vgg", "wide-resnet"]
)


def jacobian(network: nn.Module, images: Tensor) -> Tensor:
    """The Jacobian of shape (n, classes, p), computed by torch for each parameter
    tensor.
    """
    twin = copy.deepcopy(network).double().eval()
    parameters = {name: value.detach() for name, value in twin.named_parameters()}
    parts = jacrev(lambda values: functional_call(twin, values, (images,)))(parameters)
    return torch.cat([part.flatten(2) for part in parts.values()], dim=2)


@EVERY
@pytest.mark.parametrize("chunk", [1, 4, 100])
def test_products_equal_those_of_the_jacobian(
    images: Tensor, name: str, chunk: int
) -> None:
    flat = FlatNetwork(make_network(name), images, chunk=chunk)
    expected = jacobian(make_network(name), images)
    generator = torch.Generator().manual_seed(0)
    weights = torch.randn(flat.shape, generator=generator, dtype=torch.float64)
    pulled = torch.einsum("nkp,nk->p", expected, weights)
    torch.testing.assert_close(flat.pull_back(flat.start, weights), pulled)
    torch.testing.assert_close(
        flat.kernel_product(flat.start, weights), expected @ pulled
    )
    kernel = torch.einsum("nkp,mlp->nkml", expected, expected)
    torch.testing.assert_close(flat.kernel(flat.start), kernel.flatten(2).flatten(0, 1))
    descended = flat.descend(
        flat.start, lambda logits, rows: logits.square() + weights[rows]
    )
    squared = torch.einsum(
        "nkp,nk->p", expected, flat.logits(flat.start).square() + weights
    )
    torch.testing.assert_close(descended, squared)


@EVERY
def test_a_pair_is_its_network_minus_a_constant(images: Tensor, name: str) -> None:
    first = make_network(name, 0).double()
    second = make_network(name, 1).double()
    flat = FlatNetwork(
        first, images, frozen=frozen_parameters(first, second, 0.5), chunk=4
    )
    torch.testing.assert_close(
        flat.logits(flat.start), CorrelatedPair(first, second, 0.5)(images).detach()
    )
    kernel = FlatNetwork(first, images).kernel(flat.start)
    torch.testing.assert_close(flat.kernel(flat.start), kernel)
    centred = FlatNetwork(
        first, images, frozen=frozen_parameters(first, second, 1.0), chunk=4
    )
    assert (centred.logits(centred.start) == 0).all()


def test_batch_normalisation_is_refused(images: Tensor) -> None:
    with pytest.raises(
        ValueError,
        match=r"must not have .*, got BatchNorm2d at 'stages.0.0.norm1'",
    ):
        FlatNetwork(make_network("wide-resnet-bn"), images)


def test_without_probes_the_kernel_is_whole_and_its_norm_exact(images: Tensor) -> None:
    flat = FlatNetwork(make_network(), images)
    kernel = flat.kernel(flat.start)
    sketch = KernelSketch(flat, probes=None)
    assert torch.equal(sketch.at(flat.start), kernel)
    assert sketch.norm(kernel).value == pytest.approx(kernel.norm().item())
    assert sketch.norm(kernel).standard_error == 0


@pytest.mark.parametrize("name", ["mlp", "vgg"])
def test_probes_estimate_norm_and_drift_within_their_errors(
    images: Tensor, name: str
) -> None:
    flat = FlatNetwork(make_network(name), images)
    noise = torch.randn(
        flat.start.shape,
        generator=torch.Generator().manual_seed(5),
        dtype=torch.float64,
    )
    moved = flat.start + 0.02 * noise
    before = flat.kernel(flat.start)
    after = flat.kernel(moved)
    norm = before.norm().item()
    drift = ((after - before).norm() / before.norm()).item()
    misses = []
    for seed in range(20):
        sketch = KernelSketch(flat, probes=24, seed=seed)
        # Multiply the whole kernel by the same probes; the sketch computes the product
        # without forming the kernel.
        seen, then = (
            kernel @ sketch._probes.flatten(1).T for kernel in (before, after)
        )
        if seed == 0:
            torch.testing.assert_close(sketch.at(flat.start), seen.T)
            torch.testing.assert_close(sketch.at(moved), then.T)
        for estimate, truth in (
            (sketch.norm(seen.T), norm),
            (sketch.drift(then.T, seen.T), drift),
        ):
            assert 0 < estimate.standard_error < 0.5 * estimate.value
            misses.append((estimate.value - truth) / estimate.standard_error)
    # If the standard errors are right, the errors divided by the standard errors have a
    # mean square near 1.
    assert 0.4 < torch.tensor(misses).square().mean().sqrt().item() < 2


def test_standard_errors_of_norm_and_drift_by_hand(images: Tensor) -> None:
    # The squared norms of the two rows are 25 and 1, so their mean is 13, with standard
    # error 12. By the delta method, √13 has standard error 12 / (2 √13).
    sketch = KernelSketch(FlatNetwork(make_network(), images), probes=2)
    seen = torch.tensor([[3.0, 4.0], [0.0, 1.0]], dtype=torch.float64)
    norm = sketch.norm(seen)
    assert norm.value == pytest.approx(13**0.5)
    assert norm.standard_error == pytest.approx(12 / (2 * 13**0.5))
    # Divided by their means, the squared norms of the changes are 0.4 and 1.6, and
    # those of the reference are 25 / 13 and 1 / 13. The differences, -1.523 and 1.523,
    # have a standard deviation of 1.523 √2. Their mean has a standard error of 1.523,
    # and the root of the ratio has half of this standard error.
    moved = seen + torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    drift = sketch.drift(moved, seen)
    assert drift.value == pytest.approx((2.5 / 13) ** 0.5)
    relative = (25 / 13 - 0.4) / 2
    assert drift.standard_error == pytest.approx(drift.value * relative)


def test_equal_kernels_have_no_drift_and_a_multiple_is_estimated_without_error(
    images: Tensor,
) -> None:
    flat = FlatNetwork(make_network(), images)
    for probes in (None, 4):
        sketch = KernelSketch(flat, probes=probes)
        seen = sketch.at(flat.start)
        assert sketch.drift(seen, seen).value == 0
        # The second kernel is a multiple of the first, so the ratio has no error,
        # whichever probes are drawn.
        drift = sketch.drift(1.5 * seen, seen)
        assert drift.value == pytest.approx(0.5)
        assert drift.standard_error == pytest.approx(0, abs=1e-12)


def test_standard_errors_by_hand(images: Tensor) -> None:
    sketch = KernelSketch(FlatNetwork(make_network(), images), probes=4)
    # There is one row per probe. The squares 1, 4, 9 and 16 have mean 7.5 and variance
    # 43, so the standard error of their mean is sqrt(43 / 4). The relative error of the
    # root is half the relative error of the mean.
    kernel = torch.tensor([[1.0], [2.0], [3.0], [4.0]], dtype=torch.float64)
    relative_error = math.sqrt(43 / 4) / 7.5 / 2
    norm = sketch.norm(kernel)
    assert norm.value == pytest.approx(math.sqrt(7.5))
    assert norm.standard_error == pytest.approx(norm.value * relative_error)
    # For the reference every square is 4, so the reference adds no error to the ratio.
    reference = torch.full((4, 1), 2.0, dtype=torch.float64)
    drift = sketch.drift(reference + kernel, reference)
    assert drift.value == pytest.approx(math.sqrt(30 / 16))
    assert drift.standard_error == pytest.approx(drift.value * relative_error)
