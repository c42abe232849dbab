"""The files and modules that are named in docs and tables exist."""

import re
from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from pathlib import Path

import pandas as pd
import pytest

from softmax_temperature.runner.fingerprint import PACKAGE, source_path
from tests.conftest import ROOT

TEXTS = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("notebooks/*.ipynb"),
        *ROOT.glob("data/published/*.csv"),
        ROOT / "dvc.yaml",
        ROOT / "params.yaml",
        *ROOT.glob("profiles/*.yaml"),
    ]
)
DEVIATIONS = sorted(ROOT.glob("results/*/*/tables/deviations.csv"))
PATH = re.compile(rf"\bsrc/{PACKAGE}(?:/\w+)*(?:/|\.\w+)?")
FOLDERS = r"(?:benchmarks|notebooks|pipeline|profiles|tests)"
BESIDE = re.compile(rf"(?<![\w/.]){FOLDERS}/(?:\w+/)*\w+\.\w+")
DOTTED = re.compile(rf"\b{PACKAGE}(?:\.\w+)+")
# Examples of paths to a reader's own files.
EXAMPLES = {
    f"src/{PACKAGE}/losses/poly.py",
    f"{PACKAGE}.losses.poly",
    "profiles/NAME.yaml",
}


def named_paths(text: str) -> Iterator[str]:
    yield from PATH.findall(text)
    yield from BESIDE.findall(text)


def has_name(name: str) -> bool:
    """Return whether a dotted name is a module or an attribute of a module."""
    parts = name.split(".")
    for count in range(len(parts), 0, -1):
        module = ".".join(parts[:count])
        if source_path(module).is_file():
            try:
                reduce(getattr, parts[count:], import_module(module))
            except AttributeError:
                return False
            return True
    return False


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_every_file_and_every_dotted_name_of_a_text_exists(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    paths = {name for name in named_paths(text) if not (ROOT / name).exists()}
    assert paths - EXAMPLES == set()
    names = {name for name in DOTTED.findall(text) if not has_name(name)}
    assert names - EXAMPLES == set()


@pytest.mark.parametrize("path", DEVIATIONS, ids=lambda path: path.parts[-4])
def test_every_module_that_a_table_of_deviations_names_exists(path: Path) -> None:
    modules = pd.read_csv(path)["where"].unique()
    missing = [
        name for name in modules if not source_path(f"{PACKAGE}.{name}").is_file()
    ]
    assert missing == []


def test_a_name_that_no_longer_exists_is_noticed() -> None:
    assert has_name(f"{PACKAGE}.losses.focal.FocalLoss")
    assert not has_name(f"{PACKAGE}.losses.focal.Focus")
    assert not has_name(f"{PACKAGE}.losses.baselines")
    assert list(named_paths("see `pipeline/gone.py`")) == ["pipeline/gone.py"]
