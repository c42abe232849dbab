"""Figures show the numbers of the records, and leave out what is missing."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from softmax_temperature.papers.temperature_check import figures
from softmax_temperature.papers.temperature_check.records import Records

from .conftest import SEEDS, run

DRAWN: dict[str, Callable[[Records], Figure | None]] = {
    "accuracy": figures.accuracy,
    "learning_rates": figures.learning_rates,
    "confidence": figures.confidence,
    "spread": figures.spread,
    "logit_norms": figures.logit_norms,
    "three_temperatures": figures.three_temperatures,
}


def drawn(name: str, records: Records) -> Figure:
    figure = DRAWN[name](records)
    assert figure is not None
    figure.draw_without_rendering()
    return figure


@pytest.mark.parametrize("name", DRAWN)
def test_nothing_is_drawn_where_nothing_was_trained(records: Records, name: str) -> None:
    drawn(name, records)
    assert DRAWN[name](replace(records, runs=records.runs.iloc[:0], sweeps=records.sweeps.iloc[:0])) is None


def test_accuracy_shows_means_of_the_best_rate_and_the_best_temperature(records: Records) -> None:
    axes = drawn("accuracy", records).axes[0]
    assert axes.get_title() == "WRN\ndigits"
    heights = next(line.get_ydata() for line in axes.lines if len(line.get_xdata()) == 4)
    np.testing.assert_allclose(heights, [70, 80, 75, 60])
    best = next(line for line in axes.lines if line.get_marker() == "v")
    assert list(best.get_xdata()) == [0.1]


def test_networks_that_start_as_one_function_are_drawn_beside_their_own(
    records: Records, make_records: Callable[..., Records]
) -> None:
    rows = records.runs.to_dict("records")
    rows += [run("wrn-same", beta, 1.0, seed, 0.5, start="norm-1") for beta in (0.1, 10.0) for seed in SEEDS]
    figure = drawn("accuracy", make_records(rows))
    heights = [list(line.get_ydata()) for line in figure.axes[0].lines]
    assert pytest.approx([50, 50]) in heights
    spans = [high - low for low, high in (axes.get_ylim() for axes in figure.axes)]
    assert spans == pytest.approx([spans[0]] * 2)


def test_spread_has_intervals_of_the_standard_deviation(records: Records) -> None:
    axes = drawn("spread", records).axes[0]
    (low, high), *_ = (segment[:, 1] for segment in axes.collections[0].get_segments())
    # Four values 0.1 apart; chi-square with three degrees of freedom: 0.3518 and 7.8147.
    sd = 0.1 * (5 / 3) ** 0.5
    assert [low, high] == pytest.approx([sd * (3 / 7.814728) ** 0.5, sd * (3 / 0.351846) ** 0.5], rel=1e-4)


def test_learning_rates_mark_what_diverged(records: Records) -> None:
    runs = records.runs.copy()
    runs.loc[(runs["inverse_temperature"] == 0.01) & (runs["learning_rate"] == 1.0), "diverged"] = True
    texts = [text.get_text() for text in drawn("learning_rates", replace(records, runs=runs)).axes[0].texts]
    assert texts.count("div") == 1
    assert "77" in texts  # 0.1 with the lower rate.


def test_confidence_shows_both_sides_of_scaling(records: Records) -> None:
    axes = drawn("confidence", records).axes[0]
    before, after = (line.get_ydata() for line in axes.lines[:2])
    np.testing.assert_allclose(np.asarray(before) - np.asarray(after), 0.5, rtol=1e-5)  # Geometric means.


def test_logit_norms_are_judged_by_the_sweep(records: Records) -> None:
    axes = drawn("logit_norms", records).axes[0]
    (band,) = axes.patches
    assert band.get_bbox().bounds[1::2] == pytest.approx((60, 20))
