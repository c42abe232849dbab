"""Section 4.4: images, their labels and what the U-Net says about them."""

from pathlib import Path

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure

from softmax_temperature.papers.cooling.records import Records
from softmax_temperature.papers.cooling.selection import LAST, MODES, NO_COOLING, final_segmentation
from softmax_temperature.papers.shared import plots
from softmax_temperature.papers.shared.plots import PERCENT, entry
from softmax_temperature.papers.shared.records import read_pixels

SHOWN = 6  # Images at most.
# Neighbours in these maps are shades of one hue, so that every second colour comes first.
_ORDER = [*range(0, 20, 2), *range(1, 20, 2)]
_CLASSES = np.concatenate([colormaps[name](_ORDER)[:, :3] for name in ("tab20", "tab20b", "tab20c")])


@plots.style()
def segmentation_panel(records: Records, pixels: Path) -> Figure | None:
    """A column per image: the image, its labels, and the predictions without and with last layer Cooling; first seed.

    The largest label, if nobody predicts it, is that of pixels without a class: black. Below the names of the arms is
    the mean IoU over all test images, on each prediction the share of right pixels. `pixels` is a file, or not there.
    """
    arrays = {name: array[:SHOWN] for name, array in read_pixels(pixels).items()}
    if not arrays:
        return None
    labels, predictions = arrays["labels"], [arrays[NO_COOLING], arrays[LAST]]
    largest = int(labels.max())
    void = largest if all(largest not in answers for answers in predictions) else None
    count, height, width = labels.shape
    cell = plots.WIDTH / max(count, 4)
    figure, axes = plots.panels(
        4 * count, columns=count, width=count * cell + 0.4, row=cell * height / width, extra=0.2
    )
    grid = np.reshape(np.array(axes, dtype=object), (4, count))
    shown = zip(grid.T, arrays["images"], labels, *predictions, strict=True)
    for (top, second, *below), image, label, *answers in shown:
        known = label != void
        top.imshow(image)
        top.set_title(f"{len(np.unique(label[known]))} classes", fontsize=7)
        second.imshow(np.where(known[..., None], _CLASSES[label % len(_CLASSES)], 0))
        for each, answer in zip(below, answers, strict=True):
            each.imshow(_CLASSES[answer % len(_CLASSES)])
            share = (answer == label)[known].mean() if known.any() else np.nan
            box = {"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8}
            each.text(0.02, 0.03, f"{PERCENT * share:.0f} %", transform=each.transAxes, fontsize=6.5, bbox=box)
    classes = sorted({int(each) for array in (labels, *predictions) for each in np.unique(array)} - {void})
    marks = [entry(f"class {each}", ls="none", marker="s", color=_CLASSES[each % len(_CLASSES)]) for each in classes]
    marks += [entry("no class", ls="none", marker="s", color="black")] if void is not None else []
    plots.legend_below(figure, marks, columns=6, fontsize=7)
    for each in axes:
        each.set(xticks=[], yticks=[])
        each.spines[:].set_visible(False)
    last = final_segmentation(records)
    scores = last[last["seed"] == last["seed"].min()].set_index("arm")["mean_iou"]
    said = {arm: f"mIoU {PERCENT * score:.1f} %" for arm, score in scores.dropna().items()}
    arms = [f"{MODES[arm]}\n{said.get(arm, 'diverged')}" for arm in (NO_COOLING, LAST)]
    for each, name in zip(grid[:, 0], ("image", "label", *arms), strict=True):
        each.set_ylabel(name, fontsize=8)
    return figure
