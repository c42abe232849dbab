"""Figures name their pair and show trained backbones apart."""

from dataclasses import replace

import pandas as pd
import pytest
from matplotlib import pyplot as plt

from softmax_temperature.papers.classifier_temperature import figures
from softmax_temperature.papers.shared.runs import Runs
from tests.papers.classifier_temperature.conftest import BACKBONES, DATASETS


def with_predictions(runs: Runs) -> Runs:
    """Each pair is predicted exactly, by the regression on all pairs."""
    predictions = runs.tables["pairs"][["dataset", "backbone", "inverse_temperature"]]
    predictions = predictions.assign(
        fitted=predictions["inverse_temperature"],
        left_out=-predictions["inverse_temperature"],
    )
    return replace(runs, tables={**runs.tables, "predictions": predictions})


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
    titles = [axes.get_title().splitlines()[-1] for axes in figure.axes]
    assert titles == [
        "Pearson r of α: 1.00; 0 of 40 below 1",
        "Pearson r of α: −1.00; 40 of 40 below 1",
    ]
    plt.close(figure)


def test_figure_4_leaves_the_marks_of_untrained_backbones_open(runs: Runs) -> None:
    figure = figures.figure_4(with_predictions(runs))
    marks = figure.axes[0].collections
    open_marks = [mark for mark in marks if not len(mark.get_facecolor())]
    assert sum(len(mark.get_offsets()) for mark in open_marks) == len(DATASETS)
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
