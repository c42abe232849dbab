"""The folder `results/<profile>/`: one folder a paper, beside them the parameters and the machine that made them."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from softmax_temperature.artifacts import write_json, write_text
from softmax_temperature.cells import WORK

PAPERS = ("classifier_temperature",)
RESULTS = Path("results")
LIBRARIES = ("torch", "torchvision", "timm", "numpy", "scipy", "scikit-learn", "pandas")


def paper_folder(profile: str, paper: str) -> Path:
    """Where one paper's results of one profile stand."""
    return RESULTS / profile / paper


def record_run(profile: str, paper: str, params: Path, stages: Iterable[str]) -> None:
    """Write `params.yaml` and `environment.json` beside the papers' folders.

    They are no outputs of the pipeline: times and machine names differ between runs that give equal results.

    Args:
        profile: whose results.
        paper: whose minutes are (re)written; those of other papers stay.
        params: the parameter file in force.
        stages: the work folders whose cells the paper's results rest on.
    """
    folder = RESULTS / profile
    write_text(folder / "params.yaml", params.read_text(encoding="utf-8"))
    path = folder / "environment.json"
    minutes = json.loads(path.read_text(encoding="utf-8"))["minutes"] if path.is_file() else {}
    minutes[paper] = {stage: cell_minutes(stage) for stage in stages}
    write_json(path, {"machine": machine(), "versions": versions(), "minutes": minutes})


def cell_minutes(stage: str) -> float:
    """Minutes that the newest finished run of each cell of a stage took, added up over cells."""
    newest: dict[Path, Path] = {}
    for path in (WORK / stage).rglob("timing.json"):
        cell = path.parent.parent
        if cell not in newest or path.stat().st_mtime > newest[cell].stat().st_mtime:
            newest[cell] = path
    return round(sum(float(json.loads(path.read_text())["seconds"]) for path in newest.values()) / 60, 2)


def machine() -> dict[str, Any]:
    """Processor, cores, memory, accelerator and system of this machine."""
    import torch

    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gib": round(pages / 2**30, 1),
        "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
        "system": platform.system(),
    }


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
