"""A data set that fits no memory, end to end: embedded by two workers, killed in the middle, resumed, trained on.

1,000,000 generated images of 32 x 32 pixels, JPEG, in WebDataset tar files of 10,000, go through a small untrained
network by the command `embed`. The command is killed (SIGKILL) when half of the shards are done, and started again; no
finished shard may be made a second time. Then a small temperature grid is trained from the shards, of which a sixteenth
is in memory at a time. Memory is the peak resident memory of a process, libraries included, as the kernel says.
"""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psutil
from PIL import Image

from softmax_temperature.runner.artifacts import MANIFEST
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

FULL, QUICK = (1_000_000, 10_000), (20_000, 1_000)
"""Images, and how many of them a shard has."""
WORKERS, BATCH_SIZE = 2, 64
CLASSES, SIDE, PATCH = 100, 32, 8
DIM = 128
GRID, EPOCHS, BUFFERS = (1.0, 5.0, 10.0, 20.0, 40.0, 80.0), 2, 16
PARAMS = {
    "seed": 0,
    "data": {"root": "."},
    "backbones": {
        "small": {
            "library": "project",
            "architecture": "cifar_resnet",
            "arguments": {"blocks": 1, "widths": [8, 32, DIM]},
            "weights": "untrained",
            "embedding": DIM,
            "input_size": SIDE,
            "mean": [0.5, 0.5, 0.5],
            "std": [0.25, 0.25, 0.25],
        }
    },
}
SECONDS_BETWEEN_LOOKS = 0.2


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Make the images, embed them with one kill in the middle, train on the shards.

    Args:
        quick: 20,000 images instead of the 1,000,000 that the promise is about.

    Returns:
        name, images, shards, workers, dim; `generating_seconds`; of embedding `seconds` (both runs together),
        `images_per_second`, `worker_gibibytes` (the peak of the larger worker), `parent_gibibytes`,
        `finished_before_kill` and `repeated` (shards that the second run made again of these); of the grid
        `grid_gibibytes`, `grid_seconds`, `epochs`, `embeddings_gibibytes` (on disk), `buffer_gibibytes`,
        `best_accuracy`, and `chance`, which guessing reaches.

    Raises:
        InputError: this system does not say how much memory a process has used.
    """
    if not Path("/proc/self/status").is_file():
        raise InputError("peak memory cannot be read here", where="/proc", remedy="Measure this on Linux.")
    images, per_shard = QUICK if quick else FULL
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start = time.perf_counter()
        generate(folder / "images", images, per_shard)
        generating = time.perf_counter() - start
        (folder / "params.yaml").write_text(json.dumps(PARAMS))
        return {
            "name": "A data set larger than memory",
            "images": images,
            "shards": images // per_shard,
            "workers": WORKERS,
            "dim": DIM,
            "generating_seconds": generating,
            **embedded(folder, images, images // per_shard // 2),
            **in_a_process(partial(trained, folder / "embedded")),
        }


def generate(folder: Path, images: int, per_shard: int) -> None:
    """Write the images, so many a tar file."""
    folder.mkdir()
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WORKERS, mp_context=context) as pool:
        list(pool.map(partial(write_shard, folder, per_shard), range(images // per_shard)))


def write_shard(folder: Path, size: int, shard: int) -> None:
    """One tar file: a pattern for each class, and noise."""
    patterns = np.random.default_rng(0).integers(64, 192, (CLASSES, SIDE // PATCH, SIDE // PATCH, 3))
    generator = np.random.default_rng([1, shard])
    with tarfile.open(folder / f"{shard:05d}.tar", "w") as tar:
        for number in range(size):
            label = int(generator.integers(CLASSES))
            pattern = patterns[label].repeat(PATCH, 0).repeat(PATCH, 1)
            pixels = pattern + generator.integers(-60, 60, (SIDE, SIDE, 3))
            add(tar, f"{number:06d}.jpg", encoded(pixels.astype(np.uint8)))
            add(tar, f"{number:06d}.cls", str(label).encode())


def encoded(pixels: NDArray[np.uint8]) -> bytes:
    """A JPEG file."""
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=90)
    return stream.getvalue()


def add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    """Add a member."""
    member = tarfile.TarInfo(name)
    member.size = len(content)
    tar.addfile(member, io.BytesIO(content))


def embedded(folder: Path, images: int, kill_after: int) -> dict[str, Any]:
    """Run the command, kill it when so many shards are done, and run it again."""
    peaks: dict[int, int] = {}
    start = time.perf_counter()
    first = run(folder, peaks)
    watch(first, peaks, until=lambda: len(finished(folder)) >= kill_after)
    first.kill()
    first.wait()
    before = finished(folder)
    second = run(folder, peaks)
    watch(second, peaks, until=lambda: False)
    seconds = time.perf_counter() - start
    if second.returncode != 0:
        raise RuntimeError(f"the second run ended with {second.returncode}: {(folder / 'log').read_text()}")
    after = finished(folder)
    parents = {process.pid for process in (first, second)}
    return {
        "seconds": seconds,
        "images_per_second": images / seconds,
        "worker_gibibytes": max(peak for pid, peak in peaks.items() if pid not in parents) / 2**30,
        "parent_gibibytes": max(peaks[pid] for pid in parents) / 2**30,
        "finished_before_kill": len(before),
        "repeated": sum(after[place] != stamp for place, stamp in before.items()),
    }


def run(folder: Path, peaks: dict[int, int]) -> subprocess.Popen[bytes]:
    """Start the command."""
    program = "from softmax_temperature.tools.cli import main; main()"
    words = ["embed", "images", "--backbone", "small", "--out", "embedded", "--params", "params.yaml"]
    words += ["--engine", "processes", "--workers", str(WORKERS), "--batch-size", str(BATCH_SIZE)]
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen([sys.executable, "-c", program, *words], cwd=folder, stdout=log, stderr=log)
    peaks[process.pid] = 0
    return process


def watch(process: subprocess.Popen[bytes], peaks: dict[int, int], *, until: Callable[[], bool]) -> None:
    """Note the peaks of a process and its workers, until it ends or something is so."""
    while process.poll() is None and not until():
        for pid in [process.pid, *(child.pid for child in children(process.pid))]:
            peaks[pid] = max(peaks.get(pid, 0), peak_memory(pid))
        time.sleep(SECONDS_BETWEEN_LOOKS)


def children(pid: int) -> list[psutil.Process]:
    """The processes below one."""
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []


def peak_memory(pid: int) -> int:
    """The most bytes that were ever resident of a process; 0 when it is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), 0)


def finished(folder: Path) -> dict[Path, tuple[int, int]]:
    """Every finished shard, with what changes when it is made again."""
    places = (folder / "embedded/work/shards").glob(f"*/*/result/{MANIFEST}")
    return {place: (place.stat().st_ino, place.stat().st_mtime_ns) for place in places}


def in_a_process(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a function returns, from a process of its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as process:
        return process.submit(work).result()


def trained(folder: Path) -> dict[str, Any]:
    """Train the grid from the shards in this process."""
    from softmax_temperature.shards import open_embedded, train_grid_on_shards

    start, shards = time.perf_counter(), open_embedded(folder)
    size = sum(path.stat().st_size for path in (folder / "shards").glob("*/*.safetensors"))
    grid = train_grid_on_shards(
        shards, GRID, epochs=EPOCHS, batch_size=2048, lr=3.0, buffer_bytes=size // BUFFERS, device="cpu"
    )
    return {
        "grid_gibibytes": peak_memory(os.getpid()) / 2**30,
        "grid_seconds": time.perf_counter() - start,
        "epochs": EPOCHS,
        "embeddings_gibibytes": size / 2**30,
        "buffer_gibibytes": size / BUFFERS / 2**30,
        "best_accuracy": float(grid.accuracy.max()),
        "chance": 1 / CLASSES,
    }
