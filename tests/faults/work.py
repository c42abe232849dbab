"""Stages on parameters for seconds, as the programs in pipeline/ run them: what the fault tests start, to end it.

python tests/faults/work.py STAGE ENGINE CHECKPOINT_SECONDS
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from softmax_temperature.params import Params, validate
from softmax_temperature.runner.cells import run_cells
from softmax_temperature.stages import embed, fetch, search, train_cooling
from softmax_temperature.stages.programs import exit_code
from softmax_temperature.tools.profiles import render_profile

PROFILES = Path(__file__).parents[2] / "profiles"
DATASET = "digits"
STAGES: dict[str, Any] = {"embedding": embed, "search": search, "training": train_cooling}
EPOCHS = {"search": 150, "training": 8}
CELLS = 2
STEPS_OF_A_CELL = {**EPOCHS, "embedding": 500}
"""Epochs, or images."""


def content(engine: str, checkpoint_seconds: float) -> dict[str, Any]:
    """Profile smoke with `CELLS` cells a stage; no paper but the first and Cooling's has any."""
    _, smoke = render_profile("smoke", PROFILES)
    content = smoke.model_dump()
    content["compute"] |= {"engine": engine, "device": "cpu", "checkpoint_seconds": checkpoint_seconds}
    paper, backbones = content["classifier_temperature"], ["untrained-16", "untrained-64"]
    paper |= {"datasets": [DATASET], "backbones": backbones}
    paper["search"] |= {"epochs": EPOCHS["search"], "inverse_temperatures": [1.0, 20.0, 100.0], "repeats": 2}
    paper["rescaling"] |= {"dataset": DATASET, "backbone": backbones[0]}
    content["backbones"] = {name: content["backbones"][name] for name in backbones}
    paper = content["cooling"]
    paper["recipe"] |= {"epochs": EPOCHS["training"], "lr": 0.01}
    paper["arms"]["periodic"] |= {"max_temperature": 0.5, "reset_temperature": 0.5}
    few = {"schedules": ["none"], "arms": ["periodic"], "seeds": 2}
    paper["experiments"] = {"digits-vgg": paper["experiments"]["digits-vgg"] | few}
    return content


def prepare(params: Params) -> None:
    """Prepare the data set in the current folder."""
    output = fetch.OUTPUT / DATASET
    run_cells(fetch.cells(params, DATASET), output=output, compute=params.compute, seed=params.seed)


def run(stage: Any, params: Params) -> None:
    """Run a stage in the current folder."""
    run_cells(stage.cells(params), output=stage.OUTPUT, compute=params.compute, seed=params.seed)


def main(stage: str, engine: str, checkpoint_seconds: str) -> int:
    return exit_code(
        lambda: run(STAGES[stage], validate(content(engine, float(checkpoint_seconds)), where="fault tests"))
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
