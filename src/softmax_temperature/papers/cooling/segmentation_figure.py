"""Section 4.4: images, their labels and what the U-Net says about them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from softmax_temperature.array_files import read_arrays
from softmax_temperature.papers.cooling.outcomes import DIVERGED
from softmax_temperature.papers.cooling.selection import MODES, NO_COOLING, SIMPLEST, final_segmentation
from softmax_temperature.papers.shared.plots import WIDTH, style

if TYPE_CHECKING:
    from pathlib import Path

    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from softmax_temperature.papers.cooling.records import Records

SHOWN = 6
"""Images at most."""
ARMS = (NO_COOLING, SIMPLEST)
# Neighbours in these maps are shades of one hue, so that every second colour comes first.
_ORDER = [*range(0, 20, 2), *range(1, 20, 2)]
_HUES = np.concatenate([colormaps[name](_ORDER)[:, :3] for name in ("tab20", "tab20b", "tab20c")])


def segmentation_panel(records: Records, pixels: Path) -> Figure | None:
    """A column an image: the image, its labels, and the predictions without and with last layer Cooling; first seed.

    Classes have colours of their own, 60 of them, then again from the first. The largest label, if nobody predicts it,
    is that of pixels without a class: black. Below the names of the arms stands the mean intersection over union over
    all test images; on each prediction the share of the pixels with a class that it gets right.

    Args:
        records: the paper's.
        pixels: an npz file with `images` (n, height, width, 3), `labels` (n, height, width), and the predictions of
            each arm under its name (n, height, width), all uint8.

    Returns:
        The figure; None if there is no such file.
    """
    if not pixels.is_file():
        return None
    names = ("images", "labels", *ARMS)
    arrays = read_arrays(pixels, "images", required=names)
    images, labels, *predictions = (arrays[name][:SHOWN] for name in names)
    void = _void(labels, predictions)
    count, height, width = labels.shape
    cell = WIDTH / max(count, 4)
    with style():
        figure = Figure(figsize=(count * cell + 0.4, 4 * cell * height / width + 0.2), layout="constrained")
        rows = figure.subplots(4, count, squeeze=False)
        for axes, image, label in zip(rows[0], images, labels, strict=True):
            axes.imshow(image)
            axes.set_title(f"{len(np.unique(label[label != void]))} classes", fontsize=7)
        for axes, label in zip(rows[1], labels, strict=True):
            axes.imshow(_coloured(label, void))
        for line, predicted in zip(rows[2:], predictions, strict=True):
            for axes, answer, label in zip(line, predicted, labels, strict=True):
                _prediction(axes, answer, label, void)
        for axes in rows.ravel():
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_visible(False)
        for axes, name in zip(rows[:, 0], ("image", "label", *map(_name(records).get, ARMS)), strict=True):
            axes.set_ylabel(name, fontsize=8)
    return figure


def _void(labels: NDArray[np.uint8], predictions: list[NDArray[np.uint8]]) -> int | None:
    largest = int(labels.max())
    return largest if all(largest not in answers for answers in predictions) else None


def _coloured(classes: NDArray[np.uint8], void: int | None) -> NDArray[np.float64]:
    colours: NDArray[np.float64] = _HUES[classes % len(_HUES)]
    colours[classes == void] = 0
    return colours


def _prediction(axes: Axes, answer: NDArray[np.uint8], label: NDArray[np.uint8], void: int | None) -> None:
    axes.imshow(_coloured(answer, None))
    known = label != void
    share = (answer == label)[known].mean() if known.any() else np.nan
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8}
    axes.text(0.02, 0.03, f"{100 * share:.0f} %", transform=axes.transAxes, fontsize=6.5, bbox=box)


def _name(records: Records) -> dict[str, str]:
    """The arms, with the mean intersection over union of their first seed, or that it diverged."""
    last = final_segmentation(records)
    first = last[last["seed"] == last["seed"].min()].set_index("arm")["mean_iou"].reindex(list(ARMS))
    scores = {arm: DIVERGED if np.isnan(score) else f"mIoU {100 * score:.1f} %" for arm, score in first.items()}
    return {arm: f"{MODES[arm]}\n{score}" for arm, score in scores.items()}
