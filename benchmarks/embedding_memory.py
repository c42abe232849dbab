"""Memory that embedding needs beyond the network, whatever the number of images.

A tiny network turns each generated 32 x 32 image into 512 numbers, in batches of 256,
and the embeddings are written as the stage `embed` writes them. The embeddings of
1,000,000 images fill 1.9 GiB, so an implementation that gathers them in memory breaks
the promise.
"""

import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from softmax_temperature.networks.embeddings import (
    EMBEDDINGS,
    extract,
    write_embeddings,
)
from softmax_temperature.networks.preprocess import Preprocess
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.machine import keep_freed_memory

STATUS = Path("/proc/self/status")
FULL_SIZE = 1_000_000
QUICK_SIZE = 20_000
BATCH_SIZE = 256
IMAGE_SIZE = 32
DIM = 512


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Embed generated images in a fresh process and read its peak memory.

    Args:
        quick: Embed 20,000 images instead of the 1,000,000 of the promise.

    Returns:
        name, images, dim, gibibytes (peak resident memory minus the memory in use when
        the network was ready), file_gibibytes (the embeddings on disk) and seconds.

    Raises:
        InputError: If the system does not report the peak memory of a process.
    """
    if not STATUS.is_file():
        raise InputError(
            "peak memory cannot be read here",
            where=str(STATUS),
            remedy="Measure this on Linux.",
        )
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as process:
        return process.submit(measure_here, QUICK_SIZE if quick else FULL_SIZE).result()


def measure_here(images: int) -> dict[str, Any]:
    """Embed generated images in this process.

    The system reports only the highest peak of the process, so memory use before the
    embedding must stay below the peak during embedding.
    """
    # The pipeline's cells make this call too.
    keep_freed_memory()
    network = nn.Sequential(
        nn.Conv2d(3, DIM, 8, stride=16),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    ).eval()
    preprocess = Preprocess(
        IMAGE_SIZE, IMAGE_SIZE, "bilinear", mean=(0.5, 0.5, 0.5), std=(0.25, 0.25, 0.25)
    )
    numbers = torch.arange(images)
    before = memory("VmRSS")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        write_embeddings(
            Path(folder),
            {"train": (numbers % 10, numbers)},
            lambda _: extract(network, preprocess, generated(images)),
            {"dataset": "generated", "embedding": DIM},
        )
        file_bytes = (Path(folder) / EMBEDDINGS).stat().st_size
    return {
        "name": "memory of embedding",
        "images": images,
        "dim": DIM,
        "gibibytes": (memory("VmHWM") - before) / 2**30,
        "file_gibibytes": file_bytes / 2**30,
        "seconds": time.perf_counter() - start,
    }


def generated(images: int) -> Iterator[Tensor]:
    """Batches of random grey images, identical in every run."""
    generator = torch.Generator().manual_seed(0)
    for first in range(0, images, BATCH_SIZE):
        shape = (min(BATCH_SIZE, images - first), 1, IMAGE_SIZE, IMAGE_SIZE)
        yield torch.randint(0, 256, shape, dtype=torch.uint8, generator=generator)


def memory(entry: str) -> int:
    """Resident memory of this process in bytes: "VmRSS" now, "VmHWM" at the peak."""
    lines = STATUS.read_text(encoding="utf-8").splitlines()
    entries = dict(line.split(":", 1) for line in lines)
    kibibytes = int(entries[entry].split()[0])
    return kibibytes * 1024
