"""The machine and the library versions that a result was made with."""

from __future__ import annotations

import os
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

LIBRARIES = ("torch", "torchvision", "timm", "numpy", "scipy", "scikit-learn", "pandas")


@cache
def machine() -> dict[str, Any]:
    """Processor, cores, memory in GiB, accelerator and system."""
    import torch

    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory / 2**30, 1),
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": platform.system(),
    }


@cache
def versions() -> dict[str, str]:
    """Python's version and those of the libraries that results depend on."""
    return {"python": platform.python_version()} | {name: version(name) for name in LIBRARIES}


def _processor() -> str:
    """The processor's name; `platform.processor` is empty or bare on most Linux systems."""
    path = Path("/proc/cpuinfo")
    if path.is_file():
        for line in path.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()
