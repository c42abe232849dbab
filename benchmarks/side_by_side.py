"""Speed of networks at several inverse temperatures: batched, or one after the other.

A sweep of the temperature_check paper trains one network many times. `torch.func.vmap`
can train all copies in one step with stacked parameters. The pipeline instead trains
them one at a time, in several processes. This benchmark shows which is faster on one
thread, for the swept networks without batch normalisation (vmap cannot stack running
statistics).
"""

import copy
import sys
from collections.abc import Callable
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from benchmarks.program import print_result
from benchmarks.timing import seconds
from softmax_temperature.networks.registry import build_network
from softmax_temperature.params.network import Network

CLASSES = 10
RATE = 1e-4
# Architecture, its arguments, image side in pixels, batch size.
NETWORKS = {
    "wrn-10-1": ("wide_resnet", {"depth": 10, "width": 1, "batch_norm": False}, 32, 64),
    "wrn-8-1": ("wide_resnet", {"depth": 8, "width": 1, "batch_norm": False}, 8, 32),
    "mlp": ("mlp", {"widths": [64, 64]}, 8, 32),
}
INVERSE_TEMPERATURES = torch.logspace(-2, 1, 7)
ROUNDS = 15
QUICK_ROUNDS = 1


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Time one step of all networks, alternating between the two ways.

    Args:
        quick: Measure one round.

    Returns:
        name, size, precision, rounds; for each network the ratio of seconds (above 1 if
        the batched step is faster), and the largest parameter difference between the
        two ways after the same number of steps.
    """
    torch.set_num_threads(1)
    result: dict[str, Any] = {
        "name": "Sweep in one batched step against one network at a time",
        "size": f"{len(INVERSE_TEMPERATURES)} networks",
        "precision": "float32",
        "rounds": QUICK_ROUNDS if quick else ROUNDS,
    }
    for name, (architecture, arguments, side, batch) in NETWORKS.items():
        spec = Network(architecture=architecture, arguments=arguments)
        networks = [
            build_network(spec, classes=CLASSES, seed=seed)
            for seed in range(len(INVERSE_TEMPERATURES))
        ]
        generator = torch.Generator().manual_seed(0)
        images = torch.randn(batch, 3, side, side, generator=generator)
        labels = torch.randint(CLASSES, (batch,), generator=generator)
        batched, stacked = batched_step(networks, images, labels)
        single = single_steps(networks, images, labels)
        ratios = []
        for _ in range(result["rounds"]):
            together = seconds(batched)
            ratios.append(seconds(single) / together)
        result[f"{name}_ratio"] = median(ratios)
        result[f"{name}_difference"] = difference(networks, stacked)
    return result


def batched_step(
    networks: list[nn.Module], images: Tensor, labels: Tensor
) -> tuple[Callable[[], None], dict[str, Any]]:
    """Return a function that takes one SGD step with all networks, and what it updates.

    Each step updates the networks' stacked parameters in place.
    """
    stacked, buffers = torch.func.stack_module_state(networks)
    skeleton = copy.deepcopy(networks[0]).to("meta")

    def loss(
        parameters: dict[str, Tensor],
        buffers: dict[str, Tensor],
        inverse_temperature: Tensor,
    ) -> Tensor:
        logits = torch.func.functional_call(skeleton, (parameters, buffers), (images,))
        return F.cross_entropy(inverse_temperature * logits, labels)

    batched_gradients = torch.func.vmap(torch.func.grad(loss))

    def step() -> None:
        gradients = batched_gradients(stacked, buffers, INVERSE_TEMPERATURES)
        with torch.no_grad():
            for name, value in stacked.items():
                value.sub_(RATE * gradients[name])

    return step, stacked


def single_steps(
    networks: list[nn.Module], images: Tensor, labels: Tensor
) -> Callable[[], None]:
    """A function that takes a plain SGD step with one network after the other."""
    optimizers = [torch.optim.SGD(network.parameters(), RATE) for network in networks]

    def step() -> None:
        for network, optimizer, inverse_temperature in zip(
            networks, optimizers, INVERSE_TEMPERATURES, strict=True
        ):
            optimizer.zero_grad()
            F.cross_entropy(inverse_temperature * network(images), labels).backward()
            optimizer.step()

    return step


def difference(networks: list[nn.Module], stacked: dict[str, Any]) -> float:
    """Largest difference between the networks' parameters and the stacked ones."""
    differences = []
    for number, network in enumerate(networks):
        for name, parameter in network.named_parameters():
            deviation = parameter - stacked[name][number]
            differences.append(deviation.abs().max().item())
    return max(differences)


if __name__ == "__main__":
    sys.exit(print_result(measure, __doc__))
