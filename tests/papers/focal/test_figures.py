"""Figures show the numbers of the records, of finished runs alone, and leave out what is missing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch

from softmax_temperature.papers.focal import figures, result_figures
from softmax_temperature.papers.focal.records import Records
from softmax_temperature.papers.focal.selection import ARMS
from softmax_temperature.papers.shared.records import write_pixels

CIFAR, DIGITS = "cifar10-resnet50", "digits-small"
DRAWN: dict[str, Callable[[Records], Figure | None]] = {
    "1": figures.figure_1,
    "2": figures.figure_2,
    "3bcd": figures.figure_3bcd,
    "a1": figures.figure_a1,
    "i1": figures.figure_i1,
    "4": result_figures.figure_4,
    "roc": result_figures.roc_curves,
    "summary": result_figures.calibration_summary,
}


@pytest.fixture
def pixels(tmp_path: Path) -> Path:
    """Two images of one task, the first all black and the second all white."""
    path = tmp_path / "panels.safetensors"
    write_pixels(path, {CIFAR: np.stack([np.full((8, 8, 3), value, np.uint8) for value in (0, 255)])})
    return path


def lines(axes: Axes) -> dict[str, np.ndarray]:
    return {str(line.get_label()): np.asarray(line.get_ydata()) for line in axes.lines}


def texts(figure: Figure) -> list[str]:
    return [text.get_text() for axes in figure.axes for text in axes.texts]


def bars(axes: Axes) -> list[float]:
    return [patch.get_height() for patch in axes.patches if isinstance(patch, Rectangle)]


@pytest.mark.parametrize("name", DRAWN)
def test_every_figure_is_drawn_with_and_without_finished_runs(records: Records, name: str) -> None:
    for all_diverged in (False, True):
        records.trainings["diverged"] |= all_diverged
        figure = DRAWN[name](records)
        if name == "roc" and all_diverged:
            assert figure is None
        else:
            assert figure is not None
            figure.draw_without_rendering()


def test_every_method_has_a_colour_of_its_own() -> None:
    assert len({str(figures.COLOURS[arm]) for arm in ARMS}) == len(ARMS)


def test_figure_1_shows_cross_entropy_on_training_and_test_data(records: Records) -> None:
    train, test, errors = figures.figure_1(records).axes
    assert lines(test)["NLL, wrong"][-1] == pytest.approx(4.05), "mean of 4.0 and 4.1"
    assert lines(test)["NLL, all"].tolist() == pytest.approx([1.0, 0.6, 0.4, 0.45, 0.5, 0.55, 0.6])
    assert lines(train)["entropy, wrong"].tolist() == pytest.approx([1.0] * 7)
    assert lines(errors)["test error"].tolist() == pytest.approx([45, 40, 35, 30, 25, 20, 15])
    assert lines(errors)["test ECE"].tolist() == pytest.approx([1, 2, 3, 4, 5, 6, 7])


def test_figure_2_compares_the_losses_that_were_trained(records: Records) -> None:
    axes = figures.figure_2(records).axes[4]
    norms = lines(axes)
    assert norms["CE"].tolist() == pytest.approx([10.5] * 7)
    assert norms["FL-3"].tolist() == pytest.approx([11.5] * 3 + [9.5] * 4)
    assert set(norms) == {"CE", "FL-3"}, "FL-1 and FL-2 were not trained"


def test_figure_3_counts_shares_of_samples(records: Records) -> None:
    panels = figures.figure_3bcd(records).axes
    assert [axes.get_title() for axes in panels] == ["(b) epoch 1", "(c) epoch 2", "(d) epoch 4"]
    shares = {patch.get_label(): patch.get_data().values for patch in panels[0].patches if isinstance(patch, StepPatch)}
    assert shares["CE"].tolist() == pytest.approx([25, 75])
    assert shares["FL-3"].tolist() == pytest.approx([75, 25])


def test_figure_4_shows_means_of_finished_seeds_with_intervals(records: Records) -> None:
    ece = result_figures.figure_4(records).axes[0]
    labels = [label.get_text() for label in ece.get_xticklabels()]
    assert labels == ["CE", "Brier", "FL-3", "FLSD-53"]
    # Before and after, for each in turn; of Brier only the seed that finished.
    assert bars(ece) == pytest.approx([6, 1.25, 2, 1.1, 2.5, 0.95, 2, 0.85])
    spans = [
        collection.get_segments()[0][:, 1] for collection in ece.collections if hasattr(collection, "get_segments")
    ]
    assert any(span == pytest.approx([5, 7]) for span in spans), "the mean interval of cross-entropy, 0.05 to 0.07"
    digits = result_figures.figure_4(records, DIGITS).axes[0]
    assert [label.get_text() for label in digits.get_xticklabels()] == ["CE", "MMCE", "FL-3", "FLSD-53"]


def test_figure_a1_has_a_column_an_epoch_and_all_samples(records: Records) -> None:
    axes = figures.figure_a1(records).axes
    assert [panel.get_title() for panel in axes[:4]] == ["epoch 2", "epoch 4", "epoch 6", "epoch 7"]
    assert bars(axes[0])[24] == pytest.approx(96)
    assert sum(bars(axes[4])) == pytest.approx(100)


def test_figure_h1_pairs_images_with_predictions(records: Records, pixels: Path) -> None:
    figure = result_figures.figure_h1(records, pixels)
    assert figure is not None
    first, second = [axes.images[0].get_array() for axes in figure.axes if axes.images]
    # Image 7, classified correctly and second in the file, comes before image 40.
    assert (first.max(), second.max()) == (255, 0)
    assert texts(figure)[:2] == ["CE: 3  0.91 → 0.64", "FLSD-53: 3  0.91 → 0.64"]
    assert texts(figure)[2:] == ["CE: 8  0.91 → 0.64", "FLSD-53: 8  0.91 → 0.64"]


def test_figure_h1_needs_pixels(records: Records, pixels: Path, tmp_path: Path) -> None:
    assert result_figures.figure_h1(records, tmp_path / "none") is None
    assert result_figures.figure_h1(records, pixels, DIGITS) is None


def test_roc_curves_say_their_area(records: Records) -> None:
    figure = result_figures.roc_curves(records)
    assert figure is not None
    assert [axes.get_title() for axes in figure.axes[:2]] == ["svhn, before scaling", "svhn, after scaling"]
    assert {"CE 80.0", "Brier 80.0", "FLSD-53 90.0"} <= set(lines(figure.axes[0]))
    assert "FLSD-53 81.0" in lines(figure.axes[3]), "noise, scaled: 0.8 + 0.02 - 0.01"
    assert result_figures.roc_curves(records, DIGITS) is None


def test_figure_i1_orders_the_losses(records: Records) -> None:
    norms = lines(figures.figure_i1(records).axes[0])
    assert norms["CE"].tolist() == pytest.approx([20] * 7)
    assert norms["FL-3"].tolist() == pytest.approx([15] * 7)


def test_the_summary_has_the_methods_of_each_task_and_names_what_diverged(records: Records) -> None:
    cifar, digits = result_figures.calibration_summary(records).axes
    arms = [[label.get_text() for label in axes.get_yticklabels()] for axes in (cifar, digits)]
    assert arms == [["CE", "Brier", "FL-3", "FLSD-53"], ["CE", "Brier", "MMCE", "FL-3", "FLSD-53"]]
    assert [text.get_text().strip() for text in cifar.texts] == ["T = 2.5", *3 * ["T = 1.1"]]
    assert [text.get_text().strip() for text in digits.texts] == ["T = 2.5", "diverged", *3 * ["T = 1.1"]]
