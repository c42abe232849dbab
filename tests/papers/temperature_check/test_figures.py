"""Figures show the numbers of the records, and leave out what is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from softmax_temperature.papers.temperature_check import figures
from softmax_temperature.papers.temperature_check.records import Records

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


def test_learning_rates_mark_what_diverged(records: Records) -> None:
    runs = records.runs.copy()
    runs.loc[(runs["inverse_temperature"] == 0.01) & (runs["learning_rate"] == 1.0), "diverged"] = True
    texts = [text.get_text() for text in drawn("learning_rates", replace(records, runs=runs)).axes[0].texts]
    assert texts.count("div") == 1
    assert "77" in texts  # 0.1 with the lower rate.


def test_confidence_shows_both_sides_of_scaling(records: Records) -> None:
    axes = drawn("confidence", records).axes[0]
    before, after = (line.get_ydata() for line in axes.lines[:2])
    np.testing.assert_allclose(np.asarray(before) - np.asarray(after), 0.5)


def test_logit_norms_are_judged_by_the_sweep(records: Records) -> None:
    axes = drawn("logit_norms", records).axes[0]
    (band,) = axes.patches
    assert band.get_bbox().bounds[1::2] == pytest.approx((60, 20))
