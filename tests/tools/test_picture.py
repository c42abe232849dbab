"""The front page's picture shows the numbers by which the claims are judged."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image
from scipy.stats import t, ttest_ind

from softmax_temperature.papers.cooling import study as cooling
from softmax_temperature.papers.cooling.figures import COLOURS
from softmax_temperature.papers.focal import study as focal
from softmax_temperature.papers.shared import figures
from softmax_temperature.papers.shared.display import MODES
from softmax_temperature.papers.temperature_check import study as temperature_check
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools import picture


@pytest.fixture
def results(project_root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(project_root)
    return project_root / "results"


class Drawn(NamedTuple):
    """The files of the picture, and the figures that were saved in them."""

    folder: Path
    figures: list[Figure]


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory, project_root: Path) -> Drawn:
    """The picture of the committed studies, drawn once."""
    made = Drawn(tmp_path_factory.mktemp("drawn"), [])
    save = figures.save

    def save_and_keep(figure: Figure, *arguments: Any, **options: Any) -> None:
        made.figures.append(figure)
        save(figure, *arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project_root)
        patch.setattr(figures, "save", save_and_keep)
        picture.draw(project_root / "results", made.folder)
    return made


def test_the_committed_studies_are_drawn_and_one_that_is_missing_is_named(
    drawn: Drawn, tmp_path: Path
) -> None:
    assert sorted(path.name for path in drawn.folder.iterdir()) == [
        "summary-dark.png",
        "summary-tall-dark.png",
        "summary-tall.png",
        "summary-tall.svg",
        "summary.png",
        "summary.svg",
    ]
    with Image.open(drawn.folder / "summary.png") as wide:
        assert wide.width > wide.height
    with Image.open(drawn.folder / "summary-tall.png") as tall:
        assert tall.height > 2 * tall.width
    for shape in ("summary", "summary-tall"):
        with Image.open(drawn.folder / f"{shape}.png") as opened:
            light = np.asarray(opened.convert("L"))
        with Image.open(drawn.folder / f"{shape}-dark.png") as opened:
            dark = np.asarray(opened.convert("L"))
        # The corner pixel has the page's background colour.
        assert light[0, 0] == 255
        assert dark[0, 0] < 25
        assert dark.max() > 180, "light text"
    with pytest.raises(InputError, match="table not found"):
        picture.draw(tmp_path, tmp_path / "drawn")


def test_the_committed_picture_is_the_one_that_is_drawn(
    drawn: Drawn, project_root: Path
) -> None:
    for path in drawn.folder.iterdir():
        committed = project_root / "docs/images" / path.name
        assert path.read_bytes() == committed.read_bytes(), path.name


def test_calibration_errors_are_those_of_the_scorecard_and_of_finished_trainings_only(
    results: Path,
) -> None:
    folder = results / picture.FOCAL
    runs = focal.read(folder)
    parts = picture.calibration(runs)
    scalings = (picture.BEFORE_SCALING, picture.AFTER_SCALING)
    assert set(parts) == set(product(scalings, focal.TABLE_1_LOSSES))
    rows = {row["id"]: row for row in json.loads((folder / "claims.json").read_text())}
    claims = ("flsd-53-calibrates", "flsd-53-calibrates-after-scaling")
    for scaling, claim in zip(scalings, claims, strict=True):
        values = [parts[scaling, loss].estimate().value for loss in ("FLSD-53", "CE")]
        assert values[0] - values[1] == pytest.approx(rows[claim]["value"])
    table = runs.table.assign(
        diverged=runs.table["diverged"] | focal.MMCE.mask(runs.table)
    )
    left = picture.calibration(replace(runs, table=table))
    assert left == {key: part for key, part in parts.items() if key[1] != "MMCE"}


def test_accuracies_are_those_of_the_table_with_students_interval_over_seeds(
    results: Path,
) -> None:
    folder = results / picture.SWEEPS
    table = pd.read_csv(folder / "tables" / "accuracies.csv")
    parts = picture.accuracies(temperature_check.read(folder))
    shown = table[table["sweep"].isin(["vgg", "gru"])]
    assert len(parts) == len(shown) == 14
    for row, (key, part) in zip(shown.to_dict("records"), parts.items(), strict=True):
        assert key[0].startswith(row["architecture"])
        assert key[1] == row["inverse_temperature"]
        estimate = part.estimate()
        assert estimate.value == pytest.approx(row["test"], abs=1e-5)
        reach = t.ppf(0.95, row["runs"] - 1) * row["test_sd"] / row["runs"] ** 0.5
        ends = (row["test"] - reach, row["test"] + reach)
        assert estimate.ends == pytest.approx(ends, abs=1e-5)


def test_cooling_has_the_colours_of_its_own_figures_and_says_what_it_trained(
    drawn: Drawn,
) -> None:
    assert len(drawn.figures) == 4, "wide and tall, for light and for dark pages"
    pages = (picture.PAGES[0], picture.PAGES[0], picture.PAGES[1], picture.PAGES[1])
    for figure, page in zip(drawn.figures, pages, strict=True):
        (panel,) = (axes for axes in figure.axes if "Cooling" in axes.get_title("left"))
        assert "10,000 images, half width" in panel.get_title("left")
        names = [label.get_text() for label in panel.get_yticklabels()]
        assert "no schedule,\n15 vs 4 seeds" in names
        for axes in figure.axes:
            # A line of more than 50 characters does not fit the width of the tall
            # picture.
            assert max(map(len, axes.get_title("left").splitlines())) <= 50
        handles, labels = panel.get_legend_handles_labels()
        shown = dict(zip(labels, handles, strict=True))
        for mode, label in MODES.items():
            if mode == "none":
                continue
            dots = shown[label.lower()]
            colour = page.colour(COLOURS[mode])
            assert dots.lines[0].get_color() == colour
            # The printed values have crosses of the same colour.
            (crosses,) = [
                line
                for line in panel.lines
                if line.get_marker() == "x" and line.get_color() == colour
            ]
            assert np.size(crosses.get_xdata()) == len(panel.get_yticks())
        assert shown["printed"].get_color() == page.ink


def test_gains_over_all_seeds_are_welchs_and_those_of_the_page(results: Path) -> None:
    runs = cooling.read(results / picture.COOLING)
    table = pd.read_csv(results / picture.COOLING / "tables/table_1.csv")
    gains = picture.gains_over_all_seeds(table)
    assert list(gains) == ["distributed", "periodic"]
    chosen = runs.table.query("role == 'table_1' and schedule == 'none'")
    chosen = chosen.assign(accuracy=cooling.ACCURACY.of(runs, chosen))
    values = dict(list(chosen.groupby("mode")["accuracy"]))
    page = " ".join((results.parent / "docs/cooling.md").read_text().split())
    texts = []
    for mode, gain in gains.items():
        test = ttest_ind(values[mode], values["none"], equal_var=False)
        expected = test.confidence_interval(0.9)
        assert gain.n == len(values[mode]) > len(values["none"])
        assert gain.ends == pytest.approx((expected.low, expected.high), abs=1e-5)
        assert gain.ends
        low, high = gain.ends
        interval = f"[{100 * low:.1f}, {100 * high:.1f}]"
        texts.append(f"{100 * gain.value:.1f} {interval}")
    said = (
        f"distributed Cooling gains {texts[0]} points and periodic Cooling {texts[1]}."
    )
    assert said in page
