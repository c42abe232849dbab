"""How well the cost model foretells a training step: its time from calls, operations and kept bytes, and its memory.

Six networks of three sizes, from one that is all calls to one that is all operations, are trained for some steps. The
numbers are fitted to their times. Each network's time is compared with what `plan` says, whose numbers are those in
`cost.rates`, and, for what a fit to few networks is worth, with what the numbers say that are fitted to the other five.
On a CPU it is the time that one core computes, whatever else the machine does. Memory is compared with what PyTorch's
own tracker counts on a CPU, tensor by tensor; what a GPU's allocator adds to it is in neither.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.optimize import nnls
from torch.distributed._tools.mem_tracker import MemTracker

from benchmarks.precision import Precision, native_precisions
from softmax_temperature.cost import image_network_cost
from softmax_temperature.cost.cells import OPTIMIZER_CALLS, training_bytes
from softmax_temperature.cost.rates import RATES
from softmax_temperature.losses import make_objective
from softmax_temperature.params.network import Network
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.training import ImageSet, Trainer, build_network

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from softmax_temperature.cost.rates import Device

CLASSES, STEPS, ROUNDS = 10, 2, 3
NETWORKS: dict[str, tuple[str, dict[str, Any], int, int]] = {  # Architecture, its arguments, pixels of a side, batch.
    "VGG of 8-pixel images": ("vgg", {"widths": [16, 16, 32, 32], "dense": 32, "image_size": 8}, 8, 32),
    "small VGG": ("vgg", {}, 32, 64),
    "ResNet-8": ("cifar_resnet", {"blocks": 1}, 32, 32),
    "Wide ResNet-10-1": ("wide_resnet", {"depth": 10, "width": 1}, 32, 64),
    "DenseNet of 18 layers": ("densenet", {"blocks": [2, 2, 2, 2], "growth": 12}, 32, 32),
    "ResNet-50": ("bottleneck_resnet", {"blocks": [3, 4, 6, 3]}, 32, 16),
}
RECIPE = {
    "epochs": 100,
    "planned_epochs": 100,
    "optimizer": "sgd",
    "lr": 0.001,
    "momentum": 0.9,
    "weight_decay": 0.0,
    "epsilon": 1e-8,
    "schedule": {"name": "constant"},
    "reduction": "mean",
    "clip_norm": None,
    "crop_padding": 0,
    "flip": False,
    "mean": [0.5, 0.5, 0.5],
    "std": [0.25, 0.25, 0.25],
}


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Time a step of each network, and fit.

    Args:
        quick: without the largest network.

    Returns:
        name, device; for each precision that the machine multiplies itself the numbers of `cost.rates.Rate` that fit,
        the seconds of a step, and for each network what `plan`'s numbers and those fitted to the others foretell over
        what was measured, and the memory that `plan` foretells over what was counted; and the worst of each of the
        three, either way.
    """
    torch.set_num_threads(1)
    names = [name for name in NETWORKS if not quick or name != "ResNet-50"]
    found: dict[str, dict[str, Any]] = {precision: _fitted(names, precision) for precision in native_precisions()}
    return {
        "name": "cost model of a training step",
        "device": _device(),
        "worst_factor_of_plan": _worst(each["plan_to_measured"] for each in found.values()),
        "worst_factor": _worst(each["foretold_to_measured"] for each in found.values()),
        "worst_factor_of_memory": _worst(each["memory_to_counted"] for each in found.values()),
        **found,
    }


def _worst(found: Iterable[dict[str, float]]) -> float:
    return max(max(ratio, 1 / ratio) for ratios in found for ratio in ratios.values())


def _fitted(names: list[str], precision: Precision) -> dict[str, Any]:
    counted, measured = [], []
    for name in names:
        architecture, arguments, side, batch = NETWORKS[name]
        spec = Network(architecture=architecture, arguments=arguments)
        counted.append(step_counts(name))
        measured.append(_seconds_of_a_step(spec, side, batch, precision))
    shares = np.array(counted) / np.array(measured)[:, None]
    numbers = _numbers(shares)
    memory = {name: memory_of_a_step(name, precision) for name in names}
    others = [_numbers(np.delete(shares, row, axis=0)) for row in range(len(names))]
    return {
        "call_seconds": numbers[0],
        "operations_per_second": 1 / numbers[1],
        "kept_bytes_per_second": 1 / numbers[2],
        "step_seconds": dict(zip(names, measured, strict=True)),
        "plan_to_measured": {
            name: RATES[_device()]["network", precision].seconds(*counts) / seconds
            for name, counts, seconds in zip(names, counted, measured, strict=True)
        },
        "foretold_to_measured": {
            name: float(share @ apart) for name, share, apart in zip(names, shares, others, strict=True)
        },
        "memory_to_counted": {name: foretold / counted for name in names for foretold, counted in [memory[name]]},
    }


def step_counts(name: str) -> tuple[float, float, float]:
    """The calls, operations and kept bytes of one of the networks' training steps."""
    architecture, arguments, side, batch = NETWORKS[name]
    cost = image_network_cost(Network(architecture=architecture, arguments=arguments), classes=CLASSES, side=side)
    return cost.calls + OPTIMIZER_CALLS, batch * cost.training, batch * cost.kept_bytes


def memory_of_a_step(name: str, precision: Precision) -> tuple[int, int]:
    """The bytes that training one of the networks is foretold to need, and those that its tensors take."""
    architecture, arguments, side, batch = NETWORKS[name]
    spec = Network(architecture=architecture, arguments=arguments)
    tracker = MemTracker()
    with tracker:
        trainer = _trainer(spec, side, batch, precision, steps=1, device="cpu")
        trainer.epoch()
        tracker.reset_mod_stats()
        trainer.epoch()  # The first had no moments of the optimizer yet.
    (counted,) = (sizes["Total"] for sizes in tracker.get_tracker_snapshot("peak").values())
    cost = image_network_cost(spec, classes=CLASSES, side=side)
    return training_bytes(cost, _recipe(batch, precision), images=batch, side=side), counted


def _numbers(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The fit of relative errors: a small network counts as much as a large one. No number is negative."""
    scale = shares.max(axis=0)
    numbers, _ = nnls(shares / scale, np.ones(len(shares)))
    found: NDArray[np.float64] = np.maximum(numbers, 1e-9) / scale
    return found


def _seconds_of_a_step(spec: Network, side: int, batch: int, precision: Precision) -> float:
    trainer = _trainer(spec, side, batch, precision, steps=STEPS, device=_device())
    trainer.epoch()
    return min(_timed(trainer.epoch) for _ in range(ROUNDS)) / STEPS


def _trainer(spec: Network, side: int, batch: int, precision: Precision, *, steps: int, device: Device) -> Trainer:
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (steps * batch, 3, side, side), generator=generator).to(torch.uint8)
    samples = ImageSet(images, torch.randint(CLASSES, (len(images),), generator=generator))
    recipe, network = _recipe(batch, precision), build_network(spec, classes=CLASSES, seed=0)
    return Trainer(network, make_objective("cross_entropy", {}), samples, recipe, seed=0, device=device)


def _recipe(batch: int, precision: Precision) -> Recipe:
    return Recipe.model_validate(RECIPE | {"batch_size": batch, "precision": precision})


def _timed(work: Callable[[], None]) -> float:
    clock = time.perf_counter if torch.cuda.is_available() else time.process_time
    start = clock()
    work()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return clock() - start


def _device() -> Device:
    return "cuda" if torch.cuda.is_available() else "cpu"


if __name__ == "__main__":
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--quick", action="store_true", help="without the largest network")
    print(json.dumps(measure(quick=reader.parse_args().quick), indent=1))
