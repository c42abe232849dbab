"""Memory and time of a full calibration report on a language model's logits.

The 1,000 x 50,257 float32 logits are a batch of next-word predictions with GPT-2's
vocabulary. `calibrate` fits the temperature on 500 of the rows and reports on the
others, with 1,000 resamples. An implementation that resamples every bin of every class
needs 13.8 GiB.
"""

import multiprocessing
import resource
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import torch
from torch import Tensor

from softmax_temperature import calibrate

FULL_SIZE = (1_000, 50_257)
QUICK_SIZE = (100, 5_000)
# The first `FREQUENT` words get nearly all labels, so both halves of the rows contain
# nearly the same labels.
FREQUENT = 50
TEMPERATURE = 1.5
ROWS = 100  # Labels are drawn for this many rows at a time, to save memory.


def measure(*, quick: bool = False) -> dict[str, Any]:
    """Report on generated logits in a fresh process, on one thread.

    Args:
        quick: Use 100 x 5,000 logits instead of the 1,000 x 50,257 of the promises.

    Returns:
        name, size, input_gibibytes, gibibytes (peak resident memory of the whole
        process), over_gibibytes (the peak minus 4 times the input) and cpu_seconds of
        the report.
    """
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as process:
        return process.submit(
            measure_here, *(QUICK_SIZE if quick else FULL_SIZE)
        ).result()


def measure_here(rows: int, classes: int) -> dict[str, Any]:
    """Report on generated logits in this process."""
    torch.set_num_threads(1)
    logits, labels = drawn(rows, classes)
    start = time.process_time()
    calibrate(logits, labels)
    seconds = time.process_time() - start
    # Linux reports ru_maxrss in KiB.
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    size = logits.numel() * logits.element_size() / 2**30
    return {
        "name": "memory of a calibration report",
        "size": f"{rows} x {classes} float32 logits, 1000 resamples",
        "input_gibibytes": size,
        "gibibytes": peak,
        "over_gibibytes": peak - 4 * size,
        "cpu_seconds": seconds,
    }


def drawn(rows: int, classes: int) -> tuple[Tensor, Tensor]:
    """Overconfident float32 logits (rows, classes), and labels (rows,)."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.empty(rows, classes).normal_(std=2.0, generator=generator)
    logits[:, :FREQUENT] += 12
    labels = [
        torch.multinomial(
            torch.softmax(piece / TEMPERATURE, dim=1), 1, generator=generator
        )
        for piece in logits.split(ROWS)
    ]
    return logits, torch.cat(labels).squeeze(1)
