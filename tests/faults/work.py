"""A search and a training of seconds, as a program: python -m tests.faults.work STAGE ENGINE."""

import sys
from typing import Any

from softmax_temperature.params import Params, validate
from softmax_temperature.runner.cells import run_cells
from softmax_temperature.stages import embed, fetch, search, train_cooling
from softmax_temperature.stages.programs import exit_code
from softmax_temperature.tools.profiles import render_profile
from tests.conftest import ROOT

DATASET, BACKBONE = "digits", "untrained-16"
STAGES: dict[str, Any] = {"embedding": embed, "search": search, "training": train_cooling}


def params(engine: str) -> Params:
    """Profile smoke with one cell of each stage; every epoch has a checkpoint."""
    _, smoke = render_profile("smoke", ROOT / "profiles")
    content = smoke.model_dump()
    content["compute"] |= {"engine": engine, "device": "cpu", "checkpoint_seconds": 0}
    paper = content["classifier_temperature"]
    paper |= {"datasets": [DATASET], "backbones": [BACKBONE]}
    paper["search"] |= {"epochs": 150, "inverse_temperatures": [1.0, 20.0, 100.0], "repeats": 2}
    paper["rescaling"] |= {"dataset": DATASET, "backbone": BACKBONE}
    content["backbones"] = {BACKBONE: content["backbones"][BACKBONE]}
    paper = content["cooling"]
    paper["recipe"] |= {"epochs": 8, "lr": 0.01}
    few = {"schedules": ["none"], "arms": ["periodic"], "seeds": 1}
    paper["experiments"] = {"digits-vgg": paper["experiments"]["digits-vgg"] | few}
    return validate(content, where="fault tests")


def prepare() -> None:
    """Prepare the data set in the current folder."""
    plan = params("serial")
    run_cells(
        [one for one in fetch.cells(plan) if one.name == DATASET],
        output=fetch.OUTPUT,
        compute=plan.compute,
        seed=plan.seed,
    )


def run(stage: str, engine: str) -> None:
    """Run a stage in the current folder."""
    plan, module = params(engine), STAGES[stage]
    run_cells(module.cells(plan), output=module.OUTPUT, compute=plan.compute, seed=plan.seed)


if __name__ == "__main__":
    sys.exit(exit_code(lambda: run(*sys.argv[1:])))
