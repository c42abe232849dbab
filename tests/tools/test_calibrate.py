"""Calibration reports show the measured numbers, whatever the format of the input.

Other input is refused with a one-line error.
"""

import gc
import json
import math
import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.container import ErrorbarContainer
from PIL import Image
from typer.testing import CliRunner

from softmax_temperature import TemperatureScaler
from softmax_temperature.metrics import calibration_report
from softmax_temperature.papers.shared.figures import encoded_untrimmed
from softmax_temperature.runner.errors import InputError
from softmax_temperature.scaling import (
    apply_temperature,
    fit_temperature,
    temperature_interval,
)
from softmax_temperature.tools import cli
from softmax_temperature.tools.advice import three_digits
from softmax_temperature.tools.arrays import sample_logits
from softmax_temperature.tools.calibrate import (
    calibrate,
    calibrate_files,
)

Drawn = tuple[torch.Tensor, torch.Tensor]


def drawn(rows: int, temperature: float, seed: int = 0, classes: int = 5) -> Drawn:
    """Logits z, and labels drawn from softmax(z / T)."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(rows, classes, generator=generator)
    labels = torch.multinomial(
        torch.softmax(logits / temperature, dim=1), 1, generator=generator
    ).squeeze(1)
    return logits, labels


@pytest.fixture(scope="module")
def overconfident() -> Drawn:
    return drawn(1000, 2.0)


def test_the_verdict_comes_first_and_names_the_temperature(
    overconfident: Drawn,
) -> None:
    report = calibrate(*overconfident, bootstrap=50)
    first = str(report).splitlines()[0]
    assert f" by {report.temperature:.2f} [" in first
    assert first.startswith("Overconfident")
    assert "ECE" in first
    assert (
        calibrate(*drawn(1000, 0.5), bootstrap=0)
        .data["verdict"]
        .startswith("Underconfident")
    )
    labels = torch.arange(60) % 3
    separated = calibrate(
        5 * torch.nn.functional.one_hot(labels, 3).double(), labels, bootstrap=0
    )
    assert separated.data["verdict"].startswith("No temperature fits")


@pytest.mark.usefixtures("undrawn")
def test_a_script_can_print_a_report_in_any_encoding(overconfident: Drawn) -> None:
    logits, labels = overconfident
    verdicts = set()
    # One report advises scaling, one advises against it, and one found no optimum.
    for given in (logits, logits / 2, -logits):
        report = calibrate(given, labels, bootstrap=50)
        verdicts.add(report.data["verdict"].split(":")[0])
        assert str(report).isascii()
        assert repr(report).isascii()
    assert len(verdicts) == 3
    assert " → " in calibrate(logits, labels, bootstrap=50).html()
    said = str(calibrate(*sample_logits(), bootstrap=50))
    assert said.isascii()
    assert "; ECE 11.2 -> 4.7 % (change" in said


def test_the_numbers_equal_the_librarys(overconfident: Drawn) -> None:
    logits, labels = overconfident
    report = calibrate(logits, labels, fit_on="all", bootstrap=20, seed=3)
    fit = fit_temperature(logits, labels)
    assert report.temperature == fit.temperature
    scaled = apply_temperature(logits.double(), fit.temperature)
    assert report.data["metrics"]["nll"] == calibration_report(
        scaled, labels, bootstrap=20, seed=3
    )
    frame = report.to_frame()
    assert (
        frame.loc["accuracy", ("before", "value")]
        == (logits.argmax(1) == labels).double().mean().item()
    )


def test_the_rows_that_are_fitted_are_not_reported(overconfident: Drawn) -> None:
    validation = drawn(500, 2.0, seed=1)
    report = calibrate(*overconfident, validation=validation, bootstrap=0)
    assert report.temperature == fit_temperature(*validation).temperature
    assert report.data["rows"] == {"fitted": 500, "reported": 1000}
    half = calibrate(*overconfident, bootstrap=0)
    assert half.data["rows"] == {
        "fitted": 1000 - len(half.labels),
        "reported": len(half.labels),
    }
    assert half.labels.bincount().min() > 0


@pytest.mark.parametrize("classes", [2000, 400])
def test_classes_of_one_row_do_not_decide_which_half_is_fitted(classes: int) -> None:
    # The model is calibrated, so the interval of T contains 1 in about 9 of 10 draws.
    # If the rows of all classes with a single row went to the fitted half, 400 rows of
    # 2000 classes would give T = 1.1.
    covered = 0
    for seed in range(12):
        logits, labels = drawn(400, 1.0, seed=seed, classes=classes)
        report = calibrate(logits, labels, bootstrap=0, seed=seed)
        assert report.data["rows"] == {"fitted": 200, "reported": 200}
        fit = report.data["temperature"]["nll"]
        covered += fit["low"] <= 1 <= fit["high"]
    assert covered >= 8


def test_labels_that_are_all_different_are_split_too() -> None:
    logits = drawn(60, 1.0, classes=80)[0]
    report = calibrate(logits, torch.arange(60), bootstrap=0)
    assert report.data["rows"] == {"fitted": 30, "reported": 30}


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_temperature_scales_with_the_logits(
    scale: float, overconfident: Drawn
) -> None:
    logits, labels = overconfident
    report = calibrate(logits.double(), labels, bootstrap=0)
    scaled = calibrate(scale * logits.double(), labels, bootstrap=0)
    assert scaled.temperature == pytest.approx(scale * report.temperature, rel=1e-6)
    # Even tiny numbers are shown with three significant digits.
    assert three_digits(scaled.temperature) in scaled.data["verdict"]
    after, expected = (each.data["metrics"]["nll"] for each in (scaled, report))
    name = "expected_calibration_error"
    assert after[name] == pytest.approx(expected[name], abs=1e-6)


def test_numbers_have_three_significant_digits() -> None:
    numbers = {
        2.7182: "2.72",
        0.0040123: "0.00401",
        0.000040123: "4.01e-05",
        944837.2: "944,837",
        12.345: "12.3",
        3e9: "3.00e+09",
        math.inf: "inf",
        0.0: "0",
    }
    assert {number: three_digits(number) for number in numbers} == numbers


def test_near_chance_the_report_is_whole() -> None:
    logits = torch.tensor([[2.0, 1.0]]).repeat(2000, 1)
    labels = (torch.arange(2000) % 1000 >= 501).long()
    report = calibrate(logits, labels, fit_on="all", bootstrap=0)
    assert report.data["temperature"]["nll"]["high"] is None
    json.dumps(report.data, allow_nan=False)


@pytest.mark.usefixtures("undrawn")
def test_top_5_is_shown_where_there_are_more_classes() -> None:
    for classes in (5, 6):
        report = calibrate(*drawn(200, 1.0, classes=classes), bootstrap=0)
        assert ("top-5" in str(report)) is (classes == 6)
        assert ("top-5" in report.html()) is (classes == 6)
        assert ("top5_accuracy" in report.to_frame().index) is (classes == 6)
        assert not report.to_frame().xs("value", axis=1, level=1).isna().any(axis=None)


@pytest.mark.parametrize("kind", ["logits", "probs"])
def test_maps_are_reported_on_the_pixels_that_have_a_class(kind: str) -> None:
    logits, labels = drawn(4 * 30 * 10, 2.0)
    values = logits.double() if kind == "logits" else logits.double().softmax(1)
    maps = labels.reshape(4, 30, 10).clone()
    maps[:, :5] = 255
    images = values.reshape(4, 30, 10, 5).movedim(-1, 1)
    options: dict[str, Any] = {"kind": kind, "bootstrap": 0, "ignore_index": 255}
    report = calibrate(images, maps, fit_on="all", **options)
    assert report.data["rows"] == {"fitted": 1000, "reported": 1000}
    kept = maps.flatten() != 255
    expected = calibrate(values[kept], labels[kept], fit_on="all", **options)
    assert report.data["metrics"] == expected.data["metrics"]
    # When the rows are split in half, all pixels of an image go to the same half.
    maps[0] = 255
    assert sorted(calibrate(images, maps, **options).data["rows"].values()) in (
        [250, 500],
        [500, 250],
    )
    with pytest.raises(ValueError, match="labels are all 255"):
        calibrate(images, torch.full_like(maps, 255), **options)
    with pytest.raises(ValueError, match=r"labels must have shape \(4, 30, 10\)"):
        calibrate(images, maps[:, 1:], **options)


def test_narrow_labels_are_not_mistaken_for_void_ones() -> None:
    # As a signed byte, 156 would be -100, the label that torch ignores.
    logits = drawn(300, 1.0, classes=200)[0]
    labels = torch.full((300,), 156, dtype=torch.uint8)
    labels[:150] = 3
    report = calibrate(logits, labels, fit_on="all", bootstrap=0)
    assert report.data["rows"]["reported"] == 300


def test_a_masked_class_has_no_share_in_the_report(overconfident: Drawn) -> None:
    logits, labels = overconfident
    more = torch.nn.functional.pad(logits, (0, 1), value=-math.inf)
    report = calibrate(more, labels, bootstrap=20)
    expected = calibrate(more.clamp(min=-1e9), labels, bootstrap=20)
    assert report.data["temperature"] == expected.data["temperature"]
    assert report.data["metrics"] == expected.data["metrics"]
    assert report.data["differences"] == expected.data["differences"]
    with pytest.raises(ValueError, match="labels must not be a masked class, got 5"):
        calibrate(more, labels.where(labels > 0, 5), bootstrap=0)


@pytest.mark.parametrize(
    "given",
    [
        lambda z, y: (z.numpy(), y.numpy(), "logits"),
        lambda z, y: (z, y.double(), "logits"),
        lambda z, y: (z, torch.nn.functional.one_hot(y, 2), "logits"),
        lambda z, y: (torch.softmax(z.double(), 1), y, "probs"),
        lambda z, y: (z[:, 1] - z[:, 0], y, "logits"),
        lambda z, y: (torch.sigmoid(z[:, 1:].double() - z[:, :1]), y, "probs"),
    ],
)
def test_all_accepted_forms_give_the_same_temperature(given: Any) -> None:
    binary = drawn(400, 1.5, classes=2)
    logits, labels, kind = given(*binary)
    found, expected = (
        calibrate(logits, labels, kind=kind, bootstrap=0),
        calibrate(*binary, bootstrap=0),
    )
    assert found.temperature == pytest.approx(expected.temperature, rel=1e-5)


def test_the_interval_of_the_temperature_covers_the_true_one() -> None:
    # In 100 samples of 500 rows at T = 2, a 90 % interval misses 10 times on average,
    # and more than 20 times with probability 0.001.
    covered = 0
    for seed in range(100):
        logits, labels = drawn(500, 2.0, seed=seed)
        low, high = temperature_interval(
            logits, labels, fit_temperature(logits, labels).temperature
        )
        covered += low <= 2.0 <= high
    assert 80 <= covered <= 99


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda z, y: (torch.softmax(z, 1), y), "are probabilities"),
        (lambda z, y: (z, y + 1), r"must be in \[0, 5\), got 5"),
        (lambda z, y: (z, y + 0.5), "whole numbers"),
        (lambda z, y: (z, y[:-1]), r"shape \(1000,\)"),
        (lambda z, y: (torch.where(z == z.max(), torch.nan, z), y), "finite, got nan"),
        (lambda z, y: (z[:20], y[:20]), "fewer than the 15 bins"),
    ],
)
def test_anything_but_logits_is_refused(
    change: Any, said: str, overconfident: Drawn
) -> None:
    with pytest.raises(ValueError, match=said):
        calibrate(*change(*overconfident), bootstrap=0)


def test_the_command_writes_a_folder_and_a_page(
    overconfident: Drawn, tmp_path: Path
) -> None:
    logits, labels = overconfident
    np.savez(tmp_path / "mine <b>.npz", logits=logits.numpy(), labels=labels.numpy())
    folder = tmp_path / "made"
    report = calibrate_files(
        tmp_path / "mine <b>.npz",
        bootstrap=20,
        output=folder,
        html=tmp_path / "page.html",
    )
    assert sorted(path.name for path in folder.iterdir()) == [
        "reliability.png",
        "reliability.svg",
        "report.json",
    ]
    assert (
        json.loads((folder / "report.json").read_text())["verdict"]
        == report.data["verdict"]
    )
    page = (tmp_path / "page.html").read_text()
    assert report.data["verdict"].replace("->", "→") in page
    assert "<b>" not in page  # File names are escaped.
    (tmp_path / "taken").touch()
    with pytest.raises(InputError, match="Choose another place"):
        calibrate_files(
            tmp_path / "mine <b>.npz", bootstrap=0, output=tmp_path / "taken"
        )


def test_the_sample_is_a_file_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(cli.app, ["calibrate", "--sample", "--bootstrap", "0"])
    assert done.exit_code == 0
    assert done.stdout.startswith("Overconfident: divide the logits by 2.60")
    assert (tmp_path / "sample-calibration" / "reliability.png").is_file()


def test_a_report_of_arrays_imports_no_library_that_it_does_not_need(
    tmp_path: Path,
) -> None:
    code = """
import sys
from softmax_temperature.tools import cli
command = ["calibrate", "--sample", "--bootstrap", "0", "--output", sys.argv[1]]
cli.app(command, standalone_mode=False)
print(*sys.modules, file=sys.stderr)
"""
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    slow = {"pandas", "pyarrow", "jinja2", "sklearn", "seaborn", "matplotlib.pyplot"}
    assert slow.isdisjoint(done.stderr.split())
    assert (tmp_path / "reliability.svg").is_file()


def test_both_files_of_a_diagram_have_the_same_layout(
    overconfident: Drawn,
) -> None:
    figure = calibrate(*overconfident, bootstrap=0).plot()
    files = encoded_untrimmed(figure)
    places = [axes.get_position().bounds for axes in figure.axes]
    assert encoded_untrimmed(figure) == files
    assert [axes.get_position().bounds for axes in figure.axes] == places
    width, height = Image.open(BytesIO(files["png"])).size
    assert width / height == pytest.approx(
        figure.get_figwidth() / figure.get_figheight(), rel=0.01
    )
    assert f'width="{72 * figure.get_figwidth():g}pt"' in files["svg"].decode()


def test_bars_of_few_samples_show_their_error() -> None:
    # One bar has 4 samples, half of them right, and the other has 400 samples. The
    # expected 90 % intervals are Wilson's, worked out by hand.
    probs = torch.tensor([[0.55, 0.45]] * 4 + [[0.95, 0.05]] * 400, dtype=torch.float64)
    labels = torch.tensor([0, 0, 1, 1] + [0] * 380 + [1] * 20)
    upper = (
        calibrate(probs, labels, kind="probs", fit_on="all", bins=10, bootstrap=0)
        .plot()
        .axes[0]
    )
    (bars,) = [each for each in upper.containers if isinstance(each, ErrorbarContainer)]
    segments = bars[2][0].get_segments()
    assert [segment[:, 1].round(1).tolist() for segment in segments] == [
        [18.2, 81.8],
        [92.9, 96.5],
    ]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_probabilities_too_small_for_float32_keep_their_logits(
    dtype: torch.dtype,
) -> None:
    # With these logits, some probabilities are zero in float32 but none in float64.
    generator = torch.Generator().manual_seed(0)
    soft = torch.randn(400, 3, generator=generator, dtype=torch.float64)
    labels = torch.multinomial(soft.softmax(1), 1, generator=generator).squeeze(1)
    sharp = 100.0 * soft
    probs = sharp.softmax(1).to(dtype)
    assert (dtype == torch.float64) == bool((probs > 0).all())
    options: dict[str, Any] = {"fit_on": "all", "bootstrap": 0}
    if dtype == torch.float32:
        # If the zeros were accepted, the temperature would be half of the right one.
        with pytest.raises(ValueError, match="of the label are 0 in"):
            calibrate(probs, labels, kind="probs", **options)
        return
    ours = calibrate(probs, labels, kind="probs", **options).temperature
    right = calibrate(sharp, labels, **options).temperature
    assert ours == pytest.approx(right, rel=1e-6)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kind": "prob"}, "kind must be 'logits' or 'probs', got 'prob'"),
        ({"fit_on": "quarter"}, "fit_on must be 'half' or 'all', got 'quarter'"),
        ({"bins": 15.0}, "bins must be an integer of at least 1, got 15.0"),
        ({"bins": True}, "bins must be an integer of at least 1, got True"),
        ({"bootstrap": -1}, "bootstrap must be an integer of at least 0, got -1"),
        ({"bootstrap": 1}, "bootstrap=1: fewer than 19 resamples do not give a 90 %"),
        ({"bootstrap": np.int64(18)}, "bootstrap=18: fewer than 19 resamples"),
        ({"seed": "a"}, "seed must be an integer of at least 0, got 'a'"),
        ({"validation": 3}, r"validation must be \(logits, labels\), got int"),
        ({"validation": (1, 2), "fit_on": "all"}, "fit_on='all' cannot be combined"),
    ],
)
def test_an_option_of_another_value_is_refused(
    options: dict[str, Any], said: str, overconfident: Drawn
) -> None:
    with pytest.raises(ValueError, match=said):
        calibrate(*overconfident, **{"bootstrap": 0} | options)


def test_numpys_integers_are_options_too(overconfident: Drawn) -> None:
    options = {"bins": np.int64(15), "bootstrap": np.int32(19), "seed": np.uint8(2)}
    report = calibrate(*overconfident, **options)
    assert report.data["settings"]["bins"] == 15
    assert json.loads(json.dumps(report.data))["metrics"]["nll"]["bins"] == 15
    assert report.data == calibrate(*overconfident, bins=15, bootstrap=19, seed=2).data


@pytest.mark.usefixtures("undrawn")
def test_fewer_resamples_than_an_interval_needs_are_refused_on_the_command_line(
    tmp_path: Path,
) -> None:
    options = ["calibrate", "--sample", "--output", str(tmp_path / "made")]
    run = CliRunner().invoke(cli.app, [*options, "--bootstrap", "18"])
    assert isinstance(run.exception, InputError)
    assert str(run.exception).startswith("--bootstrap 18: fewer than 19 resamples")
    assert not (tmp_path / "made").exists()
    run = CliRunner().invoke(cli.app, [*options, "--bootstrap", "19"])
    assert run.exit_code == 0
    assert "over 19 resamples" in run.output


def test_a_report_keeps_its_logits_when_the_user_changes_theirs(
    overconfident: Drawn,
) -> None:
    logits = overconfident[0].clone()
    report = calibrate(logits, overconfident[1], fit_on="all", bootstrap=0)
    logits.zero_()
    assert torch.equal(report.logits["before"], overconfident[0].double())


def drawn_maps() -> Drawn:
    generator = torch.Generator().manual_seed(0)
    maps = torch.randint(0, 3, (6, 5, 4), generator=generator)
    return 3 * torch.randn(6, 3, 5, 4, generator=generator), maps


@pytest.mark.parametrize("call", [calibrate, TemperatureScaler().fit])
def test_maps_of_another_layout_are_refused_with_their_remedy(call: Any) -> None:
    logits, maps = drawn_maps()
    one_hot = torch.nn.functional.one_hot(maps, 3).movedim(-1, 1)
    for bad_logits, bad_labels, remedy in (
        (logits, maps[:, None], r"Drop the second dimension: labels\[:, 0\]"),
        (logits.movedim(1, -1), maps, r"logits.movedim\(-1, 1\) for a tensor, np.move"),
        (logits, one_hot, r"labels.argmax\(1\)"),
        (logits, maps[:, :-1], r"one class for each pixel, \(6, 5, 4\)"),
    ):
        with pytest.raises(ValueError, match=remedy):
            call(bad_logits, bad_labels)


@pytest.mark.parametrize("call", [calibrate, TemperatureScaler().fit])
def test_the_remedy_for_squeezed_logits_of_masks_restores_their_dimension(
    call: Any,
) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 4 * torch.randn(20, 6, 5, generator=generator)
    noise = torch.rand(20, 6, 5, generator=generator).logit()
    masks = (logits / 2 + noise > 0).long()
    remedy = r"For masks of two classes, 0 and 1, give logits\[:, None\]"
    for given in (masks, masks.bool(), masks.float()):
        with pytest.raises(ValueError, match=f"{remedy}\\.$"):
            call(logits, given)
    with pytest.raises(ValueError, match=rf"{remedy} and labels\[:, 0\]\.$"):
        call(logits, masks[:, None])
    result = call(logits[:, None], masks)
    temperature = getattr(result, "temperature_", None) or result.temperature
    expected = fit_temperature(
        torch.stack([torch.zeros_like(logits), logits], dim=1)
        .movedim(1, -1)
        .flatten(0, 2),
        masks.flatten(),
    ).temperature
    # `calibrate` fits on half of the images.
    assert temperature == pytest.approx(expected, rel=0.3)
    assert expected == pytest.approx(2, rel=0.15)


@pytest.mark.parametrize("call", [calibrate, TemperatureScaler().fit])
@pytest.mark.parametrize("shape", [(60, 4, 4, 4), (200, 5, 5)])
def test_classes_in_the_last_of_equal_axes_are_recognised(
    call: Any, shape: tuple[int, ...]
) -> None:
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(shape, generator=generator)
    draws = -torch.rand(shape, generator=generator).log().neg().log()
    labels = (logits + draws).argmax(dim=-1)
    with pytest.raises(ValueError, match=r"in the last dimension\. Move the classes"):
        call(logits, labels)
    call(logits.movedim(-1, 1), labels)


def test_the_remedy_for_masks_of_0_and_255_is_to_divide_them() -> None:
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(20, 1, 6, 5, generator=generator)
    masks = 255 * (torch.rand(20, 6, 5, generator=generator) < 0.5)
    with pytest.raises(ValueError, match=r"Replace 255 by 1: labels // 255"):
        calibrate(logits, masks)
    calibrate(logits, masks // 255, bootstrap=0)


def test_the_remedy_for_a_mask_of_one_image_is_to_make_rows_of_it() -> None:
    logits = torch.randn(40, 30, generator=torch.Generator().manual_seed(0))
    with pytest.raises(ValueError, match=r"logits.reshape\(-1, 1\) and labels"):
        calibrate(logits, (logits > 0).long())


@pytest.mark.parametrize("largest", [1.7976931348623157e308, 3.4028234663852886e38])
def test_an_infinity_that_was_replaced_is_refused_with_its_place(
    largest: float, overconfident: Drawn, tmp_path: Path
) -> None:
    logits, labels = overconfident[0].double(), overconfident[1]
    logits[17, (labels[17] + 1) % 5] = largest
    place = rf"row 17, class {int((labels[17] + 1) % 5)}\. It is an infinity that was"
    np.savez(tmp_path / "in.npz", logits=logits.numpy(), labels=labels.numpy())
    command = ["calibrate", str(tmp_path / "in.npz"), "--output", str(tmp_path / "out")]
    run = CliRunner().invoke(cli.app, command)
    assert isinstance(run.exception, InputError)
    assert "row 17, class" in str(run.exception)
    for call in (calibrate, TemperatureScaler().fit):
        with pytest.raises(ValueError, match=place):
            call(logits, labels)
        with pytest.raises(ValueError, match=place):
            call(logits.numpy(), labels.numpy())


def test_half_precisions_largest_number_is_taken_for_infinity(
    overconfident: Drawn,
) -> None:
    logits, labels = overconfident[0].half(), overconfident[1]
    logits[17, 0] = 65504
    for given in (logits, logits.numpy()):
        with pytest.raises(ValueError, match=r"got 65504 in row 17, class 0"):
            calibrate(given, labels)
    # In a wider type, a large logit is a number like any other.
    wide = logits.float()
    wide[17, 0] = 5000
    labels = labels.clone()
    labels[17] = 0
    assert calibrate(wide, labels, bootstrap=0).temperature == pytest.approx(2, rel=0.2)


def test_images_without_a_label_are_in_neither_half() -> None:
    logits, maps = drawn_maps()
    maps[:3] = -100  # In some random splits, these would be a whole half.
    options: dict[str, Any] = {"bins": 5, "bootstrap": 0}
    for seed in range(10):
        report = calibrate(logits, maps, seed=seed, **options)
        assert sum(report.data["rows"].values()) == 3 * 5 * 4
    maps[3:5] = -100
    # Only one image has labels, so the pixels of this image are split in half.
    report = calibrate(logits, maps, **options)
    assert report.data["rows"] == {"fitted": 10, "reported": 10}


def test_validation_rows_in_the_archive_are_not_overridden_in_silence(
    tmp_path: Path, overconfident: Drawn
) -> None:
    logits, labels = (part.numpy() for part in overconfident)
    np.savez(
        tmp_path / "all.npz",
        logits=logits,
        labels=labels,
        validation_logits=logits[::-1],
        validation_labels=labels[::-1],
    )
    np.savez(tmp_path / "other.npz", logits=logits, labels=labels)
    for option, fault in (
        (
            {"validation": tmp_path / "other.npz"},
            "other.npz also gives validation rows",
        ),
        ({"fit_on": "half"}, "cannot be combined with --fit-on"),
    ):
        with pytest.raises(InputError, match=fault):
            calibrate_files(tmp_path / "all.npz", output=tmp_path / "out", **option)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "rows",
    [slice(None), slice(None, None, -1), slice(0, 300)],
    ids=["all", "reordered", "a part"],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_validation_rows_are_not_reported_rows(
    rows: slice, swapped: bool, overconfident: Drawn
) -> None:
    logits, labels = (part.numpy() for part in overconfident)
    pairs = [(logits, labels), (logits[rows].astype(np.float32), labels[rows])]
    if swapped:
        pairs.reverse()
    reported, validation = pairs
    with pytest.raises(ValueError, match="rows in common, which makes the result too"):
        calibrate(*reported, validation=validation, bootstrap=0)


def test_other_samples_may_have_some_of_the_same_scores(overconfident: Drawn) -> None:
    logits, labels = (part.numpy() for part in overconfident)
    options: dict[str, Any] = {"bootstrap": 0}
    half = len(labels) // 2
    more = half + 100
    shared = (logits[half - 100 :], labels[half - 100 :])
    report = calibrate(logits[:more], labels[:more], validation=shared, **options)
    assert report.data["rows"]["reported"] == more
    # A decision tree with few leaves gives many samples the same scores.
    leaves = logits.round().clip(-1, 1)
    first = (leaves[:half], labels[:half])
    second = (leaves[half:], labels[half:])
    report = calibrate(*first, validation=second, **options)
    assert report.data["rows"]["reported"] == half


def test_validation_frames_have_the_columns_of_the_others(
    overconfident: Drawn,
) -> None:
    logits, labels = (part.numpy() for part in overconfident)
    names = [chr(ord("a") + place) for place in range(logits.shape[1])]
    frame = pd.DataFrame(logits, columns=names)
    half = len(labels) // 2
    first = (frame[:half], labels[:half])
    second = (frame[half:], labels[half:])
    options: dict[str, Any] = {"bootstrap": 0}
    assert calibrate(*first, validation=second, **options).data["rows"]
    reversed_names = (frame[names[::-1]][half:], labels[half:])
    with pytest.raises(ValueError, match="validation logits have the columns"):
        calibrate(*first, validation=reversed_names, **options)


@pytest.mark.usefixtures("undrawn")
def test_the_command_leaves_the_garbage_collector_on(tmp_path: Path) -> None:
    arguments = ["calibrate", "--sample", "--output", str(tmp_path / "out")]
    assert CliRunner().invoke(cli.app, arguments).exit_code == 0
    assert gc.isenabled()


def test_half_precision_arrays_and_tensors_give_the_same_report(
    overconfident: Drawn,
) -> None:
    logits, labels = overconfident
    sharp = (3 * logits).half()
    for kind, values in (("logits", sharp), ("probs", logits.softmax(1).half())):
        of_tensor = calibrate(values, labels, kind=kind, bootstrap=0)
        of_array = calibrate(values.numpy(), labels, kind=kind, bootstrap=0)
        assert of_tensor.data == of_array.data


def test_an_error_says_if_only_the_fitted_half_has_one_class(
    overconfident: Drawn,
) -> None:
    logits = overconfident[0][:40, :2]
    labels = torch.zeros(40, dtype=torch.int64)
    labels[3] = 1
    said = set()
    for seed in range(8):
        try:
            calibrate(logits, labels, bootstrap=0, seed=seed)
        except ValueError as error:
            said.add(str(error))
    (message,) = said
    assert message.startswith(
        "labels of the random half to fit the temperature on, 20 rows, are all 0"
    )
    other = overconfident[0][40:80, :2]
    with pytest.raises(ValueError, match="validation labels are all 0, and one class"):
        calibrate(logits, labels, bootstrap=0, validation=(other, 0 * labels))
    with pytest.raises(ValueError, match=r"^labels are all 0, and one class"):
        calibrate(logits, 0 * labels, bootstrap=0)


def test_a_temperature_at_the_end_of_its_search_says_so(overconfident: Drawn) -> None:
    logits, labels = overconfident
    for scale in (1e-6, 1.0, 1e6):
        report = calibrate(scale * logits, labels, bootstrap=0)
        assert "(end of the search)" not in str(report)
    contrary = calibrate(-logits, labels, bootstrap=0)
    for criterion in ("NLL", "ECE"):
        assert f"T = 10,000 (end of the search), by {criterion}" in str(contrary)
    verdict = contrary.data["verdict"]
    assert "say nothing about the labels" in verdict
    assert verdict.endswith("and that larger logits mean more likely.")


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"output": "note"}, "--output .*note: is a file, not a folder"),
        ({"output": "note/made"}, "--output .*: .*note is a file, not a folder"),
        ({"html": "note/page.html"}, "--html .*: .*note is a file, not a folder"),
        ({"html": "logits.npz"}, "--html .*logits.npz: is one of the files to read"),
        ({"html": "link.npz"}, "--html .*link.npz: is one of the files to read"),
    ],
)
def test_a_place_that_cannot_be_written_is_refused_before_anything_is_written(
    options: dict[str, str], fault: str, overconfident: Drawn, tmp_path: Path
) -> None:
    logits, labels = (tensor.numpy() for tensor in overconfident)
    file = tmp_path / "logits.npz"
    np.savez(file, logits=logits, labels=labels)
    content = file.read_bytes()
    (tmp_path / "note").write_text("mine")
    (tmp_path / "link.npz").symlink_to(file)
    places = {name: tmp_path / value for name, value in options.items()}
    with pytest.raises(InputError, match=fault):
        calibrate_files(file, **{"output": tmp_path / "made"} | places)
    assert file.read_bytes() == content
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"logits.npz", "note", "link.npz"}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse such names")
def test_a_file_whose_name_is_not_utf_8_is_reported_on(
    overconfident: Drawn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The diagram of a page shows no file name.
    monkeypatch.setattr(f"{calibrate.__module__}.encoded", lambda *_: b"")
    logits, labels = (tensor.numpy() for tensor in overconfident)
    file = tmp_path / os.fsdecode(b"caf\xe9.npz")
    np.savez(tmp_path / "plain.npz", logits=logits, labels=labels)
    (tmp_path / "plain.npz").rename(file)
    page = tmp_path / "page.html"
    # matplotlib must not warn of a character that the font lacks: in the tests a
    # warning is an error.
    chinese = tmp_path / "\N{CJK UNIFIED IDEOGRAPH-6A21}.npz"
    chinese.symlink_to(file)
    calibrate_files(chinese, output=tmp_path / "other", html=page, bootstrap=0)
    assert chinese.name in page.read_text(encoding="utf-8")
    calibrate_files(file, output=tmp_path / "made", html=page, bootstrap=0)
    made = json.loads((tmp_path / "made" / "report.json").read_text(encoding="utf-8"))
    assert made["sources"]["logits"]["file"] == "caf\\xe9.npz"
    assert "caf\\xe9.npz" in page.read_text(encoding="utf-8")
