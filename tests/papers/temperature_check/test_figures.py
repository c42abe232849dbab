"""Figures of training runs show the right means, spans and marks."""

from typing import Any

import numpy as np
import pytest

from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.temperature_check import figures

from .conftest import SEEDS, lost, make_runs, sweep, training

DRAWN = (
    figures.accuracy,
    figures.learning_rates,
    figures.confidence,
    figures.spread,
    figures.logit_norms,
    figures.three_temperatures,
)


def drawn(draw: Any, runs: Runs) -> Any:
    """The panels of a figure."""
    figure = draw(runs)
    figure.draw_without_rendering()
    return figure.axes


@pytest.mark.parametrize("draw", DRAWN)
def test_nothing_is_drawn_where_nothing_was_trained(runs: Runs, draw: Any) -> None:
    assert draw(make_runs()) is None
    assert drawn(draw, runs)


def test_accuracy_shows_means_of_the_best_rate_and_the_best_temperature(
    runs: Runs,
) -> None:
    axes = drawn(figures.accuracy, runs)[0]
    assert axes.get_title() == "Wide-ResNet\nCIFAR-10"
    means = next(line for line in axes.lines if len(line.get_xdata()) == 4)
    np.testing.assert_allclose(means.get_ydata(), [70, 80, 75, 60])
    best = next(line for line in axes.lines if line.get_marker() == "v")
    assert list(best.get_xdata()) == [0.1]


def test_accuracy_has_the_same_span_in_all_panels_and_no_tick_above_100() -> None:
    rows = [training("wrn", 1.0, 0.1, seed, 0.95 - 0.2 * seed) for seed in SEEDS]
    runs = make_runs(rows, [training("gru", 1.0, 0.1, 0, 0.97)])
    first, second = drawn(figures.accuracy, runs)
    low, high = first.get_ylim()
    top = 100 + 0.1 * (high - low)
    assert second.get_ylim() == pytest.approx((top - (high - low), top))
    assert max(second.get_yticks()) <= 100


def test_the_triangle_of_the_best_is_inside_its_panel_above_every_accuracy() -> None:
    rows = [
        training("wrn", temperature, 0.1, seed, accuracy)
        for temperature, accuracy in ((0.1, 1.0), (1.0, 0.01))
        for seed in SEEDS
    ]
    (axes,) = drawn(figures.accuracy, make_runs(rows))
    figure = axes.get_figure()
    figure.draw_without_rendering()
    (best,) = (line for line in axes.lines if line.get_marker() == "v")
    (x,), (height,) = best.get_data()
    _, place = best.get_transform().transform((x, height))
    half = best.get_markersize() / 2 * figure.dpi / 72
    box = axes.get_window_extent()
    assert place + half < box.y1
    points = np.concatenate([one.get_offsets()[:, 1] for one in axes.collections])
    highest = axes.transData.transform((1, points.max()))[1]
    assert highest < place - half


def test_spread_has_intervals_of_the_standard_deviation(runs: Runs) -> None:
    bars = drawn(figures.spread, runs)[0].collections[0].get_segments()
    # The accuracies of the four seeds are 0.1 percentage points apart. The chi-square
    # quantiles with three degrees of freedom are 0.3518 and 7.8147.
    sd = 0.1 * (5 / 3) ** 0.5
    ends = [sd * (3 / 7.814728) ** 0.5, sd * (3 / 0.351846) ** 0.5]
    assert bars[0][:, 1].tolist() == pytest.approx(ends, rel=1e-4)


def test_learning_rates_mark_the_places_where_every_training_diverged() -> None:
    rows = sweep("wrn", (0.70, 0.80, 0.75, 0.60))
    ended = [
        lost(row)
        if (row["inverse_temperature"], row["learning_rate"]) == (0.01, 1.0)
        else row
        for row in rows
    ]
    (axes,) = drawn(figures.learning_rates, make_runs(ended))
    texts = [text.get_text() for text in axes.texts]
    assert texts.count("div") == 1
    assert "77" in texts  # The accuracy in % at 0.1, with a rate that is not the best.


def framed(axes: Any) -> dict[float, float]:
    """The learning rate that is framed, for each inverse temperature."""
    columns = [float(label.get_text()) for label in axes.get_xticklabels()]
    rows = [float(label.get_text()) for label in axes.get_yticklabels()]
    places = [
        (int(min(line.get_xdata())), int(min(line.get_ydata()))) for line in axes.lines
    ]
    return {columns[column]: rows[row] for column, row in places}


def test_a_frame_is_the_best_rate_of_each_inverse_temperature() -> None:
    rows = sweep("wrn", (0.70, 0.80, 0.75, 0.60))
    for row in rows:
        if (row["inverse_temperature"], row["learning_rate"]) == (1.0, 1.0):
            row["validation"] = {"accuracy": 0.9}
    (axes,) = drawn(figures.learning_rates, make_runs(rows))
    assert framed(axes) == {0.01: 0.1, 0.1: 0.1, 1.0: 1.0, 10.0: 0.1}


def test_no_frame_is_around_a_place_where_every_training_diverged() -> None:
    rows = sweep("wrn", (0.70, 0.80, 0.75, 0.60))
    ended = [
        lost(row)
        if row["inverse_temperature"] == 10 or row["learning_rate"] == 0.1
        else row
        for row in rows
    ]
    (axes,) = drawn(figures.learning_rates, make_runs(ended))
    assert set(framed(axes)) == {0.01, 0.1, 1.0}
    assert 0.1 not in framed(axes).values()


def test_confidence_shows_both_sides_of_scaling(runs: Runs) -> None:
    before, after = drawn(figures.confidence, runs)[0].lines[:2]
    gap = np.asarray(before.get_ydata()) - np.asarray(after.get_ydata())
    np.testing.assert_allclose(gap, 0.5)


def test_the_band_behind_logit_norms_is_the_range_of_the_sweep(runs: Runs) -> None:
    (band,) = drawn(figures.logit_norms, runs)[0].patches
    assert band.get_bbox().bounds[1::2] == pytest.approx((60, 20))
