"""The reliability diagram shows percentages, and none of its elements hides another."""

from itertools import combinations

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes
from matplotlib.container import BarContainer
from scipy.stats import binomtest

from softmax_temperature.metrics import ReliabilityBins, reliability_bins
from softmax_temperature.tools.reliability import _wilson, reliability_diagram


def four_samples() -> ReliabilityBins:
    # There are two bins: the first has one sample with confidence 0.4 (wrong), the
    # second has samples with 0.6 (right), 0.8 (right) and 0.9 (wrong).
    confidences = torch.tensor([0.4, 0.6, 0.8, 0.9], dtype=torch.float64)
    rest = ((1 - confidences) / 3)[:, None].expand(-1, 3)
    probs = torch.cat([confidences[:, None], rest], dim=1)
    return reliability_bins(probs, torch.tensor([1, 0, 0, 1]), bins=2)


def bars(
    axes: Axes, label: str | None = None
) -> list[tuple[float, float, float, float]]:
    """The left edge, width, bottom and top of each visible bar."""
    (found,) = [
        one
        for one in axes.containers
        if isinstance(one, BarContainer) and label in {None, one.get_label()}
    ]
    boxes = [
        (bar.get_x(), bar.get_width(), bar.get_y(), bar.get_y() + bar.get_height())
        for bar in found
    ]
    return [box for box in boxes if np.isfinite(box).all()]


def test_bars_gaps_and_samples_are_those_worked_out_by_hand() -> None:
    upper, lower = reliability_diagram({"by hand": four_samples()}).axes
    # The second bin has accuracy 2/3 and mean confidence 2.3/3. The ECE is (1 * 0.4 + 3
    # * 0.1) / 4.
    right = pytest.approx((50, 50, 0, 200 / 3))
    assert bars(upper, "accuracy") == [pytest.approx((0, 50, 0, 0)), right]
    gaps = bars(upper, "confidence above accuracy")
    assert gaps == [
        pytest.approx((0, 50, 0, 40)),
        pytest.approx((50, 50, 200 / 3, 230 / 3)),
    ]
    assert bars(upper, "confidence below accuracy") == []
    assert [top for *_, top in bars(lower)] == pytest.approx([25, 75])
    assert upper.get_title() == "by hand\nECE 17.50 %"
    marks = {line.get_label(): line.get_xdata() for line in lower.lines}
    assert marks["overall accuracy"] == pytest.approx([50, 50])
    assert marks["mean confidence"] == pytest.approx([67.5, 67.5])


@pytest.mark.parametrize("panels", [1, 2, 3, 4])
def test_axes_and_marks_are_named_and_nothing_overlaps(panels: int) -> None:
    figure = reliability_diagram(
        {f"T = 1.23{k}, by NLL": four_samples() for k in range(panels)},
        title="a network",
    )
    upper, lower = figure.axes[:panels], figure.axes[panels:]
    assert [upper[0].get_ylabel(), lower[0].get_ylabel()] == [
        "accuracy (%)",
        "samples (%, log)",
    ]
    names = {
        artist.get_label()
        for axes in figure.axes
        for artist in (*axes.containers, *axes.lines)
    }
    named = {text.get_text() for text in figure.legends[0].get_texts()}
    assert named == {name for name in names if not name.startswith("_")}
    figure.draw_without_rendering()
    texts = [axes.title for axes in upper] + [axes.xaxis.label for axes in lower]
    parts = [
        *texts,
        *figure.legends,
        *figure.texts,
        *(axes.patch for axes in figure.axes),
    ]
    boxes = [part.get_window_extent() for part in parts]
    assert not [pair for pair in combinations(boxes, 2) if pair[0].overlaps(pair[1])]
    assert all(
        figure.bbox.fully_contains(*corner)
        for box in boxes
        for corner in (box.min, box.max)
    )


def test_the_intervals_of_bars_equal_scipys() -> None:
    right = np.array([0, 1, 3, 7, 10, 500])
    counts = np.array([10, 10, 10, 10, 10, 501])
    low, high = _wilson(right / counts, counts)
    for place, (successes, count) in enumerate(zip(right, counts, strict=True)):
        theirs = binomtest(int(successes), int(count)).proportion_ci(0.9, "wilson")
        assert (low[place], high[place]) == pytest.approx(tuple(theirs), abs=1e-12)
