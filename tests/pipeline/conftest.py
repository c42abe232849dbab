"""A project folder with the smallest parameters, in which stages run in this process."""

import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from softmax_temperature.papers.shared.sources import provenance
from softmax_temperature.params import Params, validate
from softmax_temperature.tools.profiles import render_profile

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def tiny() -> Params:
    """Profile smoke, cut down further: three random backbones, one engine, a handful of epochs."""
    _, smoke = render_profile("smoke", ROOT / "profiles")
    content = smoke.model_dump()
    backbones = ["untrained-16", "untrained-32", "untrained-64"]
    small = content["backbones"]["untrained-16"]
    wider = {"embedding": 32, "arguments": {"channels": [8, 16, 16, 32], "stem_width": 8}}
    content["backbones"] = {
        "untrained-16": small,
        "untrained-32": small | wider,
        "untrained-64": content["backbones"]["untrained-64"],
    }
    content["datasets"] = {name: {"train_limit": 120, "test_limit": 60} for name in content["datasets"]}
    content["compute"] |= {"engine": "serial", "workers": 1, "checkpoint_seconds": 0}
    paper = content["classifier_temperature"]
    paper["backbones"] = backbones
    paper["search"] |= {"epochs": 4, "inverse_temperatures": [1.0, 10.0, 40.0, 120.0]}
    paper["rescaling"] |= {"epochs": 3, "repeats": 2, "backbone": "untrained-64"}
    paper = content["focal"]
    paper["tasks"]["digits"]["arms"] = ["CE", "FL-3", "FLSD-53"]
    paper["tasks"]["digits"]["shifted"] = ["digits"]  # No shift, so that its rows are known.
    paper["evaluation"] |= {"bootstrap": 20}
    paper["linear"] |= {"epochs": 5}
    paper = content["cooling"]
    # Slower than in smoke: with a dozen held-out images a network that is worse than guessing has no temperature.
    paper["recipe"] |= {"batch_size": 8, "lr": 0.02}
    paper["experiments"]["digits-vgg"]["schedules"] = ["none"]
    for name in ("digits-vgg-crelu", "digits-vgg-factors"):
        paper["experiments"][name]["seeds"] = 1
    return validate(content, where="tiny")


@pytest.fixture(scope="session")
def make_project(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Makes a project folder by name: printed numbers, notebooks, and nothing else."""

    def make(name: str) -> Path:
        folder = tmp_path_factory.mktemp(f"{name} größer 数")
        shutil.copytree(ROOT / "data" / "published", folder / "data" / "published")
        shutil.copytree(ROOT / "notebooks", folder / "notebooks")
        return folder

    return make


@pytest.fixture(scope="session")
def without_records() -> Callable[[Path, Sequence[Any]], list[str]]:
    """Says which numbers of a paper's results name no cells, or others than its stages have."""

    def find(folder: Path, stages: Sequence[Any]) -> list[str]:
        known = provenance([stage.OUTPUT for stage in stages])["cells"]
        names = [f"{cell['stage']}/{cell['cell']}" for cell in known]
        claims = json.loads((folder / "claims.json").read_text())
        numbers = [(claim["id"], claim["cells"]) for claim in claims if claim["value"] is not None]
        for path in (folder / "tables").glob("*.csv"):
            table = pd.read_csv(path)
            if {"published", "ours"} <= set(table):
                rows = table[table["ours"].notna()].astype({"cells": str})
                numbers += [(path.stem, cells.split("; ")) for cells in rows["cells"]]
        assert numbers
        return [name for name, cells in numbers if not cells or not all(_is_known(each, names) for each in cells)]

    return find


def _is_known(cells: str, names: Sequence[str]) -> bool:
    return any(name == cells or name.startswith(f"{cells}/") for name in names)
