"""Figures have the same bytes on every machine."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib import font_manager
from matplotlib.figure import Figure

from softmax_temperature.papers.shared.plots import FONT, save, style


def drawn(folder: Path) -> bytes:
    with style():
        figure = Figure(figsize=(1, 1))
        figure.text(0.1, 0.5, "α = 1")
        save(figure, folder, "letters")
    return (folder / "letters.svg").read_bytes()


def test_a_release_of_the_font_in_the_system_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = drawn(tmp_path)
    fonts = font_manager.fontManager
    other = next(each for each in fonts.ttflist if each.name == "DejaVu Sans Mono")
    disguised = dataclasses.replace(other, name=FONT, fname=str(tmp_path / "other.ttf"))
    (tmp_path / "other.ttf").write_bytes(Path(other.fname).read_bytes())
    monkeypatch.setattr(fonts, "ttflist", [disguised, *fonts.ttflist])
    assert drawn(tmp_path) == expected
    assert all(each.fname.startswith(mpl.get_data_path()) for each in fonts.ttflist if each.name == FONT)


def test_equal_figures_have_equal_bytes(tmp_path: Path) -> None:
    assert drawn(tmp_path) == drawn(tmp_path)


def test_a_list_of_fonts_from_elsewhere_brings_no_warnings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fonts = font_manager.fontManager
    monkeypatch.setattr(fonts, "ttflist", [each for each in fonts.ttflist if each.name.startswith("DejaVu Sans")])
    with style():
        figure = Figure(figsize=(1, 1))
        figure.text(0.1, 0.5, "$10^{-1}$")
        save(figure, tmp_path, "power")
    assert "findfont" not in caplog.text
