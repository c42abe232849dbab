"""The view that the section `notebooks` selects is checked before any notebook runs."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from softmax_temperature.papers.shared.views import (
    View,
    of_arms,
    require_studies,
    view_of,
)
from softmax_temperature.params import Params, read_yaml, validate
from softmax_temperature.runner.errors import InputError
from tests.conftest import ROOT

RUNS = pd.DataFrame(
    {
        "mode": ["none", "last_layer", "last_layer"],
        "factor": [None, 1.0, 0.5],
        "gamma": ["3", "sample", None],
        "flip": [True, False, False],
    }
)


def asked(**section: Any) -> Params:
    content = read_yaml(ROOT / "params.yaml")
    content["notebooks"] |= section
    return validate(content, where="params.yaml")


@pytest.fixture
def results(tmp_path: Path) -> Path:
    for study, papers in (("mini", ["cooling"]), ("other", ["cooling"]), ("a", "b")):
        for paper in papers:
            folder = tmp_path / study / paper
            folder.mkdir(parents=True)
            (folder / "claims.json").write_text("[]")
            RUNS.to_csv(folder / "runs.csv", index=False)
    return tmp_path


def test_by_default_all_runs_of_the_profile_are_shown_at_the_level_of_verdicts(
    results: Path,
) -> None:
    assert view_of(asked(), "cooling", results=results) == View("mini", 0.9, (), None)


def test_the_section_becomes_the_parameters_of_the_notebook(results: Path) -> None:
    arms = [{"mode": "none"}, {"factor": [0.5, 1]}]
    params = asked(level=0.95, arms={"cooling": arms}, beside="other")
    expected = {"study": "mini", "level": 0.95, "arms": arms, "beside": "other"}
    assert view_of(params, "cooling", results=results).parameters() == expected
    # If the second study has no results of the paper, only the first study is shown.
    beside = view_of(asked(beside="a"), "cooling", results=results).beside
    assert beside is None


def test_a_notebook_of_another_study_needs_neither_its_profile_nor_all_papers(
    results: Path,
) -> None:
    params = asked(study="other").model_copy(update={"papers": ["focal"]})
    assert view_of(params, "cooling", results=results).study == "other"


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ({"study": "minj"}, r"notebooks\.study: unknown study 'minj'.*'mini'"),
        ({"beside": "othr"}, r"notebooks\.beside: unknown study 'othr'.*'other'"),
        (
            {"study": "a"},
            r"study 'a' has no results of cooling\. These have: mini, other",
        ),
        (
            {"arms": {"cooling": [{"mode": "none"}, {"mode": "last"}]}},
            r"cooling\.1: no run has mode last\. In the .* mode is none, last_layer",
        ),
        (
            {"arms": {"cooling": [{"mod": "none"}]}},
            r"notebooks\.arms\.cooling\.0: unknown factor 'mod'.*'mode'",
        ),
    ],
)
def test_a_missing_study_or_arm_is_named(
    results: Path, section: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        view_of(asked(**section), "cooling", results=results)


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ({"level": 1.0}, r"notebooks\.level: Input should be less than 1"),
        ({"level": 0}, r"notebooks\.level: Input should be greater than 0"),
        ({"arms": {"coolng": [{"mode": "none"}]}}, r"unknown paper 'coolng'.*cooling"),
        ({"arms": {"cooling": [{}]}}, r"at least 1 item"),
        ({"levl": 0.9}, r"unknown parameter 'levl'.*'level'"),
    ],
)
def test_a_value_that_no_study_could_have_is_refused_with_the_parameters(
    section: dict[str, Any], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        asked(**section)


def test_the_first_stage_refuses_a_study_before_anything_is_trained(
    results: Path,
) -> None:
    require_studies(asked(), results=results / "none yet")
    with pytest.raises(InputError, match="unknown study 'minj'"):
        require_studies(asked(study="minj"), results=results)
    # One paper of this study can be shown, but the notebooks of other papers would
    # fail.
    params = asked(study="other")
    assert view_of(params, "cooling", results=results).study == "other"
    with pytest.raises(InputError, match=r"'other' has no results of classifier_temp"):
        require_studies(params, results=results)


@pytest.mark.parametrize(
    ("arm", "chosen"),
    [
        ({"mode": "none"}, [0]),
        ({"mode": "last_layer", "factor": 1}, [1]),
        ({"factor": [0.5, 1.0]}, [1, 2]),
        ({"factor": None}, [0]),
        ({"gamma": 3}, [0]),
        ({"gamma": "sample"}, [1]),
        ({"flip": False}, [1, 2]),
    ],
)
def test_an_arm_is_what_its_factors_select(
    arm: dict[str, Any], chosen: list[int]
) -> None:
    assert list(of_arms([arm]).select(RUNS).index) == chosen
    both = of_arms([arm, {"mode": "none"}]).select(RUNS)
    assert list(both.index) == sorted({0, *chosen})
