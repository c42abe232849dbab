"""Parameter files, profiles, the record of DVC, and heuristics."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from ruamel.yaml import YAML

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.params import read_params, validate
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.yaml_files import read_yaml
from softmax_temperature.tools.dvc_records import LOCKS, has_whole_locks, recorded_outputs
from softmax_temperature.tools.profiles import render_profile
from softmax_temperature.tools.suggest import choice
from softmax_temperature.tools.suggest.study import PAPER, fit_study, read_study, shipped_study
from tests.faults.mutations import exchanged
from tests.faults.readers.reader import SLOW, Reader

ROOT = Path(__file__).parents[3]
SOME_YAML = b"""\
# A comment.
profile: mini   # ours
seed: 0
data: {root: data/raw, download: false}
compute: &base
  engine: serial
  workers: [1, 2.5, 1e-3, .inf, 0x1F, 0o17, 2001-01-01, 12:30:45, ~, yes, "quo\\u0074ed", 'single']
more:
  <<: *base
  text: |
    several
    lines
"""
LOCK = {
    "schema": "2.0",
    "stages": {
        "fetch": {
            "cmd": "python pipeline/fetch.py",
            "deps": [{"path": "pipeline/fetch.py", "hash": "md5", "md5": "a0" * 16, "size": 1}],
            "params": {"params.yaml": {"seed": 0}},
            "outs": [{"path": "data/prepared", "hash": "md5", "md5": "b0" * 16 + ".dir", "size": 2, "nfiles": 1}],
        }
    },
}
"""A record of DVC's, as of version 3."""
AT_WORK = {"/a/data": {"write": {"pid": 7, "cmd": "dvc repro"}}, "/a/params.yaml": {"read": [{"pid": 7, "cmd": "b"}]}}
"""DVC's notes of who is at work on what."""
BACKBONE = {
    "library": "project",
    "architecture": "resnet",
    "weights": "untrained",
    "embedding": 16,
    "input_size": 32,
    "mean": [0.5, 0.5, 0.5],
    "std": [0.5, 0.5, 0.5],
}


def as_yaml(value: Any) -> bytes:
    stream = io.BytesIO()
    YAML(typ="safe").dump(value, stream)
    return stream.getvalue()


@cache
def plain_params() -> Any:
    return render_profile("smoke", ROOT / "profiles")[1].model_dump(mode="json")


def read_file(folder: Path, content: bytes) -> None:
    (folder / "params.yaml").write_bytes(content)
    found = read_yaml(folder / "params.yaml")
    with suppress(InputError):
        validate(found, where="params.yaml")


def read_whole_file(folder: Path, content: bytes) -> None:
    (folder / "params.yaml").write_bytes(content)
    read_params(folder / "params.yaml")


def read_lock(folder: Path, content: bytes) -> None:
    (folder / "dvc.lock").write_bytes(content)
    recorded_outputs(folder)


def read_locks(folder: Path, content: bytes) -> None:
    (folder / LOCKS).parent.mkdir(parents=True)
    (folder / LOCKS).write_bytes(content)
    has_whole_locks(folder)


def read_overlay(folder: Path, content: bytes) -> None:
    (folder / "defaults.yaml").write_bytes((ROOT / "profiles" / "defaults.yaml").read_bytes())
    (folder / "mine.yaml").write_bytes(content)
    render_profile("mine", folder)


def overlay() -> bytes:
    return (ROOT / "profiles" / "smoke.yaml").read_bytes()


def read_choice(folder: Path, content: Any) -> None:
    """Up to the building of the network, whose arguments are its own business."""
    (folder / "params.yaml").write_bytes(as_yaml(content))
    with patch.object(choice, "load_backbone"), patch.object(choice, "locate_weights"):
        choice.load_choice(choice.Wish("mine", None, download=False, params=folder / "params.yaml"))


def read_heuristic(folder: Path, content: bytes) -> None:
    (folder / "heuristic.json").write_bytes(content)
    read_study(folder / "heuristic.json")


def heuristics() -> list[bytes]:
    study = shipped_study()
    return [study.model_dump_json().encode(), study.heuristic.to_json().encode()]


def pairs() -> bytes:
    """Nine pairs of three data sets, their statistics at random."""
    generator = np.random.default_rng(0)
    statistics = {name: generator.uniform(1, 2, 9) for name in STATISTICS}
    optima = {"inverse_temperature": [20.0, 30.0, 40.0] * 3, "plateau_low": 15.0, "plateau_high": 45.0}
    names = {"dataset": np.repeat(["a", "b", "c"], 3), "backbone": ["x", "y", "z"] * 3}
    return pd.DataFrame({**names, **statistics, **optima}).to_csv(index=False).encode()


def costs() -> bytes:
    return b"rule,mean\nbest,0.0\nmedian,0.01\n"


def study_files() -> dict[str, bytes]:
    return {
        f"{PAPER}/tables/pairs.csv": pairs(),
        f"{PAPER}/tables/cost_of_rules.csv": costs(),
        "params.yaml": as_yaml({PAPER: {key: plain_params()[PAPER][key] for key in ("search", "heuristic")}}),
    }


def read_results(exchanged: str, folder: Path, content: bytes) -> None:
    for name, its_content in (study_files() | {exchanged: content}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(its_content)
    fit_study(folder)


def study_reader(name: str) -> Reader:
    return Reader(STUDY, lambda: [study_files()[name]], lambda *given: read_results(name, *given), share=0.2)


PARAMETERS = ("yaml_files.read_yaml",)
HEURISTICS = ("heuristic.fitted.Heuristic.from_json", "suggest.study.read_study")
STUDY = ("tables.read_csv", "yaml_files.read_yaml")

READERS = {
    "YAML": Reader(PARAMETERS, lambda: [SOME_YAML], read_file),
    "parameter file": Reader(PARAMETERS, lambda: [as_yaml(plain_params())], read_whole_file, share=SLOW),
    "parameters": Reader(
        (), lambda: [plain_params()], lambda _, content: validate(content, where="params.yaml"), exchanged
    ),
    "profile": Reader(PARAMETERS, lambda: [overlay()], read_overlay, share=SLOW),
    "record of DVC": Reader(PARAMETERS, lambda: [as_yaml(LOCK)], read_lock),
    "fields of DVC's record": Reader(
        PARAMETERS, lambda: [LOCK], lambda folder, value: read_lock(folder, as_yaml(value)), exchanged
    ),
    "locks of DVC": Reader(("dvc_records.has_whole_locks",), lambda: [json.dumps(AT_WORK).encode()], read_locks),
    "backbone": Reader(
        PARAMETERS,
        lambda: [{"seed": 0, "data": {"root": "raw"}, "backbones": {"mine": BACKBONE}}],
        read_choice,
        exchanged,
    ),
    "heuristic": Reader(HEURISTICS, heuristics, read_heuristic),
    "heuristic's fields": Reader(
        HEURISTICS,
        lambda: [json.loads(content) for content in heuristics()],
        lambda folder, value: read_heuristic(folder, json.dumps(value).encode()),
        exchanged,
    ),
    **{
        f"study: {name}": study_reader(name)
        for name in (f"{PAPER}/tables/pairs.csv", f"{PAPER}/tables/cost_of_rules.csv", "params.yaml")
    },
}
