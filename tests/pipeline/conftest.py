"""Project folders with the smallest parameters, whose stages run in this process."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.params import Params
from tests.conftest import ROOT
from tests.pipeline.whole_runs import changed, finish, run_paper, slug
from tests.profiles import profile


@pytest.fixture(scope="session")
def tiny() -> Params:
    """Profile smoke with three random backbones, the serial engine, and few epochs."""
    smoke = profile("smoke")
    backbones = smoke.model_dump()["backbones"]
    wider = {
        "embedding": 32,
        "arguments": {"channels": [8, 16, 16, 32], "stem_width": 8},
    }
    changes: dict[str, Any] = {
        "backbones": {
            "untrained-16": backbones["untrained-16"],
            "untrained-32": backbones["untrained-16"] | wider,
            "untrained-64": backbones["untrained-64"],
        },
        "datasets": {
            name: {"train_limit": 120, "test_limit": 60} for name in smoke.datasets
        },
        "compute/": {"engine": "serial", "workers": 1, "checkpoint_seconds": 0},
        "classifier_temperature/backbones": [
            "untrained-16",
            "untrained-32",
            "untrained-64",
        ],
        "classifier_temperature/search/": {
            "epochs": 4,
            "inverse_temperatures": [1.0, 10.0, 40.0, 120.0],
        },
        "classifier_temperature/rescaling/": {
            "epochs": 3,
            "repeats": 2,
            "backbone": "untrained-64",
        },
        # The data from another source equal the test data, so the expected rows are
        # known.
        "focal/tasks/digits/": {
            "arms": ["CE", "FL-3", "FLSD-53"],
            "shifted": ["digits"],
        },
        "focal/evaluation/bootstrap": 20,
        "focal/linear/epochs": 5,
        # With more word pieces the sentences are shorter, and the search takes fewer
        # steps.
        "focal/translation/vocabulary": 300,
        "focal/translation/temperatures": [0.75, 1.5],
        "focal/translation/network/dropout": 0.1,
        "focal/translation/recipe/": {
            "epochs": 3,
            "planned_epochs": 3,
            "batch_size": 200,
            "lr": 0.02,
        },
        "focal/translation/search/": {
            "length_penalty": 4.0,
            "extra_length": 3,
            "sentences": 3,
        },
        # The rate is lower than in profile smoke. With a higher one, the network may do
        # worse than chance on the dozen held-out images, and then no finite temperature
        # is best.
        "cooling/recipe/": {"batch_size": 8, "lr": 0.02},
        "cooling/experiments/digits-vgg/schedules": ["none"],
        "cooling/experiments/digits-vgg-crelu/seeds": 1,
        "cooling/experiments/digits-vgg-factors/seeds": 1,
    }
    return changed(smoke, changes)


@pytest.fixture(scope="session")
def make_project(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A function that makes a project folder by name.

    The folder has printed numbers and notebooks, and also the cells of the project
    `cells_of` if it is given.
    """

    def make(name: str, cells_of: Path | None = None) -> Path:
        folder = tmp_path_factory.mktemp(f"{name} größer 数")
        data = ROOT / "data" / "published"
        shutil.copytree(data, folder / "data" / "published")
        if cells_of is not None:
            shutil.copytree(cells_of / "data", folder / "data", dirs_exist_ok=True)
        shutil.copytree(ROOT / "notebooks", folder / "notebooks")
        return folder

    return make


@pytest.fixture(scope="module")
def project(
    request: pytest.FixtureRequest, make_project: Callable[..., Path], tiny: Params
) -> Path:
    """A project folder in which all stages of the module's `PAPER` have run."""
    paper = request.module.PAPER
    return finish(make_project(slug(paper)), lambda: run_paper(tiny, paper))


@pytest.fixture
def in_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
