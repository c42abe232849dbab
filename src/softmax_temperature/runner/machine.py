"""The machine and the library versions that a result was made with."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

LIBRARIES = ("torch", "torchvision", "timm", "numpy", "scipy", "scikit-learn", "pandas")


@cache
def machine() -> dict[str, Any]:
    """What results and times depend on in this machine; not its name."""
    has_gpu = torch.cuda.is_available()
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "instructions": torch.backends.cpu.get_cpu_capability(),  # Processors of one name differ in them.
        "cores": len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count(),
        "memory_gib": round(memory / 2**30),
        "accelerator": torch.cuda.get_device_name() if has_gpu else None,
        "cuda": torch.version.cuda if has_gpu else None,
    }


@cache
def versions(libraries: tuple[str, ...] = LIBRARIES) -> dict[str, str]:
    """Versions of Python and of libraries, by default those that results depend on."""
    return {"python": platform.python_version()} | {name: version(name) for name in libraries}


def _processor() -> str:
    """The processor's model name; `platform.processor` is empty or bare on most systems."""
    path = Path("/proc/cpuinfo")
    if path.is_file():
        lines = path.read_text().splitlines()
        return next(
            (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine()
        )
    command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603  # ours
