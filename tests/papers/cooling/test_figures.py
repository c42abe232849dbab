"""Figures show the numbers of the runs and leave out what is missing."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from softmax_temperature.papers.cooling import figures
from softmax_temperature.papers.shared.factors import where
from softmax_temperature.papers.shared.records import write_pixels
from softmax_temperature.papers.shared.runs import Runs
from tests.papers.cooling.conftest import SEEDS, changed

DRAWN: dict[str, Callable[[Runs], Figure | None]] = {
    "1": figures.figure_1,
    "2": figures.figure_2,
    "rates": figures.learning_rates,
    "curves": figures.training_curves,
    "effects": figures.effects,
}


def drawn(name: str, runs: Runs) -> Figure:
    figure = DRAWN[name](runs)
    assert figure is not None
    figure.draw_without_rendering()
    return figure


def lines(
    axes: Axes, colour: object, style: str = "-", marker: str | None = None
) -> list[list[float]]:
    """The y values of each line with the given colour, style and marker."""
    return [
        np.asarray(line.get_ydata(), float).tolist()
        for line in axes.lines
        if line.get_color() == colour
        and line.get_linestyle() == style
        and marker in (None, line.get_marker())
    ]


def texts(axes: Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


@pytest.mark.parametrize("name", DRAWN)
def test_nothing_is_drawn_where_nothing_was_trained(runs: Runs, name: str) -> None:
    drawn(name, runs)
    nothing = runs.only(where(experiment="adam", mode="distributed"))
    assert DRAWN[name](nothing) is None


@pytest.mark.parametrize("name", ["1", "2", "rates"])
def test_a_profile_in_which_all_diverged_is_drawn(runs: Runs, name: str) -> None:
    drawn(name, changed(runs, overflowed=True))


def test_figure_1_marks_what_diverged_and_shows_the_baseline(runs: Runs) -> None:
    (axes,) = drawn("1", runs).axes
    (means,) = lines(axes, figures.COLOURS["last_layer"], marker="o")[:1]
    assert means == pytest.approx([77.2, 78.2, 79.7]), (
        "factors 0.5, 0.75 and 1 (Table 1)"
    )
    assert lines(axes, figures.COLOURS["none"], "--") == [pytest.approx([74.8, 74.8])]
    (cross,) = (line for line in axes.lines if line.get_marker() == "x")
    assert list(cross.get_xdata()) == [1.25]
    assert texts(axes) == ["3 of 3"]
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        "0.5",
        "0.75",
        "1",
        "1.25",
    ]


def test_a_network_with_a_baseline_of_its_own_in_figure_1_comes_first(
    runs: Runs,
) -> None:
    own = where(experiment="digits")
    both = changed(runs, own, role="figure_1", network="resnet")
    cooled = own & where(mode="last_layer")
    first, second = drawn("1", changed(both, cooled, factor=0.5)).axes
    assert first.get_title() == "digits; ResNet"
    assert second.get_title() == "CIFAR-10; small VGG"


def test_a_ruinous_factor_does_not_set_the_scale(runs: Runs) -> None:
    hot = where(experiment="factors", factor=1.25)
    trained = changed(runs, hot, overflowed=False)
    rows = pd.DataFrame({"run": trained.select(hot).index, "value": 0.2})
    rows = rows.assign(split="test", epoch=6, scaled=False, metric="accuracy")
    assert len(rows) == len(SEEDS)
    measurements = pd.concat([trained.measurements, rows])
    (axes,) = drawn("1", replace(trained, measurements=measurements)).axes
    assert axes.get_ylim()[0] > 60
    (triangles,) = (line for line in axes.lines if line.get_marker() == "v")
    assert list(triangles.get_xdata()) == [1.25] * 3


def test_figure_2_follows_the_last_layer_and_marks_resets(runs: Runs) -> None:
    left, right = drawn("2", runs).axes
    assert lines(left, figures.COLOURS["last_layer"])[0] == pytest.approx(
        [1, 0.5, 2, 20, 40, 80, 160]
    )
    # The resets at epochs 5 and 6 lower the product to 100; without resets, the
    # products would be 160 and 320.
    heights = lines(right, figures.COLOURS["periodic"])
    assert heights == [pytest.approx([1, 0.5, 2, 20, 40, 160, 100, 200, 100])] * 3
    assert lines(right, figures.COLOURS["periodic"], "--")[0] == pytest.approx(
        [0.5, 2, 20, 40, 160, 320]
    )
    resets = [line for line in right.lines if line.get_marker() == "v"]
    assert [list(line.get_xdata()) for line in resets] == [[5, 6] * 3]
    assert "factor 0.75" in left.get_title()
    printed = [
        line
        for axes in (left, right)
        for line in axes.lines
        if line.get_marker() == "+"
    ]
    assert [list(line.get_xdata()) for line in printed] == [[19], [9]]
    assert len(drawn("2", runs.only(where(experiment="vgg"))).axes) == 1, (
        "an empty panel is drawn"
    )


def test_the_sweep_has_the_main_rate_and_says_what_diverged(runs: Runs) -> None:
    (axes,) = drawn("rates", runs).axes
    assert lines(axes, figures.COLOURS["none"], marker="o") == [
        pytest.approx([60.1, 74.8])
    ]
    assert lines(axes, figures.COLOURS["last_layer"], marker="o") == [
        pytest.approx([65.2, 79.7, 75.2])
    ]
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        "0.001",
        "0.01",
        "0.1",
    ]
    (cross,) = (line for line in axes.lines if line.get_marker() == "x")
    assert (list(cross.get_xdata()), cross.get_color()) == (
        [0.1],
        figures.COLOURS["none"],
    )


def test_effects_are_means_without_a_schedule(runs: Runs) -> None:
    weights, gradients, logits, ece = drawn("effects", runs).axes
    assert lines(weights, figures.COLOURS["none"])[0] == pytest.approx(
        [10 * 2**epoch for epoch in range(1, 7)]
    )
    assert lines(gradients, figures.COLOURS["none"])[0][-1] == pytest.approx(1 / 64)
    assert lines(logits, figures.COLOURS["distributed"])[0] == pytest.approx([1] * 6)
    assert lines(ece, figures.COLOURS["periodic"])[0] == pytest.approx(
        [1, 2, 3, 4, 5, 6]
    )


def test_the_panel_shows_void_in_black_and_counts_pixels_without_it(
    runs: Runs, tmp_path: Path
) -> None:
    pixels = tmp_path / "segmentation.safetensors"
    assert figures.segmentation_panel(runs, pixels) is None
    labels = np.array([[[0, 0, 1], [1, 2, 11]]], np.uint8)
    right, wrong = np.where(labels == 11, 0, labels), np.zeros_like(labels)
    images = np.zeros((1, 2, 3, 3), np.uint8)
    write_pixels(
        pixels, {"images": images, "labels": labels, "none": wrong, "last_layer": right}
    )
    figure = figures.segmentation_panel(runs, pixels)
    assert figure is not None
    figure.draw_without_rendering()
    _, label, without, cooled = figure.axes
    assert label.images[0].get_array()[1, 2].tolist() == [0, 0, 0]
    assert (
        label.images[0].get_array()[0, 0].tolist()
        == cooled.images[0].get_array()[1, 2].tolist()
    ), "class 0 has two colours"
    assert [*texts(without), *texts(cooled)] == ["40 % right", "100 % right"], (
        "expected 2 of 5 and 5 of 5 pixels"
    )
    assert without.get_ylabel() == "No Cooling\nmIoU 40.0 %"


def test_training_curves_have_one_row_per_schedule_and_test_data_their_own_scale(
    runs: Runs,
) -> None:
    panels = drawn("curves", runs).axes
    titles = [
        "cosine",
        "exponential, fast",
        "exponential, slow",
        "linear",
        "no schedule",
        "piecewise constant",
    ]
    assert [axes.get_ylabel() for axes in panels[::2]] == titles
    test, train = (lines(axes, figures.COLOURS["none"])[0] for axes in panels[8:10])
    # After the last epoch the seeds have test accuracies of 74.7, 74.8 and 74.9 %. The
    # accuracies rise by 5 points per epoch, and are 10 points higher on training data.
    assert test == pytest.approx([49.8, 54.8, 59.8, 64.8, 69.8, 74.8])
    assert train == pytest.approx([value + 10 for value in test])
    assert panels[0].get_ylim() == panels[2].get_ylim() != panels[1].get_ylim()


def without_test_accuracy(runs: Runs, *epochs: int) -> Runs:
    """The study without test accuracies after the given epochs."""
    values = runs.measurements
    left_out = (
        (values["metric"] == "accuracy")
        & (values["split"] == "test")
        & values["epoch"].isin(epochs)
    )
    assert left_out.any()
    return replace(runs, measurements=values[~left_out])


def test_a_lone_first_epoch_is_shown_as_a_number_below_the_scale(runs: Runs) -> None:
    figure = drawn("curves", without_test_accuracy(runs, 2, 3, 4))
    tests, trains = figure.axes[::2], figure.axes[1::2]
    # The smallest accuracy of any seed after epoch 5 is 69.7 %, without Cooling and
    # without a schedule, so the scale starts at 67.7 %. After the first epoch the
    # smallest mean is 49.8 %.
    assert [axes.get_ylim()[0] for axes in tests] == pytest.approx([67.7] * 6)
    assert texts(tests[4]) == ["50 to 55 %"]
    (triangle,) = (line for line in tests[4].lines if line.get_marker() == "v")
    assert list(triangle.get_xdata()) == [1]
    drawn_epochs = [
        np.asarray(line.get_xdata()).tolist()
        for line in tests[4].lines
        if line.get_color() == figures.COLOURS["none"]
    ]
    assert drawn_epochs == [[1], [5, 6]], "epoch 1 is joined to epoch 5"
    assert not [text for axes in trains for text in texts(axes)]
    (legend,) = figure.legends
    words = [text.get_text() for text in legend.get_texts()]
    assert words[-2:] == ["evaluated epoch", "below the scale"]


def test_a_first_epoch_near_the_next_one_stays_on_the_scale(runs: Runs) -> None:
    figure = drawn("curves", without_test_accuracy(runs, 3, 5))
    assert figure.axes[8].get_ylim()[0] < 49.8
    assert not [text for axes in figure.axes for text in texts(axes)]
