"""The front page's picture shows the numbers by which the claims are judged."""

import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image
from scipy.stats import t

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
    """The committed studies, drawn once."""
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
        "summary-tall.png",
        "summary-tall.svg",
        "summary.png",
        "summary.svg",
    ]
    with Image.open(drawn.folder / "summary.png") as wide:
        assert wide.width > wide.height
    with Image.open(drawn.folder / "summary-tall.png") as tall:
        assert tall.height > 2 * tall.width
    with pytest.raises(InputError, match="table not found"):
        picture.draw(tmp_path, tmp_path / "drawn")


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
    assert len(drawn.figures) == 2, "wide and tall"
    for figure in drawn.figures:
        (panel,) = (axes for axes in figure.axes if "Cooling" in axes.get_title("left"))
        assert "10,000 images, half width" in panel.get_title("left")
        handles, labels = panel.get_legend_handles_labels()
        shown = dict(zip(labels, handles, strict=True))
        for mode, label in MODES.items():
            if mode == "none":
                continue
            dots = shown[label.lower()]
            assert dots.lines[0].get_color() == COLOURS[mode]
