"""Figures have the same bytes on every machine; labels and bands are as declared."""

import dataclasses
import re
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib import font_manager
from matplotlib.figure import Figure

from softmax_temperature import calibrate, sample_logits
from softmax_temperature.papers.shared.figures import (
    FONT,
    SMALLEST,
    band,
    described,
    encoded,
    headline,
    label_outside,
    legend_below,
    over_epochs,
    panels,
    save,
    style,
)


def drawn(folder: Path) -> bytes:
    with style():
        figure = Figure(figsize=(1, 1))
        figure.text(0.1, 0.5, "α = $10^{-1}$")
        save(figure, folder, "letters")
    return (folder / "letters.svg").read_bytes()


def test_a_release_of_the_font_in_the_system_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = drawn(tmp_path)
    assert drawn(tmp_path) == expected
    fonts = font_manager.fontManager
    other = next(each for each in fonts.ttflist if each.name == "DejaVu Sans Mono")
    disguised = dataclasses.replace(other, name=FONT, fname=str(tmp_path / "other.ttf"))
    (tmp_path / "other.ttf").write_bytes(Path(other.fname).read_bytes())
    monkeypatch.setattr(fonts, "ttflist", [disguised, *fonts.ttflist])
    assert drawn(tmp_path) == expected
    assert all(
        each.fname.startswith(mpl.get_data_path())
        for each in fonts.ttflist
        if each.name == FONT
    )


HOSTILE = """
text.usetex: True
axes.grid: True
axes.facecolor: black
axes.prop_cycle: cycler('color', ['r', 'g'])
axes.unicode_minus: False
errorbar.capsize: 10
figure.constrained_layout.h_pad: 0.5
font.family: serif
font.size: 20
hatch.linewidth: 4
lines.linewidth: 5
mathtext.fontset: cm
path.simplify: False
savefig.facecolor: red
savefig.transparent: True
svg.fonttype: none
xtick.direction: in
"""


def test_a_users_matplotlibrc_changes_no_figure(tmp_path: Path) -> None:
    def files() -> list[bytes]:
        with style():
            _, (axes,) = panels(1)
            axes.set(xscale="log", yscale="log", title="α = $10^{-1}$")
            axes.plot([1, 10], [0.1, 1])
        report = calibrate(*sample_logits(), bootstrap=0)
        page = report.html().encode()
        figures = (axes.get_figure(), report.plot())
        return [page, *(encoded(figure, "svg") for figure in figures)]

    expected = files()
    (tmp_path / "matplotlibrc").write_text(HOSTILE)
    with mpl.rc_context(fname=tmp_path / "matplotlibrc"):
        assert mpl.rcParams["text.usetex"]
        assert files() == expected
        assert mpl.rcParams["text.usetex"]


def test_a_figure_is_described_by_its_titles_axes_and_legends() -> None:
    figure, grid = panels(4, columns=3)
    figure.suptitle("digits;\nsmall")
    for axes, title in zip(grid, ("(a) $p_0$", "(b)", "(b)", ""), strict=True):
        axes.set_title(title)
        axes.plot([1, 2], label="CE")
    grid[3].set_title("(d)", loc="left")
    grid[0].plot([2, 1], label="FL-3")
    label_outside(grid, columns=3, x="epoch", y="ECE (%)")
    legend_below(figure, grid[0], columns=2)
    grid[1].legend()
    grid[2].set_xticks([0, 1], ["CE", "10"])
    assert described(figure) == (
        "digits; small. Panels: (a) p0; (b); (d). Vertical: ECE (%). "
        "Horizontal: epoch. Along the axes: CE. Shown: CE; FL-3."
    )


def test_a_description_has_the_finding_the_ends_of_curves_and_numbers_in_legends() -> (
    None
):
    figure, (axes, beside) = panels(2)
    figure.set_label("CE 9.0 to 1.5.")
    axes.plot([3, 2, 1.25, np.nan], label="CE")
    axes.set(title="(a)", xlabel="epoch")
    beside.plot([0, 1, 2], label="70.5 ± 0.5")
    beside.set(title="SVHN", xlabel="rate")
    beside.legend()
    shown = described(figure)
    assert shown.startswith("CE 9.0 to 1.5. Panels: ")
    assert shown.endswith("At the end of (a): CE 1.25. SVHN: 70.5 ± 0.5.")


def test_the_first_of_many_panels_are_named_and_the_others_counted() -> None:
    figure, grid = panels(15)
    for number, axes in enumerate(grid):
        axes.set_title(f"set {number}")
    assert described(figure).endswith("set 10; set 11; and 3 others.")


def test_panels_fill_rows_hide_unused_places_and_are_labelled_at_the_edges() -> None:
    figure, grid = panels(4, columns=3, row=2.0, extra=0.5)
    assert figure.get_size_inches().tolist() == [5.0, 4.5]
    assert [axes.get_visible() for axes in figure.axes] == [True] * 4 + [False] * 2
    label_outside(grid, columns=3, x="x", y="y")
    assert [axes.get_xlabel() for axes in grid] == ["", "x", "x", "x"]
    assert [axes.get_ylabel() for axes in grid] == ["y", "", "", "y"]


def test_a_legend_has_fewer_columns_if_they_are_wider_than_the_figure() -> None:
    with style():
        figure, (axes,) = panels(1)
        for number in range(4):
            axes.plot([number], label=f"a line with a long name, {number}")
        legend_below(figure, axes, columns=4)
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert 100 < legend.get_window_extent().width <= figure.bbox.width
    assert len({round(text.get_window_extent().x0) for text in legend.get_texts()}) == 2


def test_a_title_takes_as_many_lines_as_it_needs() -> None:
    with style():
        figure, _ = panels(1)
        headline(figure, "CIFAR-10, 10,000 images; small VGG with batch norm: " * 2)
        figure.draw_without_rendering()
    (title,) = figure.texts
    assert title.get_text().count("\n") == 1
    assert title.get_window_extent().width <= figure.bbox.width


PHONE = 376
"""Width of a figure on a phone of 420 CSS pixels, in the report and on the site."""
LETTERS = re.compile(
    r"<g (?:style=\"[^\"]*\" )?transform=\"translate[^\"]* scale\((\S+) "
)


def test_the_text_of_every_committed_figure_is_9_pixels_tall_on_a_phone(
    project_root: Path,
) -> None:
    paths = sorted((project_root / "results").glob("*/*/figures/*.svg"))
    assert len(paths) > 80
    small = {}
    for path in paths:
        text = path.read_text()
        (width,) = re.findall(r'viewBox="0 0 (\S+) ', text)
        # Letters are outlines, drawn at a size of 100 points and then scaled.
        points = 100 * min(map(float, LETTERS.findall(text)))
        tall = points * min(1, PHONE / float(width))
        if points < SMALLEST or tall < 9:
            small[str(path)] = tall
    assert small == {}


@pytest.mark.parametrize(
    ("scale", "mean", "half"), [("linear", 5.0, np.sqrt(18)), ("log", 4.0, None)]
)
def test_a_band_is_one_standard_deviation_of_logarithms_on_a_logarithmic_axis(
    scale: str, mean: float, half: float | None
) -> None:
    # The values 2 and 8 have mean 5 and sd sqrt(18). Their base-2 logarithms have mean
    # 2 and sd sqrt(2), so the band runs from 4 / 2 ** sqrt(2) to 4 * 2 ** sqrt(2).
    _, (axes,) = panels(1)
    axes.set_yscale(scale)
    band(axes, pd.DataFrame({"x": [1, 1], "y": [2.0, 8.0]}), "x", "y", color="red")
    assert axes.lines[0].get_ydata() == pytest.approx([mean])
    box = axes.collections[0].get_paths()[0].get_extents()
    expected = (mean - half, mean + half) if half else (4 / 2**2**0.5, 4 * 2**2**0.5)
    assert (box.y0, box.y1) == pytest.approx(expected)


def test_no_line_crosses_epochs_that_were_not_evaluated() -> None:
    _, (axes,) = panels(1)
    epochs = [1, 25, 41, 42, 43, 44]
    rows = pd.DataFrame({"epoch": epochs * 2, "y": [*range(6), *range(2, 8)]})
    over_epochs(axes, rows, "y", color="red", label="arm")
    drawn_epochs = [np.asarray(line.get_xdata()).tolist() for line in axes.lines]
    assert drawn_epochs == [[1], [25], [41, 42, 43, 44]]
    assert {line.get_marker() for line in axes.lines} == {"o"}
    assert len(axes.get_legend_handles_labels()[1]) == 1, "expected one legend entry"


def test_a_line_through_every_epoch_has_no_dots() -> None:
    _, (axes,) = panels(1)
    over_epochs(
        axes, pd.DataFrame({"epoch": [1, 2, 3], "y": [1, 2, 3]}), "y", color="red"
    )
    (line,) = axes.lines
    assert line.get_marker() == "None"
