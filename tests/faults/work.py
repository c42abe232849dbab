"""Runs one stage with small parameters."""

from typing import Any

from softmax_temperature.params import Params
from softmax_temperature.stages.classifier_temperature import search
from softmax_temperature.stages.cooling import train_cooling
from softmax_temperature.stages.embeddings import embed
from softmax_temperature.stages.fetch import fetch
from tests.pipeline.whole_runs import changed, run
from tests.profiles import profile

STAGES: dict[str, Any] = {
    "fetch": fetch,
    "embed": embed,
    "search": search,
    "training": train_cooling,
}


def params() -> Params:
    """Profile smoke with one cell per stage and a checkpoint after every epoch."""
    smoke = profile("smoke")
    content = smoke.model_dump()
    vgg = content["cooling"]["experiments"]["digits-vgg"] | {
        "schedules": ["none"],
        "arms": ["periodic"],
        "seeds": 1,
    }
    changes: dict[str, Any] = {
        "papers": ["classifier_temperature", "cooling"],
        "datasets": {"digits": content["datasets"]["digits"]},
        "compute/": {"engine": "serial", "device": "cpu", "checkpoint_seconds": 0},
        "classifier_temperature/": {
            "datasets": ["digits"],
            "backbones": ["untrained-16"],
        },
        "classifier_temperature/search/": {
            "epochs": 150,
            "inverse_temperatures": [1.0, 20.0, 100.0],
            "repeats": 2,
        },
        "classifier_temperature/rescaling/": {
            "dataset": "digits",
            "backbone": "untrained-16",
        },
        "cooling/recipe/": {"epochs": 8, "lr": 0.01},
        "cooling/experiments": {"digits-vgg": vgg},
    }
    return changed(smoke, changes)


def run_stage(name: str) -> None:
    """Run a stage in the current folder."""
    run(params(), STAGES[name])
