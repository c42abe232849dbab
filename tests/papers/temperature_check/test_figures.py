"""Figures show the numbers of the records, and leave out what is missing."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from softmax_temperature.papers.temperature_check import figures
from softmax_temperature.papers.temperature_check.records import Records

from .conftest import SEEDS, make_records, run

DRAWN = ("accuracy", "learning_rates", "confidence", "spread", "logit_norms", "three_temperatures")


def drawn(name: str, records: Records) -> Any:
    """The panels of a figure."""
    figure = getattr(figures, name)(records)
    figure.draw_without_rendering()
    return figure.axes


@pytest.mark.parametrize("name", DRAWN)
def test_nothing_is_drawn_where_nothing_was_trained(records: Records, name: str) -> None:
    nothing = replace(records, runs=records.runs.iloc[:0], sweeps=records.sweeps.iloc[:0])
    assert getattr(figures, name)(nothing) is None
    assert drawn(name, records)


def test_accuracy_shows_means_of_the_best_rate_and_the_best_temperature(records: Records) -> None:
    axes = drawn("accuracy", records)[0]
    assert axes.get_title() == "wrn\ndigits"
    heights = next(line.get_ydata() for line in axes.lines if len(line.get_xdata()) == 4)
    np.testing.assert_allclose(heights, [70, 80, 75, 60])
    best = next(line for line in axes.lines if line.get_marker() == "v")
    assert list(best.get_xdata()) == [0.1]


def test_networks_that_start_as_one_function_are_drawn_beside_their_own(records: Records) -> None:
    rows = [run("wrn-same", beta, 1.0, seed, 0.5, start="norm-1") for beta in (0.1, 10.0) for seed in SEEDS]
    panels = drawn("accuracy", make_records(records.runs.to_dict("records"), rows))
    assert pytest.approx([50, 50]) in [list(line.get_ydata()) for line in panels[0].lines]
    spans = [high - low for low, high in (axes.get_ylim() for axes in panels)]
    assert spans == pytest.approx([spans[0]] * 2)


def test_spread_has_intervals_of_the_standard_deviation(records: Records) -> None:
    (low, high), *_ = (segment[:, 1] for segment in drawn("spread", records)[0].collections[0].get_segments())
    # Four values 0.1 apart; chi-square with three degrees of freedom: 0.3518 and 7.8147.
    sd = 0.1 * (5 / 3) ** 0.5
    assert [low, high] == pytest.approx([sd * (3 / 7.814728) ** 0.5, sd * (3 / 0.351846) ** 0.5], rel=1e-4)


def test_learning_rates_mark_what_diverged(records: Records) -> None:
    runs = records.runs.copy()
    runs.loc[(runs["inverse_temperature"] == 0.01) & (runs["learning_rate"] == 1.0), "diverged"] = True
    texts = [text.get_text() for text in drawn("learning_rates", replace(records, runs=runs))[0].texts]
    assert texts.count("div") == 1
    assert "77" in texts  # 0.1 with another rate than the best.


def test_confidence_shows_both_sides_of_scaling(records: Records) -> None:
    before, after = (line.get_ydata() for line in drawn("confidence", records)[0].lines[:2])
    np.testing.assert_allclose(np.asarray(before) - np.asarray(after), 0.5, rtol=1e-5)  # Geometric means.


def test_logit_norms_are_judged_by_the_sweep(records: Records) -> None:
    (band,) = drawn("logit_norms", records)[0].patches
    assert band.get_bbox().bounds[1::2] == pytest.approx((60, 20))
