"""Describe the machine and the libraries behind a result, and set up torch.

The settings concern device, precision, threads and memory.
"""

import ctypes
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

LIBRARIES = ("torch", "torchvision", "timm", "numpy", "scipy", "scikit-learn", "pandas")
# The numbers of these options in glibc's malloc.h.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3


@cache
def machine() -> dict[str, Any]:
    """Describe the properties of this machine that affect results and times."""
    has_gpu = torch.cuda.is_available()
    cores = os.cpu_count()
    if sys.platform == "linux":
        cores = len(os.sched_getaffinity(0))
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        # Processors with the same name can have different instruction sets.
        "instructions": _instructions(),
        "cores": cores,
        "memory_gib": round(memory / 2**30),
        "accelerator": torch.cuda.get_device_name() if has_gpu else None,
        "cuda": torch.version.cuda if has_gpu else None,
    }


@cache
def versions(libraries: tuple[str, ...] = LIBRARIES) -> dict[str, str]:
    """Return the versions of Python and of `libraries`.

    By default these are the libraries that do the numerical work.
    """
    return {"python": platform.python_version()} | {
        name: version(name) for name in libraries
    }


def _instructions() -> str:
    """The CPU's instruction set as torch names it, and whether it has bfloat16.

    Precision "auto" depends on bfloat16, which some processors with AVX-512 lack.
    """
    instructions = torch.backends.cpu.get_cpu_capability()
    return f"{instructions} with bfloat16" if _cpu_has_bfloat16() else instructions


def _cpu_has_bfloat16() -> bool:
    capabilities = torch.cpu.get_capabilities()
    names = ("avx512_bf16", "amx_tile", "sve_bf16")
    return any(capabilities.get(name) for name in names)


def _processor() -> str:
    path = Path("/proc/cpuinfo")
    if not path.is_file():
        return platform.processor()
    # On Linux `platform.processor` is empty or uninformative.
    for line in path.read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def resolve_device(device: str) -> str:
    """Return `device`; for "auto", return "cuda" if torch sees a GPU, else "cpu"."""
    if device != "auto":
        return device
    return "cuda" if torch.cuda.is_available() else "cpu"


def resolve_precision(precision: str, device: str) -> str:
    """Return `precision`; "auto" is bfloat16 if `device` supports it, else float32."""
    if precision != "auto":
        return precision
    if device == "cpu":
        is_supported = _cpu_has_bfloat16()
    else:
        is_supported = torch.cuda.is_bf16_supported(including_emulation=False)
    return "bfloat16" if is_supported else "float32"


def prepare_torch(
    threads: int, device: str, *, deterministic: bool | None = None
) -> str:
    """Set torch's threads, determinism and float32 precision, and keep freed memory.

    `deterministic` asks for algorithms that give the same bits each time. If it is
    None, such algorithms are used only on a CPU, because equal bits are guaranteed only
    there. Returns the resolved device.
    """
    device = resolve_device(device)
    keep_freed_memory()
    torch.set_num_threads(threads)
    asked = device == "cpu" if deterministic is None else deterministic
    # Do not call `use_deterministic_algorithms`, because it imports a compiler, which
    # takes 1.6 seconds.
    torch.set_deterministic_debug_mode("warn" if asked else "default")
    # By default, deterministic mode fills every new tensor before it is written, which
    # costs 3 to 16 % of the training time.
    deterministic_settings: Any = torch.utils.deterministic
    deterministic_settings.fill_uninitialized_memory = False
    # Only the parameter `precision` may reduce precision, but by default cuDNN's
    # float32 convolutions round their inputs to 10 bits of mantissa (TF32).
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    return device


def keep_freed_memory() -> None:
    """Let glibc keep up to 2 GiB of freed memory; other C libraries are unaffected."""
    # By default glibc returns large blocks to the system at once, and the next training
    # step faults them in again page by page, which takes a tenth of the training time
    # for the small VGG and a third for ResNet-50.
    if sys.platform != "linux":
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MMAP_THRESHOLD, 2**28)
        mallopt(_TRIM_THRESHOLD, 2**31 - 1)  # The largest allowed value.


@contextmanager
def denormals_as_zero() -> Iterator[None]:
    """Treat denormal numbers, which are below 1e-38 in float32, as 0 in the block.

    This applies to the present thread, and to threads that start in the block. A
    saturated softmax gives many denormal numbers, and Intel's processors multiply a
    matrix of them 200 times as slowly.
    """
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
