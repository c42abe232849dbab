"""A project whose pipeline leaves every kind of file that it can, in half a minute.

    python tiny.py FOLDER [STAGE ...]

runs the stages one after the other in one process, all that have cells and those that collect by default: what takes
long otherwise is importing torch twenty times.
"""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from softmax_temperature.params import Params, read_params, validate
from softmax_temperature.runner.reading import read_yaml
from softmax_temperature.tools.profiles import render_profile
from tests.faults import toy
from tests.faults.copies import ROOT, copy_project

COLLECTED = ("classifier_temperature", "cooling")


@dataclass(frozen=True)
class Cold:
    """A project after a cold run.

    Attributes:
        folder: the project.
        left: the files that the run left, below it; the others were there before.
        stages: what was run, as DVC names it.
    """

    folder: Path
    left: frozenset[Path]
    stages: tuple[str, ...]


@cache
def cold_run(parent: Path) -> Cold:
    """Run all stages but those that draw, and let DVC take over what they made; once in a session of tests."""
    folder = parent / "cold" / "project"
    make(folder)
    before = files(folder)
    run(folder)
    stages = tuple(stage for stage, _ in commands(folder))
    toy.dvc(folder, "commit", "--force", *stages)
    return Cold(folder, files(folder) - before, stages)


def run(folder: Path, *stages: str) -> None:
    """Run some or all stages, without DVC."""
    words = [sys.executable, __file__, str(folder), *stages]
    done = subprocess.run(words, env=toy.ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def files(folder: Path) -> frozenset[Path]:
    return frozenset(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())


def make(folder: Path) -> None:
    """A project with the smallest parameters, which DVC can run in without Git."""
    copy_project(folder)
    with (folder / "params.yaml").open("w") as file:
        YAML(typ="safe").dump(parameters().model_dump(), file)


def parameters() -> Params:
    """Profile smoke, cut down to one epoch of everything."""
    _, smoke = render_profile("smoke", ROOT / "profiles")
    content = smoke.model_dump()
    content["compute"] |= {"engine": "serial", "workers": 1}
    few = {"train_limit": 20, "test_limit": 10}
    content["datasets"] = {"phrases": few, "glyphs-2": few, "glyphs-3": few, "digits": {**few, "train_limit": 60}}
    content["backbones"] = {"glyphnet-16": content["backbones"]["glyphnet-16"]}
    content["pretrain"] |= {"classes": 3, "images_per_class": 4, "epochs": 1}
    for paper in ("focal", "temperature_check"):
        content[paper]["rebuild"] = []
    _cut_classifier_temperature(content["classifier_temperature"])
    _cut_focal(content["focal"])
    _cut_cooling(content["cooling"])
    _cut_temperature_check(content["temperature_check"])
    return validate(content, where="tiny")


def _cut_classifier_temperature(paper: dict[str, Any]) -> None:
    paper |= {"datasets": ["digits", "glyphs-2", "glyphs-3"], "backbones": ["glyphnet-16"]}
    paper["search"] |= {"inverse_temperatures": [1, 10, 100], "epochs": 2}
    paper["rescaling"] |= {"dataset": "digits", "epochs": 2, "repeats": 1}


def _cut_focal(paper: dict[str, Any]) -> None:
    paper |= {"seeds": 1, "tasks": {"digits": paper["tasks"]["digits"] | {"arms": ["CE"], "out_of_distribution": []}}}
    paper["recipe"] |= {"epochs": 1}
    paper["evaluation"] |= {"bootstrap": 2, "panels": 1}
    paper["linear"] |= {"train": 20, "test": 10, "epochs": 2, "seeds": 1}
    paper["translation"] |= {"train_limit": 8, "validation_limit": 4, "test_limit": 2, "seeds": 1}
    paper["translation"]["recipe"] |= {"epochs": 1, "planned_epochs": 1}


def _cut_cooling(paper: dict[str, Any]) -> None:
    place = paper["experiments"]["digits-vgg"] | {"schedules": ["none"], "arms": ["none", "last_layer"]}
    paper |= {"seeds": 1, "experiments": {"digits-vgg": place}}
    paper["recipe"] |= {"epochs": 1}
    paper["segmentation"] |= {"train_limit": 4, "test_limit": 2, "cooling_images": 1, "seeds": 1, "panels": 1}
    paper["segmentation"]["recipe"] |= {"epochs": 1, "planned_epochs": 1}


def _cut_temperature_check(paper: dict[str, Any]) -> None:
    sweep = paper["sweeps"]["wrn"] | {"inverse_temperatures": [1.0], "cooled": False}
    paper |= {"seeds": 1, "sweeps": {"wrn": sweep}}
    paper["recipe"] |= {"epochs": 1, "planned_epochs": 1}
    early = paper["early_learning"]
    early |= {"networks": {"mlp-tiny": 1}, "evaluations": 20, "tolerance": 0.1}
    early["curves"] |= {"points": 3, "inverse_temperatures": [1.0, 2.0]}
    early["norms"] |= {"logit_norms": [1.0, 2.0]}


def commands(folder: Path, stages: Sequence[str] = ()) -> Iterator[tuple[str, list[str]]]:
    """Each stage, as DVC names it, and the words of its command.

    Args:
        folder: the project.
        stages: which; without any, all but those that draw, which take longest and leave no kind of file of their own
            that DVC would not record like the tables.
    """
    params = read_params(folder / "params.yaml")
    for stage, content in read_yaml(folder / "dvc.yaml")["stages"].items():
        drawn = stage == "report" or stage.startswith("notebook-")
        if stage in stages or not (stages or drawn):
            for axis, item in _items(params, content.get("matrix", {})):
                yield f"{stage}@{item}" if item else stage, content["cmd"].replace(axis, item).split()[1:]


def _items(params: Params, matrix: dict[str, str]) -> list[tuple[str, str]]:
    """What stands for the item in a command, and each of its values; nothing for a stage without a matrix."""
    if not matrix:
        return [("", "")]
    ((axis, reference),) = matrix.items()
    value: Any = params
    for part in reference.removeprefix("${").removesuffix("}").split("."):
        value = getattr(value, part)
    return [(f"${{item.{axis}}}", item) for item in value]


def main(folder: Path, stages: Sequence[str]) -> int:
    os.chdir(folder)
    codes = []
    for _, words in commands(Path(), stages):
        sys.argv = words
        try:
            runpy.run_path(words[0], run_name="__main__")
        except SystemExit as end:
            codes.append(int(end.code or 0))
    return max(codes)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
