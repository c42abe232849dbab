"""The heuristic that comes with the package is the one of the committed study."""

from __future__ import annotations

import itertools
import os
from pathlib import Path

import pandas as pd
import pytest

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.heuristic import Heuristic, fit, identified
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools.suggest.study import LARGEST, fit_study, read_study, shipped_study, write_study


def test_the_shipped_study_is_what_the_committed_table_gives(project_root: Path) -> None:
    results = project_root / "results" / "collection"
    shipped, again = shipped_study(), fit_study(results)
    assert shipped.model_copy(update={"heuristic": again.heuristic}) == again
    assert numbers(shipped.heuristic) == pytest.approx(numbers(again.heuristic), rel=1e-9)
    assert [term.statistic for term in shipped.heuristic.terms] == [term.statistic for term in again.heuristic.terms]


def numbers(heuristic: Heuristic) -> list[float]:
    """All numbers of the fit; the last bits of a regression depend on the machine."""
    assert heuristic.margin is not None
    of_terms = [(term.coefficient, term.mean, term.scale, term.low, term.high) for term in heuristic.terms]
    return [heuristic.intercept, heuristic.margin, heuristic.level, *heuristic.bounds, *itertools.chain(*of_terms)]


def test_the_shipped_heuristic_is_the_stage_s_own_and_that_of_a_plain_fit(project_root: Path) -> None:
    folder = project_root / "results" / "collection" / "classifier_temperature"
    shipped = shipped_study().heuristic
    assert shipped == Heuristic.from_json((folder / "heuristic.json").read_text())
    pairs = pd.read_csv(folder / "tables" / "pairs.csv")
    plain = fit(identified(pairs, max_share=0.5), statistics=4)
    for row in pairs.to_dict("records")[::10]:
        statistics = {name: row[name] for name in STATISTICS}
        first, second = shipped.predict(statistics), plain.predict(statistics)
        assert (first.inverse_temperature, first.low, first.high) == pytest.approx(
            (second.inverse_temperature, second.low, second.high), rel=1e-9
        )


def test_ranges_and_median_are_those_of_the_table(project_root: Path) -> None:
    pairs = pd.read_csv(project_root / "results/collection/classifier_temperature/tables/pairs.csv")
    study = shipped_study()
    assert study.median_inverse_temperature == pairs["inverse_temperature"].median()
    inside = {name: float(pairs[name].median()) for name in STATISTICS}
    assert study.outside(inside) == []
    assert study.outside(inside | {"dim": 1e6, "n_classes": 2.0}) == ["dim", "n_classes"]


def test_another_heuristic_is_read_with_and_without_its_study(tmp_path: Path, project_root: Path) -> None:
    shipped = shipped_study()
    whole = tmp_path / "whole.json"
    whole.write_text(shipped.model_dump_json())
    assert read_study(whole) == shipped
    alone = read_study(project_root / "results/mini/classifier_temperature/heuristic.json")
    assert alone.heuristic.n_datasets == 6
    assert (alone.median_inverse_temperature, alone.ranges) == (None, {})
    assert alone.search == shipped.search


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"profile": 1}', "{", '{"a": NaN}', "no json"])
def test_what_is_no_heuristic_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(text)
    with pytest.raises(InputError, match=r"bad\.json: is no heuristic") as caught:
        read_study(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="no such file"):
        read_study(tmp_path / "none.json")


def test_a_file_that_is_too_long_for_a_heuristic_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "long.json"
    path.write_text(shipped_study().model_dump_json())
    os.truncate(path, LARGEST + 1)
    with pytest.raises(InputError, match=r"long\.json: is 1,048,577 bytes long, too long for a heuristic"):
        read_study(path)


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such table"):
        fit_study(tmp_path)


@pytest.mark.parametrize(
    ("place", "says"), [("none/study.json", "there is no folder"), (".", "is a folder, not a file")]
)
def test_a_study_is_written_into_a_folder_that_is_there_or_not_at_all(
    tmp_path: Path, project_root: Path, place: str, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        write_study(project_root / "results" / "mini", tmp_path / place)
    assert list(tmp_path.iterdir()) == []
