"""`make repro` installs Ray and sacrebleu only if the parameters use them."""

from pathlib import Path
from typing import Any

import pytest

from softmax_temperature.params import Params
from softmax_temperature.tools import extras
from tests.conftest import ROOT
from tests.pipeline.whole_runs import changed
from tests.profiles import profile


@pytest.fixture(scope="module")
def mini() -> Params:
    return profile("mini")


@pytest.mark.parametrize(
    ("changes", "used"),
    [
        ({}, ["translation"]),
        ({"compute/engine": "ray"}, ["ray", "translation"]),
        ({"focal/translation": None}, []),
        ({"papers": ["classifier_temperature", "cooling"]}, []),
    ],
)
def test_extras_are_those_that_the_parameters_use(
    mini: Params, changes: dict[str, Any], used: list[str]
) -> None:
    assert extras.used_extras(changed(mini, changes)) == used


def test_only_missing_extras_are_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    params = ROOT / "params.yaml"
    installed: set[str] = set()
    monkeypatch.setattr(
        extras, "find_spec", lambda name: name if name in installed else None
    )
    extras.print_missing(Path(params))
    assert capsys.readouterr().out == "translation\n"
    installed.add("sacrebleu")
    extras.print_missing(Path(params))
    assert capsys.readouterr().out == ""
