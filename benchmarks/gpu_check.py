"""Check this machine's GPU: run the tests marked `gpu`, then measure speed and memory.

Each network is trained for 100 steps; speed and memory are compared with those of an
H100 (80 GB, torch 2.11). The temperature grid and the Tree-LSTM are measured against
their peers, as in `make bench`, and compared with the promises of
`benchmarks.__main__`.
"""

import subprocess
import sys
from typing import Any

import torch

from benchmarks.__main__ import PROMISES, measured
from benchmarks.timing import gpu_gibibytes, seconds
from benchmarks.training import NETWORKS, RECIPE, random_images
from softmax_temperature.losses import make_loss
from softmax_temperature.networks.registry import build_network
from softmax_temperature.params.network import Network
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.machine import machine, prepare_torch
from softmax_temperature.training import ImageSet, Trainer

STEPS = 100
TRAININGS = {
    **NETWORKS,
    "wrn-16-4": (
        Network(architecture="wide_resnet", arguments={"depth": 16, "width": 4}),
        128,
    ),
}
# Images per second and peak GPU memory in GiB, by network and kind of step.
H100 = {
    ("vgg", "plain"): (15_823, 0.11),
    ("vgg", "captured"): (93_675, 0.24),
    ("resnet50", "plain"): (4_786, 2.11),
    ("resnet50", "captured"): (11_558, 2.17),
    ("wrn-16-4", "plain"): (12_134, 0.56),
    ("wrn-16-4", "captured"): (49_760, 0.63),
}
HEADER = ("training", "steps", "images/s", "H100", "GiB", "H100")
COMPARED = ("temperature_grid", "tree_lstm")


def main() -> int:
    """Check the GPU, print two tables, and return the exit code of the tests.

    Without a GPU, print one line and return 0.
    """
    if not torch.cuda.is_available():
        print(
            "There is no GPU: torch sees none on this machine, so nothing was checked."
        )
        return 0
    prepare_torch(1, "cuda")
    pytest_gpu = [sys.executable, "-m", "pytest", "-m", "gpu"]
    tests = subprocess.run(pytest_gpu, check=False)
    print(f"\n{machine()['accelerator']}\n" + "  ".join(HEADER))
    for name, (network, batch_size) in TRAININGS.items():
        for captured in (False, True):
            cells = row(name, network, batch_size, captured=captured)
            print("  ".join(cells), flush=True)
    print("\nbenchmark  expected  measured")
    for name in COMPARED:
        print("\n".join(comparison(name, measured(name, quick=False))), flush=True)
    return tests.returncode


def comparison(name: str, result: dict[str, Any]) -> list[str]:
    """Rows of the second table: a benchmark's promises, throughput and memory."""
    lines = []
    for promise in PROMISES[name]:
        if promise.section == "gpu":
            verdict = promise.judge(result)
            lines.append(f"{name}  {verdict['promise']}  {verdict['measured']:.3g}")
    for key, value in result.items():
        if key.endswith("_per_second"):
            lines.append(f"{name}  -  {value:,.0f} {key}")
    lines.append(f"{name}  -  {result['gpu_gibibytes']:.2f} GiB")
    return lines


def row(name: str, network: Network, batch_size: int, *, captured: bool) -> list[str]:
    """Cells of one row of the first table."""
    trainer = training(network, batch_size, "cuda")
    fallback = trainer.capture_steps() if captured else None
    memory = gpu_gibibytes(trainer.epoch)
    rate = STEPS * batch_size / seconds(trainer.epoch)
    kind = "captured" if captured and fallback is None else "plain"
    h100_rate, h100_memory = H100[name, kind]
    return [
        name,
        kind,
        f"{rate:,.0f}",
        f"{h100_rate:,}",
        f"{memory:.2f}",
        f"{h100_memory:.2f}",
    ]


def training(network: Network, batch_size: int, device: str) -> Trainer:
    """A trainer with `STEPS` steps per epoch."""
    pixels, labels = random_images(STEPS * batch_size)
    channels_first = torch.from_numpy(pixels.transpose(0, 3, 1, 2).copy())
    images = ImageSet(channels_first, torch.from_numpy(labels), "train")
    recipe = Recipe.model_validate(
        RECIPE | {"batch_size": batch_size, "precision": "bfloat16"}
    )
    model = build_network(network, classes=10, seed=0)
    objective = make_loss("cross_entropy", {})
    return Trainer(model, objective, images, recipe, seed=0, device=device)


if __name__ == "__main__":
    sys.exit(main())
