"""Figures name their pair and show trained backbones separately."""

from dataclasses import replace

import pandas as pd
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from softmax_temperature.papers.classifier_temperature import figures
from softmax_temperature.papers.shared.runs import Runs
from tests.papers.classifier_temperature.conftest import (
    BACKBONES,
    DATASETS,
    changed_pairs,
)


def with_predictions(runs: Runs) -> Runs:
    """Add predictions: exact for the fit on all pairs, negative for left-out pairs."""
    predictions = runs.tables["pairs"][["dataset", "backbone", "inverse_temperature"]]
    predictions = predictions.assign(
        fitted=predictions["inverse_temperature"],
        left_out=-predictions["inverse_temperature"],
    )
    return replace(runs, tables={**runs.tables, "predictions": predictions})


def test_figure_1_names_the_classes_and_samples_of_each_data_set(runs: Runs) -> None:
    sizes = {"n_classes": 10.0, "n_samples": 1800.0}
    figure = figures.figure_1(changed_pairs(runs, best_accuracy=0.9, **sizes))
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == [f"{name} (10; 1,800)" for name in sorted(DATASETS)]
    plt.close(figure)


def test_figure_2_names_its_pair_and_counts_its_repeats(runs: Runs) -> None:
    figure = figures.figure_2(runs)
    assert figure.get_suptitle() == "set0; small: mean ± sd over 4 repeats"
    plt.close(figure)


def test_figure_2_draws_the_mean_of_each_loss(runs: Runs) -> None:
    figure = figures.figure_2(runs)
    heights = {tuple(line.get_ydata()) for line in figure.axes[0].get_lines()}
    assert any(line == pytest.approx((70, 70, 75.15, 75.15)) for line in heights)
    plt.close(figure)


def test_figure_4_says_the_correlation_of_each_panel(runs: Runs) -> None:
    figure = figures.figure_4(with_predictions(runs))
    titles = [axes.get_title().splitlines()[1:] for axes in figure.axes]
    assert titles == [
        ["Pearson r of α: 1.00", "0 of 40 below 1"],
        ["Pearson r of α: −1.00", "40 of 40 below 1"],
    ]
    plt.close(figure)


def test_figure_4_leaves_the_marks_of_untrained_backbones_open(runs: Runs) -> None:
    figure = figures.figure_4(with_predictions(runs))
    marks = figure.axes[0].collections
    open_marks = [mark for mark in marks if not len(mark.get_facecolor())]
    assert sum(len(mark.get_offsets()) for mark in open_marks) == len(DATASETS)
    plt.close(figure)


def strips(figure: Figure) -> list[tuple[float, float]]:
    """Return the ends of the grey strips; check that they are equal in both panels."""
    left, right = (
        [
            (patch.get_y(), patch.get_y() + patch.get_height())
            for patch in axes.patches
            if isinstance(patch, Rectangle)
        ]
        for axes in figure.axes
    )
    assert left == right
    return left


def heights(axes: Axes) -> set[float]:
    return {float(y) for mark in axes.collections for _, y in mark.get_offsets()}


def test_figure_4_has_strips_for_what_its_axes_cannot_hold(runs: Runs) -> None:
    predicted = with_predictions(runs)
    table = predicted.tables["predictions"].copy()
    table.loc[0, "fitted"] = 10_000.0
    tables = {**predicted.tables, "predictions": table}
    figure = figures.figure_4(replace(predicted, tables=tables))
    fitted, left_out = figure.axes
    assert (fitted.get_xscale(), fitted.get_yscale()) == ("log", "log")
    below, above = strips(figure)
    assert heights(left_out) == {0.55}, "a mark is not in the strip"
    assert below[0] < 0.55 < below[1] < 1
    assert above[0] < max(heights(fitted)) < above[1]
    names = [label.get_text() for label in fitted.get_yticklabels()]
    assert names[-2:] == ["below 1", "above 500"]
    plt.close(figure)


def test_figure_4_has_no_strip_where_every_prediction_is_on_its_axes(
    runs: Runs,
) -> None:
    predicted = with_predictions(runs)
    table = predicted.tables["predictions"]
    tables = {**predicted.tables, "predictions": table.assign(left_out=table["fitted"])}
    figure = figures.figure_4(replace(predicted, tables=tables))
    assert strips(figure) == []
    low, high = figure.axes[0].get_ylim()
    assert low < min(heights(figure.axes[0])) < max(heights(figure.axes[0])) < high
    plt.close(figure)


def test_accuracy_curves_have_a_panel_for_each_data_set(runs: Runs) -> None:
    figure = figures.accuracy_curves(runs)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert sorted(titles) == DATASETS
    lines = figure.axes[0].get_lines()
    assert len(lines) == 2 * len(BACKBONES)
    plt.close(figure)


def test_figure_3_has_the_trained_backbones_as_diamonds(runs: Runs) -> None:
    pairs = runs.tables["pairs"]
    names = ["feats_corr", "dim"]
    correlations = pd.DataFrame(
        {
            "statistic": names,
            "r": [0.9, -0.1],
            "absolute_r": [0.9, 0.1],
            "absolute_low": [0.8, 0.0],
            "absolute_high": [0.95, 0.2],
        }
    )
    tables = {**runs.tables, "correlations": correlations}
    figure = figures.figure_3(replace(runs, tables=tables))
    trained = pairs[pairs["backbone"] != "untrained-64"]
    r = trained[names].corrwith(trained["inverse_temperature"]).abs()
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    diamonds = lines["trained backbones only"]
    assert list(diamonds.get_xdata()) == pytest.approx(r.tolist())
    plt.close(figure)
