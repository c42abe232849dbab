"""Section 4.4: images, their labels and what the U-Net says about them."""

from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from softmax_temperature.papers.cooling.records import Records
from softmax_temperature.papers.cooling.selection import LAST, MODES, NO_COOLING, final_segmentation
from softmax_temperature.papers.shared.plots import PERCENT, WIDTH, entry, legend_below, panels, style
from softmax_temperature.papers.shared.records import read_pixels

SHOWN = 6
"""Images at most."""
# Neighbours in these maps are shades of one hue, so that every second colour comes first.
_ORDER = [*range(0, 20, 2), *range(1, 20, 2)]
_CLASSES = np.concatenate([colormaps[name](_ORDER)[:, :3] for name in ("tab20", "tab20b", "tab20c")])


@style()
def segmentation_panel(records: Records, pixels: Path) -> Figure | None:
    """A column per image: the image, its labels, and the predictions without and with last layer Cooling; first seed.

    Classes have colours of their own, 60 of them, then again from the first, named below. The largest label, if nobody
    predicts it, is that of pixels without a class: black. Below the names of the arms is the mean intersection over
    union over all test images, mean over the last epochs; on each prediction the share of its pixels that are right.

    Args:
        records: the paper's.
        pixels: the file `segmentation.safetensors`: `images` (n, height, width, 3), `labels` (n, height, width), and
            the predictions of each arm under its name (n, height, width), all uint8. Without it there is no figure.
    """
    arrays = {name: array[:SHOWN] for name, array in read_pixels(pixels).items()}
    if not arrays:
        return None
    labels, predictions = arrays["labels"], [arrays[NO_COOLING], arrays[LAST]]
    largest = int(labels.max())
    void = largest if all(largest not in answers for answers in predictions) else None
    count, height, width = labels.shape
    cell = WIDTH / max(count, 4)
    figure, axes = panels(4 * count, columns=count, width=count * cell + 0.4, row=cell * height / width, extra=0.2)
    grid = np.reshape(np.array(axes, dtype=object), (4, count))
    for column, image, label in zip(grid.T, arrays["images"], labels, strict=True):
        column[0].imshow(image)
        column[0].set_title(f"{len(np.unique(label[label != void]))} classes", fontsize=7)
        column[1].imshow(_coloured(label, void))
    for line, answers in zip(grid[2:], predictions, strict=True):
        for each, answer, label in zip(line, answers, labels, strict=True):
            _prediction(each, answer, label, void)
    known = sorted({int(each) for array in (labels, *predictions) for each in np.unique(array)} - {void})
    marks = [entry(f"class {each}", ls="none", marker="s", color=_CLASSES[each % len(_CLASSES)]) for each in known]
    marks += [entry("no class", ls="none", marker="s", color="black")] if void is not None else []
    legend_below(figure, marks, columns=6, fontsize=7)
    for each in axes:
        each.set(xticks=[], yticks=[])
        each.spines[:].set_visible(False)
    for each, name in zip(grid[:, 0], ("image", "label", *_arm_scores(records)), strict=True):
        each.set_ylabel(name, fontsize=8)
    return figure


def _coloured(classes: NDArray[np.uint8], void: int | None) -> NDArray[np.float64]:
    colours: NDArray[np.float64] = _CLASSES[classes % len(_CLASSES)]
    colours[classes == void] = 0
    return colours


def _prediction(axes: Axes, answer: NDArray[np.uint8], label: NDArray[np.uint8], void: int | None) -> None:
    axes.imshow(_coloured(answer, None))
    known = label != void
    share = (answer == label)[known].mean() if known.any() else np.nan
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8}
    axes.text(0.02, 0.03, f"{PERCENT * share:.0f} %", transform=axes.transAxes, fontsize=6.5, bbox=box)


def _arm_scores(records: Records) -> list[str]:
    """The arms, with the mean intersection over union of their first seed, or that it diverged."""
    last = final_segmentation(records)
    first = last[last["seed"] == last["seed"].min()].set_index("arm")["mean_iou"].reindex([NO_COOLING, LAST])
    scores = {arm: "diverged" if np.isnan(score) else f"mIoU {PERCENT * score:.1f} %" for arm, score in first.items()}
    return [f"{MODES[str(arm)]}\n{score}" for arm, score in scores.items()]
