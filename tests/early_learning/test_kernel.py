from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from softmax_temperature.early_learning.tangent_kernel import FlatNetwork, KernelSketch, full_kernel

MakeNetwork = Callable[..., nn.Module]
EVERY = pytest.mark.parametrize("name", ["mlp", "convnet", "vgg", "wide-resnet"])


def moved(flat: FlatNetwork) -> Tensor:
    noise = torch.randn(flat.start.shape, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    return flat.start + 0.02 * noise


@EVERY
def test_the_whole_kernel_is_what_products_make_of_unit_vectors(
    make_network: MakeNetwork, images: Tensor, name: str
) -> None:
    flat = FlatNetwork(make_network(name), images, chunk=4)
    kernel = full_kernel(flat, flat.start)
    units = torch.eye(kernel.shape[0], dtype=torch.float64).view(-1, *flat.shape)
    columns = torch.stack([flat.kernel_product(flat.start, unit).flatten() for unit in units])
    torch.testing.assert_close(kernel, columns)
    torch.testing.assert_close(kernel, kernel.T)
    assert torch.linalg.eigvalsh(kernel).min() > -1e-9 * kernel.norm()
    sketch = KernelSketch(flat, probes=None)
    assert torch.equal(sketch.at(flat.start), kernel)
    assert sketch.norm(kernel).value == pytest.approx(kernel.norm().item())
    assert sketch.norm(kernel).standard_error == 0


@EVERY
def test_probes_estimate_norm_and_drift_within_their_errors(
    make_network: MakeNetwork, images: Tensor, name: str
) -> None:
    flat = FlatNetwork(make_network(name), images)
    before, after = (full_kernel(flat, parameters) for parameters in (flat.start, moved(flat)))
    norm, drift = before.norm().item(), ((after - before).norm() / before.norm()).item()
    misses = []
    for seed in range(20):
        sketch = KernelSketch(flat, probes=24, seed=seed)
        # The products of the whole kernel with the same probes: what the sketch does without it.
        seen, then = (kernel @ sketch._probes.flatten(1).T for kernel in (before, after))
        if seed == 0:
            torch.testing.assert_close(sketch.at(flat.start), seen.T)
            torch.testing.assert_close(sketch.at(moved(flat)), then.T)
        for estimate, truth in ((sketch.norm(seen.T), norm), (sketch.drift(then.T, seen.T), drift)):
            assert 0 < estimate.standard_error < 0.5 * estimate.value
            assert estimate.value == pytest.approx(truth, rel=0.6)
            misses.append((estimate.value - truth) / estimate.standard_error)
    # Standard errors are about right: the misses in units of them have a mean square of about 1.
    assert 0.4 < torch.tensor(misses).square().mean().sqrt().item() < 2


def test_the_error_of_the_norm_is_as_stated(make_network: MakeNetwork, images: Tensor) -> None:
    flat = FlatNetwork(make_network(), images)
    kernel = full_kernel(flat, flat.start)
    squared = kernel @ kernel
    rank = (squared.trace() ** 2 / squared.square().sum()).item()
    sketches = (KernelSketch(flat, probes=16, seed=seed) for seed in range(400))
    norms = [sketch.norm((kernel @ sketch._probes.flatten(1).T).T).value for sketch in sketches]
    stated = (2 / (16 * rank)) ** 0.5 / 2
    assert torch.tensor(norms).square().mean().sqrt().item() == pytest.approx(kernel.norm().item(), rel=0.03)
    assert torch.tensor(norms).std().item() / kernel.norm().item() == pytest.approx(stated, rel=0.25)


def test_no_move_is_no_drift_and_one_direction_is_seen_exactly(make_network: MakeNetwork, images: Tensor) -> None:
    flat = FlatNetwork(make_network(), images)
    for probes in (None, 4):
        sketch = KernelSketch(flat, probes=probes)
        seen = sketch.at(flat.start)
        assert sketch.drift(seen, seen).value == 0
        # A kernel that only grows: the ratio has no error, whatever the probes.
        drift = sketch.drift(1.5 * seen, seen)
        assert drift.value == pytest.approx(0.5)
        assert drift.standard_error == pytest.approx(0, abs=1e-12)


def test_probes_depend_on_the_seed_alone(make_network: MakeNetwork, images: Tensor) -> None:
    flat = FlatNetwork(make_network(), images)
    first, same, other = (KernelSketch(flat, probes=3, seed=seed).at(flat.start) for seed in (1, 1, 2))
    assert torch.equal(first, same)
    assert not torch.allclose(first, other)
    with pytest.raises(ValueError, match="probes must be an integer of at least 2, got 1"):
        KernelSketch(flat, probes=1)
