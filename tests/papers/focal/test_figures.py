"""Figures show only finished runs, and leave out what is missing."""

from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle, StepPatch

from softmax_temperature.losses.propositions import optimal_probability, threshold
from softmax_temperature.papers.focal import figures, result_figures
from softmax_temperature.papers.focal.study import (
    CE,
    LS_01,
    MAIN,
    TRANSLATION,
    experiments,
    in_shown_order,
    placeholders,
    shown_experiments,
    tidied,
    translations,
)
from softmax_temperature.papers.focal.tables import TABLES
from softmax_temperature.papers.shared.factors import ALL, where
from softmax_temperature.papers.shared.records import write_pixels
from softmax_temperature.papers.shared.runs import Runs
from tests.papers.focal.conftest import CIFAR, DIGITS, NLL
from tests.papers.focal.made_runs import diverged, run, runs_of, shifted, without


@pytest.fixture(scope="module")
def made(runs: Runs, project_root: Path) -> dict[str, pd.DataFrame]:
    names = ("table_1", "table_2", "table_f3", "table_shift")
    with chdir(project_root):
        return {table.name: table.make(runs) for table in TABLES if table.name in names}


@pytest.fixture
def written(made: dict[str, pd.DataFrame]) -> dict[str, pd.DataFrame]:
    """Copies of the tables that the figures read, made anew for each test."""
    return {name: table.copy() for name, table in made.items()}


def lines(axes: Axes) -> dict[str, list[float]]:
    return {
        str(line.get_label()): np.asarray(line.get_ydata()).tolist()
        for line in axes.lines
    }


def crosses(axes: Axes) -> list[float]:
    xs = [
        np.asarray(line.get_xydata())[0]
        for line in axes.lines
        if line.get_marker() == "x"
    ]
    return [
        round(float(value), 2)
        for point in xs
        for value in point
        if not np.isnan(point).any()
    ]


def texts(axes: Axes) -> list[str]:
    return [text.get_text().strip() for text in axes.texts]


def names(axis: Any) -> list[str]:
    return [label.get_text() for label in axis.get_ticklabels()]


def bars(axes: Axes) -> list[float]:
    return [
        patch.get_height() for patch in axes.patches if isinstance(patch, Rectangle)
    ]


def drawn(figure: Figure | None) -> list[Axes]:
    assert figure is not None
    figure.draw_without_rendering()
    return figure.axes


def test_there_is_no_figure_of_diverged_runs(runs: Runs, written: Any) -> None:
    lost = diverged(runs, ALL)
    for draw in (
        figures.figure_1,
        figures.figure_2,
        figures.figure_3bcd,
        figures.figure_a1,
        figures.figure_i1,
    ):
        assert draw(lost) is None
    assert result_figures.figure_4(lost, written, CIFAR) is None
    assert result_figures.roc_curves(lost, CIFAR) is None


def test_figures_of_training_show_means_over_seeds(runs: Runs) -> None:
    train, test, errors, ece = drawn(figures.figure_1(runs))
    assert lines(test)["NLL, wrong"][-1] == pytest.approx(4.05), "not the mean"
    assert lines(test)["NLL, all"] == pytest.approx(NLL)
    assert lines(train)["entropy, wrong"] == pytest.approx([1.0] * 7)
    assert train.get_ylim() == test.get_ylim()
    assert lines(errors)["test data"] == pytest.approx([45, 40, 35, 30, 25, 20, 5.05])
    assert next(iter(lines(ece).values())) == pytest.approx([1, 2, 3, 4, 5, 6, 6])
    norms = lines(drawn(figures.figure_2(runs))[4])
    assert norms["CE"] == pytest.approx([10.5] * 7)
    assert norms["FL-3"] == pytest.approx([11.5] * 3 + [9.5] * 4)
    assert set(norms) == {"CE", "FL-3"}, "FL-1 and FL-2 did not run"
    assert lines(drawn(figures.figure_i1(runs))[0]) == {
        "CE": [20] * 7,
        "FL-3": [15] * 7,
    }


def test_figure_c1_shows_means_over_seeds() -> None:
    table = [
        run("linear", "CE", seed, task="linear", dataset="clusters") for seed in (0, 1)
    ]
    norms = [(0, 1, 1), (1, 1, 3), (0, 2, 5)]
    values = [
        {"run": number, "epoch": epoch, "weight_norm": norm, "logit_norm": 1}
        for number, epoch, norm in norms
    ]
    axes = drawn(figures.figure_c1(runs_of(table, values)))
    assert [lines(panel)["CE"] for panel in axes] == [[1, 1], [2, 5]]


def test_a_curve_has_the_label_and_colour_of_its_loss(runs: Runs) -> None:
    gamma = runs.table["gamma"].replace({"3": "5"})
    renamed = tidied(replace(runs, table=runs.table.assign(gamma=gamma)))
    norms = lines(drawn(figures.figure_2(renamed))[4])
    assert set(norms) == {"CE"}, "gamma 5 is not FL-3"


def test_figure_3a_marks_each_threshold_and_b1_draws_the_minimisers() -> None:
    (axes,) = figures.figure_3a().axes
    dots = [
        tuple(np.ravel(line.get_xydata()))
        for line in axes.lines
        if len(np.asarray(line.get_xdata())) == 1
    ]
    assert dots == [(threshold(gamma), 1) for gamma in figures.GAMMAS_3A]
    plain, *focal = (
        dict(np.asarray(line.get_xydata()).tolist())
        for line in figures.figure_b1().axes[0].lines
    )
    assert max(abs(q - p) for q, p in plain.items()) < 1e-12
    assert [line[0.9] for line in focal] == [
        optimal_probability(0.9, gamma) for gamma in (1.0, 2.0, 3.0)
    ]


def test_figures_3_and_a1_count_shares_of_samples(runs: Runs) -> None:
    panels = drawn(figures.figure_3bcd(runs))
    assert [axes.get_title() for axes in panels] == [
        "(b) epoch 1",
        "(c) epoch 2",
        "(d) epoch 4",
    ]
    shares = {
        patch.get_label(): patch.get_data()[0]
        for patch in panels[0].patches
        if isinstance(patch, StepPatch)
    }
    assert [shares[arm].tolist() for arm in ("CE", "FL-3")] == [[25, 75], [75, 25]]
    panels = drawn(figures.figure_a1(runs))
    assert [panel.get_title() for panel in panels[:4]] == [
        "epoch 2",
        "epoch 4",
        "epoch 6",
        "epoch 7",
    ]
    assert (bars(panels[0])[24], sum(bars(panels[4]))) == pytest.approx((96, 100))


def test_figure_4_shows_means_of_finished_seeds_with_intervals_and_printed_values(
    runs: Runs, written: Any
) -> None:
    ece, other, last = drawn(result_figures.figure_4(runs, written, CIFAR))
    assert names(last.xaxis) == ["CE", "Brier", "FL-3", "FLSD-53"]
    # Each loss has one bar before scaling and one after. Brier has only one finished
    # seed.
    assert bars(ece) == pytest.approx([6, 1.25, 2, 1.1, 2.5, 0.95, 2, 0.85])
    spans = [
        some.get_segments()[0][:, 1]
        for some in ece.collections
        if hasattr(some, "get_segments")
    ]
    assert any(span == pytest.approx([5, 7]) for span in spans), (
        "expected CE's mean interval, 0.05 to 0.07"
    )
    assert crosses(ece)[1::2] == [4.35, 1.35, 1.82, 1.08, 1.48, 1.42, 1.55, 0.95]
    digits, _, last = drawn(result_figures.figure_4(runs, written, DIGITS))
    assert names(last.xaxis) == ["CE", "MMCE", "FL-3", "FLSD-53"]
    assert crosses(other) == crosses(digits) == []


def test_figure_h1_shows_images_on_which_all_losses_agree(
    runs: Runs, tmp_path: Path
) -> None:
    pixels = tmp_path / "panels.safetensors"  # A black, a grey and a white image.
    write_pixels(
        pixels,
        {
            CIFAR: np.stack(
                [np.full((8, 8, 3), value, np.uint8) for value in (0, 99, 255)]
            )
        },
    )
    images = [
        axes
        for axes in drawn(result_figures.figure_h1(runs, pixels, CIFAR))
        if axes.images
    ]
    # All losses classify image 7, the third in the file, correctly. They disagree on
    # image 40, so this image is left out.
    assert [axes.images[0].get_array().max() for axes in images] == [255, 99]  # type: ignore[union-attr]
    for axes, predicted in zip(images, (3, 8), strict=True):
        assert texts(axes) == [
            f"{arm}: {predicted}  0.91 → 0.64" for arm in ("CE", "Brier", "FLSD-53")
        ]
    assert result_figures.figure_h1(runs, tmp_path / "none", CIFAR) is None
    assert result_figures.figure_h1(runs, pixels, DIGITS) is None


def test_roc_curves_say_their_area_over_seeds(runs: Runs) -> None:
    axes = drawn(result_figures.roc_curves(runs, CIFAR))
    assert [panel.get_title() for panel in axes[1:3]] == [
        "Gaussian noise,\nafter scaling",
        "SVHN,\nbefore scaling",
    ]
    first, last = (
        [text.get_text() for text in panel.get_legend().get_texts()]
        for panel in (axes[0], axes[3])
    )  # type: ignore[union-attr]
    assert list(lines(axes[0]))[1:] == ["CE", "Brier", "FL-3", "FLSD-53"]
    # Curves can be told apart without their colours.
    dashes = {str(line._unscaled_dash_pattern) for line in axes[0].lines[1:]}  # type: ignore[attr-defined]
    assert len(dashes) == 4
    assert first == ["82.5 ± 0.7", "82.0", "82.5 ± 0.7", "92.5 ± 0.7"]
    assert last[3] == "79.5 ± 0.7", "expected 0.79 and 0.80"


def test_the_summary_has_the_methods_of_each_task_and_names_what_diverged(
    runs: Runs, written: Any
) -> None:
    cifar, after, digits, _ = drawn(result_figures.calibration_summary(runs, written))
    assert names(cifar.yaxis) == ["CE", "Brier", "FL-3", "FLSD-53"]
    assert names(digits.yaxis) == ["CE", "Brier", "MMCE", "FL-3", "FLSD-53"]
    assert texts(cifar) == ["T = 2.50", *3 * ["T = 1.10"]]
    assert texts(digits) == ["T = 2.50", "diverged", *3 * ["T = 1.10"]]
    floors = [
        np.asarray(line.get_xydata()).tolist()
        for line in cifar.lines
        if line.get_marker() == "|"
    ]
    assert [floor[0] for floor in floors if len(floor) == 4] == pytest.approx(
        np.array([[0.5, -0.17], [0.9, 0.17]])
    )
    assert crosses(cifar)[::2] == [4.35, 1.82, 1.48, 1.55, 1.35, 1.08, 1.42, 0.95]
    assert crosses(after)[::2] == [1.35, 1.08, 1.42, 0.95]
    assert crosses(digits) == []
    assert cifar.get_xlim() == digits.get_xlim()


def test_the_summary_enlarges_what_is_left_after_scaling(
    runs: Runs, written: Any
) -> None:
    panels = drawn(result_figures.calibration_summary(runs, written))
    for both, after in zip(panels[::2], panels[1::2], strict=True):
        scaled, enlarged = (
            [
                np.ravel(line.get_xydata())
                for line in panel.lines
                if line.get_markerfacecolor() == "white"
            ]
            for panel in (both, after)
        )
        assert len(scaled) in (4, 5), "one point per loss"
        np.testing.assert_array_equal(enlarged, scaled)
        assert points(after) == []
        assert after.get_xlim()[0] == 0
        assert after.get_xlim()[1] < both.get_xlim()[1]


def test_shifted_images_are_shown_next_to_the_tasks_own(
    runs: Runs, written: Any
) -> None:
    error, ece = drawn(result_figures.figure_shift(runs, written, CIFAR))
    assert (error.get_title(), ece.get_title()) == ("cinic10", "cinic10")
    assert (error.get_xlabel(), ece.get_xlabel()) == ("error (%)", "ECE (%)")
    assert next(
        np.ravel(line.get_xdata()) for line in error.lines if line.get_marker() == "s"
    ) == pytest.approx(5.05)
    assert result_figures.figure_shift(runs, written, DIGITS) is None


def test_figure_k1_shows_means_and_every_seed_of_the_losses_that_finished(
    runs: Runs,
) -> None:
    table = runs.tables["translation_curves"].copy()
    second = runs.select(TRANSLATION & CE & where(seed=1)).index
    table.loc[table["run"].isin(second), "bleu"] += 0.02
    better = tidied(replace(runs, tables={**runs.tables, "translation_curves": table}))
    axes = drawn(result_figures.figure_k1(better))
    _, dots, mean, best = axes[0].lines
    assert np.asarray(dots.get_ydata()).tolist() == pytest.approx(
        [24, 25, 26, 26, 27, 28]
    )
    assert np.asarray(mean.get_ydata()).tolist() == pytest.approx([25, 26, 27])
    assert np.ravel(best.get_xydata()).tolist() == pytest.approx([1.2, 27])
    assert np.ravel(axes[3].lines[-1].get_xydata()).tolist() == pytest.approx(
        [1.0, 1.0]
    )
    smoothing_alone = without(runs, TRANSLATION & ~LS_01)
    titles = [
        axes.get_title() for axes in drawn(result_figures.figure_k1(smoothing_alone))
    ]
    assert titles == ["(a) label smoothing", ""]
    assert result_figures.figure_k1(without(runs, TRANSLATION)) is None


def test_an_experiment_of_one_loss_beside_translation_is_a_placeholder(
    runs: Runs,
) -> None:
    assert placeholders(runs) == []
    alone = runs.only(TRANSLATION | (MAIN & CE & where(experiment=DIGITS)))
    assert placeholders(alone) == [DIGITS]
    assert shown_experiments(alone) == []
    assert experiments(alone).empty
    assert figures.figure_1(alone) is None
    without_translation = alone.only(~TRANSLATION)
    assert shown_experiments(without_translation) == [DIGITS]


def test_families_of_losses_are_grouped() -> None:
    labels = ["FLSD-53", "own", "LS-0.1", "CE", "LS-0.05"]
    assert in_shown_order(labels) == ["CE", "LS-0.05", "LS-0.1", "FLSD-53", "own"]


def points(axes: Axes) -> list[list[float]]:
    """Coordinates of each loss's mean before scaling."""
    return [
        np.round(np.asarray(line.get_xydata(), float)[0], 2).tolist()
        for line in axes.lines
        if line.get_marker() == "o" and line.get_markerfacecolor() != "white"
    ]


def guessing(runs: Runs, *seeds: int) -> Runs:
    """Runs in which CE on digits stays at chance level for the given seeds."""
    chosen = MAIN & CE & where(experiment=DIGITS, seed=seeds)
    return shifted(runs, "accuracy", -0.85, among=chosen)


def test_the_summary_leaves_out_what_guesses_and_its_row_says_so(
    runs: Runs, written: Any
) -> None:
    digits = drawn(result_figures.calibration_summary(runs, written))[2]
    assert points(digits)[0] == [11, -0.17], "not the mean of 10 and 12"
    figure = result_figures.calibration_summary(guessing(runs, 1), written)
    cifar, _, digits, _ = drawn(figure)
    assert points(digits)[0] == [10, -0.17]
    assert texts(digits)[0] == "1 of 2 guesses; T = 2.40"
    assert texts(cifar)[0] == "T = 2.50"
    words = [text.get_text() for text in figure.legends[0].get_texts()]  # type: ignore[union-attr]
    assert words[-1] == "guesses: never learned, left out"
    both = drawn(result_figures.calibration_summary(guessing(runs, 0, 1), written))
    assert texts(both[2])[0] == "guesses"


@pytest.mark.parametrize(("accuracy", "guesses"), [(0.109, True), (0.111, False)])
def test_a_run_guesses_below_1_1_times_the_accuracy_of_guessing(
    runs: Runs, written: Any, accuracy: float, guesses: bool
) -> None:
    chosen = MAIN & CE & where(experiment=DIGITS, seed=1)
    poor = shifted(runs, "accuracy", accuracy - 0.949, among=chosen)
    digits = drawn(result_figures.calibration_summary(poor, written))[2]
    assert ("1 of 2 guesses" in texts(digits)[0]) == guesses


def full_after(runs: Runs, *epochs: int) -> Runs:
    """The runs, but after the given epochs all training samples are in the last bin."""
    table = runs.tables["reliability"].copy()
    is_full = table["epoch"].isin(epochs)
    is_last = table["high"] == 1
    table.loc[is_full & ~is_last, "count"] = 0
    return replace(runs, tables={**runs.tables, "reliability": table})


@pytest.mark.parametrize(
    ("full", "panels", "named"),
    [
        ((7,), ["epoch 2", "epoch 4", "epoch 6"], "epoch 7: all"),
        ((6, 7), ["epoch 2", "epoch 4"], "epochs 6 and 7: all"),
        ((2, 4, 6, 7), ["epoch 2"], "epochs 4, 6 and 7: all"),
    ],
)
def test_figure_a1_names_the_epochs_that_would_be_one_bar(
    runs: Runs, full: tuple[int, ...], panels: list[str], named: str
) -> None:
    figure = figures.figure_a1(full_after(runs, *full))
    axes = drawn(figure)
    assert [panel.get_title() for panel in axes[: len(panels)]] == panels
    assert len(axes) == 2 * len(panels)
    title = figure.get_suptitle()  # type: ignore[union-attr]
    assert title.splitlines()[1] == f"{named} samples in the last bin"


def test_translations_have_a_row_with_their_losses_and_seeds(runs: Runs) -> None:
    (row,) = translations(runs).to_dict("records")
    assert row["losses"] == "CE, LS, FL"
    assert (row["seeds"], row["cells"]) == (2, "focal/translation")
    assert translations(without(runs, TRANSLATION)).empty
