"""Whether this machine's GPU does what is expected: the tests marked `gpu`, then 100 steps of each benchmark.

Expected speed of a training is an estimate, made before any GPU was measured: a plain step costs the host 1 ms and a
captured one 0.3 ms, and the device reaches a tenth of what its own large matrix products reach. Expected memory is
counted: weights, gradients and momentum, the images, and what the backward pass keeps. The temperature grid and the
Tree-LSTM are measured against their peers, as by `make bench`, and expected is what is promised there.
"""

import subprocess
import sys
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.__main__ import PROMISES, measured
from benchmarks.temperature_grid import seconds_of_a_flop
from benchmarks.timing import gpu_gibibytes, seconds
from benchmarks.training import MEAN, NETWORKS, STD, random_images
from softmax_temperature.losses import make_objective
from softmax_temperature.params.network import Network
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.machine import machine, prepare_torch
from softmax_temperature.training import ImageSet, Trainer, build_network

STEPS, HOST_SECONDS, SHARE_OF_PEAK = 100, {False: 1e-3, True: 3e-4}, 0.1
RECIPE = {"epochs": 100, "planned_epochs": 100, "optimizer": "sgd", "lr": 0.01, "momentum": 0.9, "weight_decay": 5e-4}
RECIPE |= {"epsilon": 1e-8, "schedule": {"name": "constant"}, "reduction": "mean", "clip_norm": None}
RECIPE |= {"crop_padding": 4, "flip": True, "mean": MEAN, "std": STD, "precision": "bfloat16"}
TRAININGS = {**NETWORKS, "wrn-16-4": (Network(architecture="wide_resnet", arguments={"depth": 16, "width": 4}), 128)}
HEADER = ("training", "steps", "images/s expected", "measured", "GiB expected", "measured")
COMPARED = ("temperature_grid", "tree_lstm")


class Cost(NamedTuple):
    """Of a training step: floating-point operations of an image, and bytes of the batch that it has to hold."""

    flops: float
    bytes: float


def main() -> int:
    """Check and print; the exit code is that of the tests."""
    if not torch.cuda.is_available():
        print("There is no GPU: torch sees none on this machine, so nothing was checked.")
        return 0
    prepare_torch(1, "cuda")
    failed = subprocess.run([sys.executable, "-m", "pytest", "-m", "gpu"], check=False).returncode
    peak = 1 / seconds_of_a_flop(torch.bfloat16, torch.device("cuda"))
    print(f"\n{machine()['accelerator']}: {peak / 1e12:.0f} TFLOP/s in bfloat16 products\n" + "  ".join(HEADER))
    for name, (network, batch_size) in TRAININGS.items():
        for captured in (False, True):
            print("  ".join(row(name, network, batch_size, peak, captured=captured)), flush=True)
    print("\nbenchmark  expected  measured")
    for name in COMPARED:
        print("\n".join(comparison(name, measured(name, quick=False))), flush=True)
    return failed


def comparison(name: str, result: dict[str, Any]) -> list[str]:
    """Lines of the second table: what a benchmark promises of a GPU, then its throughput and memory."""
    verdicts = [promise.judge(result) for promise in PROMISES[name] if promise.section == "gpu"]
    lines = [f"{name}  {each['promise']}  {each['measured']:.3g}" for each in verdicts]
    lines += [f"{name}  -  {value:,.0f} {key}" for key, value in result.items() if key.endswith("_per_second")]
    return [*lines, f"{name}  -  {result['gpu_gibibytes']:.2f} GiB"]


def row(name: str, network: Network, batch_size: int, peak: float, *, captured: bool) -> list[str]:
    """A line of the table."""
    cost = cost_of(network, batch_size)
    expected = min(batch_size / HOST_SECONDS[captured], SHARE_OF_PEAK * peak / cost.flops)
    trainer = training(network, batch_size, "cuda")
    fallback = trainer.capture_steps() if captured else None
    memory = gpu_gibibytes(trainer.epoch)
    rate = STEPS * batch_size / seconds(trainer.epoch)
    kind = "captured" if captured and fallback is None else "plain"
    numbers = [f"{expected:,.0f}", f"{rate:,.0f}", f"{cost.bytes / 2**30:.2f}"]
    return [name, kind, *numbers, f"{memory:.2f}"]


def training(network: Network, batch_size: int, device: str) -> Trainer:
    """A training with `STEPS` steps in each epoch."""
    pixels, labels = random_images(STEPS * batch_size)
    images = ImageSet(torch.from_numpy(pixels.transpose(0, 3, 1, 2).copy()), torch.from_numpy(labels))
    recipe = Recipe.model_validate(RECIPE | {"batch_size": batch_size})
    model, objective = build_network(network, classes=10, seed=0), make_objective("cross_entropy", {})
    return Trainer(model, objective, images, recipe, seed=0, device=device)


def cost_of(network: Network, batch_size: int) -> Cost:
    """Counted without computing: forward and backward together are three times the forward pass."""
    kept: dict[Any, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        kept[id(tensor.untyped_storage())] = tensor.numel() * 2  # bfloat16
        return tensor

    with torch.device("meta"):
        model: nn.Module = build_network(network, classes=10, seed=0)
        images = torch.empty(batch_size, 3, 32, 32)
    counter = FlopCounterMode(display=False)
    with counter, torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(images)
    weights = sum(parameter.numel() for parameter in model.parameters())
    data = STEPS * batch_size * 3 * 32**2
    return Cost(3 * counter.get_total_flops() / batch_size, 12 * weights + data + sum(kept.values()))


if __name__ == "__main__":
    sys.exit(main())
