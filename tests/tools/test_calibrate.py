"""`calibrate` as a user calls it: the numbers, what they rest on, one clear line on bad input, and whole folders."""

from __future__ import annotations

import base64
import errno
import hashlib
import io
import json
import os
import sys
import zipfile
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray

from softmax_temperature.metrics import calibration_report
from softmax_temperature.runner.artifacts import open_artifact
from softmax_temperature.runner.errors import InputError
from softmax_temperature.scaling import fit_temperature
from softmax_temperature.tools import calibrate as module
from softmax_temperature.tools import calibration_summary, cli
from softmax_temperature.tools.calibrate import calibrate
from softmax_temperature.tools.calibration_summary import summary
from softmax_temperature.tools.logits_archive import LogitsArchive, LogitsFiles

Arrays = dict[str, NDArray[Any]]
FILES = ["manifest.json", "reliability.png", "reliability.svg", "report.json"]


def network(samples: int = 120, classes: int = 4, *, temperature: float = 2.0, seed: int = 0) -> Arrays:
    """Overconfident logits and their labels."""
    generator = np.random.default_rng(seed)
    logits = 3 * generator.normal(size=(samples, classes))
    noise = generator.gumbel(size=logits.shape)
    return {"logits": logits.astype(np.float32), "labels": (logits / temperature + noise).argmax(axis=1)}


def several() -> Arrays:
    """Two networks and one set of labels."""
    first, second = network(), network(temperature=1, seed=1)
    return first | {"logits": np.stack([first["logits"], second["logits"]]), "names": np.array(["wide/1", "narrow"])}


def with_validation() -> Arrays:
    validation = {f"validation_{key}": array for key, array in network(90, temperature=3, seed=3).items()}
    return network() | validation


def saved(folder: Path, arrays: Arrays, name: str = "logits.npz") -> Path:
    np.savez(folder / name, allow_pickle=True, **arrays)  # type: ignore[arg-type]  # the stubs take them for options
    return folder / name


def run(path: Path, **options: Any) -> dict[str, Any]:
    """The report, of few resamples and without the second that the figure takes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "reliability_diagram", lambda *_, **__: Figure())
        return calibrate(path, **{"bootstrap": 20, **options})[0]


def refused(path: Path, **options: Any) -> str:
    """The error; asserts that it is one line and that nothing has been written."""
    before = contents(path.parent)
    with pytest.raises(InputError) as caught:
        run(path, **options)
    assert contents(path.parent) == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


def contents(folder: Path) -> dict[str, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> None:
    monkeypatch.setattr(sys, "argv", ["softmax-temperature", *words])
    cli.main()


def test_the_temperature_is_of_the_validation_rows_and_the_metrics_of_the_others(tmp_path: Path) -> None:
    arrays = with_validation()
    report = run(saved(tmp_path, arrays), seed=4)
    fit_logits, fit_labels, logits, labels = (
        torch.from_numpy(arrays[key]) for key in ("validation_logits", "validation_labels", "logits", "labels")
    )
    assert report["settings"]["fit_on"] == "validation"
    assert report["rows"] == {"fitted": 90, "reported": 120, "same": False}
    temperatures = {by: fit_temperature(fit_logits, fit_labels, criterion=by).temperature for by in ("nll", "ece")}
    assert {by: fit["temperature"] for by, fit in report["temperature"].items()} == temperatures
    for arm, temperature in {"before": 1.0, **temperatures}.items():
        expected = calibration_report(logits.double() / temperature, labels, bootstrap=20, seed=4)
        assert report["metrics"][arm] == expected, arm


def test_by_default_the_rows_are_halved_and_no_row_is_in_both_halves(tmp_path: Path) -> None:
    arrays = network(121)
    path = saved(tmp_path, arrays)
    archive = LogitsArchive.open(LogitsFiles(path))
    halves = [module._divided(archive, None, "half", seed) for seed in (0, 0, 1)]
    fitted, reported = ([tuple(row) for row in part.logits.tolist()] for part in halves[0])
    assert len(set(fitted)) == len(fitted)
    assert not set(fitted) & set(reported)
    assert set(fitted) | set(reported) == {tuple(row) for row in arrays["logits"].astype(np.float64).tolist()}
    for of_class in range(4):
        counts = [int((part.labels == of_class).sum()) for part in halves[0]]
        assert abs(counts[0] - counts[1]) <= 1
    assert torch.equal(halves[1][0].logits, halves[0][0].logits)
    assert not torch.equal(halves[2][0].labels, halves[0][0].labels)
    report = run(path)
    assert report["settings"]["fit_on"] == "half"
    assert report["rows"] == {"fitted": len(fitted), "reported": len(reported), "same": False}
    expected = calibration_report(halves[0][1].logits, halves[0][1].labels, bootstrap=20)
    assert report["metrics"]["before"] == expected


def test_the_same_rows_are_fitted_and_reported_on_only_when_asked_for_and_the_output_says_so(tmp_path: Path) -> None:
    arrays = network()
    path = saved(tmp_path, arrays)
    report = run(path, fit_on="all")
    assert report["rows"] == {"fitted": 120, "reported": 120, "same": True}
    assert "fitted on the same 120 rows that the metrics are of" in summary(report)
    fit = fit_temperature(torch.from_numpy(arrays["logits"]), torch.from_numpy(arrays["labels"]), criterion="ece")
    assert report["metrics"]["ece"]["expected_calibration_error"] == pytest.approx(fit.value, abs=1e-12)
    assert "random half of every class, 59 rows (seed 0); metrics of the other 61 rows" in summary(run(path))


def test_validation_arrays_are_left_alone_when_another_choice_is_made(tmp_path: Path) -> None:
    path, alone = saved(tmp_path, with_validation()), saved(tmp_path, network(), "alone.npz")
    assert run(path, fit_on="half")["temperature"] == run(alone)["temperature"]


def test_the_summary_prints_what_the_report_holds_in_percent_and_nats(tmp_path: Path) -> None:
    report = run(saved(tmp_path, network()))
    lines = {line.split("  ")[0] if line[:1] != " " else line.strip().split("  ")[0]: line for line in table(report)}
    for arm in ("before", "nll", "ece"):
        values = report["metrics"][arm]
        low, high = (100 * bound for bound in values["intervals"]["expected_calibration_error"])
        assert f"{100 * values['expected_calibration_error']:.2f} [{low:.2f}, {high:.2f}]" in lines["ECE (%)"]
        assert f"{100 * values['noise_floor']:.2f}" in lines["noise floor (%)"]
        assert f"{values['negative_log_likelihood']:.4f} [" in lines["NLL (nats)"]
    assert f"Temperature by NLL: {report['temperature']['nll']['temperature']:.4g}\n" in summary(report)
    assert "90 % intervals, percentiles over 20 resamples" in summary(report)
    assert "[" not in summary(run(saved(tmp_path, network()), bootstrap=0))


def table(report: dict[str, Any]) -> list[str]:
    return [line for line in summary(report).splitlines() if line]


def test_columns_stand_below_their_headings(tmp_path: Path) -> None:
    report = run(saved(tmp_path, network()))
    head, *body = calibration_summary._columns(report)
    starts = [head.index(text) for text in ("before", "T = ", ", by ECE")]
    assert all(line[starts[0] - 1] == " " != line[starts[0]] for line in body)
    assert all(line[starts[1] - 1] == " " != line[starts[1]] for line in body)


def test_a_temperature_at_a_bound_is_flagged(tmp_path: Path) -> None:
    labels = np.arange(60) % 3
    report = run(saved(tmp_path, {"logits": 40.0 * np.eye(3)[labels], "labels": labels}))
    assert report["temperature"]["nll"] == {"temperature": 1e-4, "value": 0.0, "at_bound": True}
    assert report["temperature"]["ece"]["at_bound"]
    assert summary(report).count("(at a bound of the search: not an optimum)") == 2


@pytest.mark.parametrize("scale", [0.0, 1e-300, 3e38])
def test_defined_values_where_all_confidences_are_equal_or_all_answers_right(tmp_path: Path, scale: float) -> None:
    labels = np.arange(60) % 3
    path = saved(tmp_path, {"logits": scale * np.eye(3)[labels], "labels": labels})
    json.dumps(run(path), allow_nan=False)


def test_one_of_several_networks_is_reported_on(tmp_path: Path) -> None:
    arrays = several()
    path = saved(tmp_path, arrays)
    report, other = (run(path, name=name, bootstrap=0) for name in ("wide/1", "narrow"))
    assert report["source"]["network"] == "wide/1"
    assert sorted(entry.name for entry in tmp_path.iterdir() if entry.is_dir()) == [
        "logits-narrow-calibration",
        "logits-wide_1-calibration",
    ]
    alone = run(saved(tmp_path, {"logits": arrays["logits"][1], "labels": arrays["labels"]}, "alone.npz"), bootstrap=0)
    assert other["metrics"] == alone["metrics"] != report["metrics"]
    assert "\nlogits.npz, narrow\n" in f"\n{summary(other)}\n"


def test_networks_have_their_own_validation_logits(tmp_path: Path) -> None:
    arrays = several()
    both = np.stack([network(90, temperature=t, seed=t)["logits"] for t in (3, 4)])
    more = {"validation_logits": both, "validation_labels": network(90, temperature=4, seed=4)["labels"]}
    fit = fit_temperature(torch.from_numpy(both[1]), torch.from_numpy(more["validation_labels"]))
    report = run(saved(tmp_path, arrays | more), name="narrow")
    assert report["temperature"]["nll"]["temperature"] == fit.temperature


def test_a_single_named_network_needs_no_choice(tmp_path: Path) -> None:
    arrays = network()
    path = saved(tmp_path, arrays | {"logits": arrays["logits"][None], "names": np.array(["only"])})
    assert run(path)["source"]["network"] == "only"


@pytest.mark.parametrize("dtype", ["uint8", "int32", ">i8", "uint64"])
def test_kinds_of_numbers_do_not_matter(tmp_path: Path, dtype: str) -> None:
    arrays = network()
    exact = {"logits": arrays["logits"].astype(np.float16).astype(np.float64), "labels": arrays["labels"]}
    other = {"logits": arrays["logits"].astype(">f2"), "labels": arrays["labels"].astype(dtype)}
    expected = run(saved(tmp_path, exact))
    found = run(saved(tmp_path, other))
    assert {key: found[key] for key in ("metrics", "temperature")} == {
        key: expected[key] for key in ("metrics", "temperature")
    }


def as_csv(path: Path, arrays: Arrays) -> Path:
    names = {f"class {number}": column for number, column in enumerate(arrays["logits"].T)}
    pd.DataFrame({**names, "label": arrays["labels"]}).to_csv(path, index=False)
    return path


def test_a_validation_file_of_another_type_is_fitted_on(tmp_path: Path) -> None:
    arrays = with_validation()
    expected = run(saved(tmp_path, arrays))
    test, validation = (
        {key.removeprefix(prefix): arrays[key] for key in (f"{prefix}logits", f"{prefix}labels")}
        for prefix in ("", "validation_")
    )
    path = saved(tmp_path, test, "test.npz")
    for name, array in validation.items():
        np.save(tmp_path / f"{name}.npy", array)
    files = {"validation": tmp_path / "logits.npy", "validation_labels": tmp_path / "labels.npy"}
    report = run(path, **files)
    assert [report[key] for key in ("metrics", "temperature", "rows")] == [
        expected[key] for key in ("metrics", "temperature", "rows")
    ]
    assert {role: source["file"] for role, source in report["source"]["files"].items()} == {
        "logits": "test.npz",
        "validation": "logits.npy",
        "validation_labels": "labels.npy",
    }
    assert report["source"]["files"]["logits"]["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()
    table = as_csv(tmp_path / "validation.csv", validation)
    fits = [found["temperature"]["nll"]["temperature"] for found in (run(path, validation=table), expected)]
    assert fits[0] == pytest.approx(fits[1], rel=1e-6)  # The table holds the shortest decimals of float32.
    assert "holds validation_logits of its own" in refused(tmp_path / "logits.npz", validation=table)
    assert "--validation-labels: is given without" in refused(path, validation_labels=tmp_path / "labels.npy")
    for fault, message in (
        (network(90, 5), "validation_logits has 5 classes, logits 4"),
        ({**validation, "labels": validation["labels"][:-1]}, "validation_labels has shape (89,) for 90 rows"),
    ):
        bad = saved(tmp_path, fault, "bad.npz")
        assert refused(path, validation=bad).startswith(f"{bad}: {message}")


def test_a_table_with_a_hole_or_a_label_of_no_class_is_refused_and_so_are_labels_of_other_rows(tmp_path: Path) -> None:
    arrays = network()
    holed = as_csv(tmp_path / "holed.csv", arrays | {"logits": with_entry(np.nan)})
    assert "holed.csv: logits must be finite, and in the range of float32, got nan in row 7, class 2" in refused(holed)
    strange = as_csv(tmp_path / "strange.csv", arrays | {"labels": np.arange(120) % 5})
    assert "strange.csv: labels must be in [0, 4), got 4" in refused(strange)
    np.save(tmp_path / "labels.npy", arrays["labels"][:-1])
    path = saved(tmp_path, {"logits": arrays["logits"]}, "alone.npz")
    assert "labels.npy: labels has shape (119,) for 120 rows" in refused(path, labels=tmp_path / "labels.npy")


def test_the_page_shows_the_report_and_needs_no_other_file(tmp_path: Path) -> None:
    path = saved(tmp_path, several() | {"names": np.array(["<wide>", "narrow"])})
    target = tmp_path / "page.html"
    report, _ = calibrate(path, name="<wide>", bootstrap=20, html=target)
    tree = HtmlTree(target.read_text())
    assert tree.headings[0] == "Calibration of logits.npz, <wide>"
    assert not tree.references
    (image,) = tree.images
    assert ElementTree.fromstring(base64.b64decode(image["src"].partition("base64,")[2])).tag.endswith("svg")  # noqa: S314  # Our own.
    assert f"calibration error {100 * report['metrics']['nll']['expected_calibration_error']:.2f} %" in image["alt"]
    expected = [[value for value, _ in row.cells] for row in calibration_summary.metric_rows(report)]
    assert [row for row in tree.rows if row] == expected


class HtmlTree(HTMLParser):
    """Headings, images, the first text of each cell, and whatever a page would fetch."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.headings: list[str] = []
        self.images: list[dict[str, str]] = []
        self.references: list[str] = []
        self.rows: list[list[str]] = []
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {key: value or "" for key, value in attrs}
        self._inside = tag
        if tag == "tr":
            self.rows.append([])
        if tag == "img":
            self.images.append(given)
        self.references += [
            value for key, value in given.items() if key in ("src", "href") and not value.startswith("data:")
        ]

    def handle_data(self, data: str) -> None:
        if self._inside == "h1":
            self.headings.append(data)
        if self._inside == "td":
            self.rows[-1].append(data)
        self._inside = ""


def test_a_page_that_cannot_be_written_is_refused_before_any_work(tmp_path: Path) -> None:
    path = saved(tmp_path, network())
    assert "is a folder, not a file" in refused(path, html=tmp_path)
    assert "there is no folder" in refused(path, html=tmp_path / "none" / "page.html")
    inside = tmp_path / "logits-calibration" / "page.html"
    inside.parent.mkdir()
    assert "lies in the folder that the report replaces" in refused(path, html=inside)


def changed(**arrays: Any) -> Arrays:
    return network() | {key: np.asarray(array) for key, array in arrays.items()}


def with_entry(value: float) -> NDArray[np.float32]:
    logits = network()["logits"]
    logits[7, 2] = value
    return logits


def softmax(logits: NDArray[np.float32]) -> NDArray[np.float32]:
    exponentials = np.exp(logits)
    return exponentials / exponentials.sum(axis=1, keepdims=True)


BAD_ARRAYS: dict[str, tuple[Arrays, str]] = {
    "nan": (changed(logits=with_entry(np.nan)), "logits must be finite, and in the range of float32, got nan in row 7"),
    "infinite": (changed(logits=with_entry(-np.inf)), "got -inf in row 7, class 2"),
    "huge": (changed(logits=with_entry(1).astype(np.float64) * 1e300), "in the range of float32, got"),
    "probabilities": (changed(logits=softmax(network()["logits"])), "logits holds probabilities"),
    "rounded": (changed(logits=softmax(network()["logits"]).round(3)), "logits holds probabilities"),
    "integers": (changed(logits=network()["logits"].astype(int)), "logits is int64, not floating point"),
    "text": (changed(logits=np.full((9, 3), "a")), "logits is <U1, not floating point"),
    "row": (changed(logits=np.zeros(9)), "logits has shape (9,), not rows of at least two classes"),
    "one column": (changed(logits=np.zeros((120, 1))), "logits has shape (120, 1), not rows of at least two classes"),
    "no rows": (changed(logits=np.zeros((0, 3)), labels=np.zeros(0, int)), "logits has shape (0, 3)"),
    "label above": (changed(labels=np.arange(120) % 5), "labels must be in [0, 4), got 4"),
    "label below": (changed(labels=np.arange(120) % 4 - 1), "labels must be in [0, 4), got -1"),
    "too few labels": (changed(labels=np.arange(119) % 4), "labels has shape (119,) for 120 rows of logits"),
    "one-hot": (changed(labels=np.eye(4, dtype=int)[network()["labels"]]), "labels has shape (120, 4)"),
    "float labels": (changed(labels=network()["labels"].astype(float)), "labels is float64, not integers"),
    "one class": (changed(labels=np.full(120, 3)), "labels are all of one class, 3"),
    "few samples": (network(20), "has 9 rows to fit the temperature on, fewer than 15 bins"),
    "no labels": ({"logits": network()["logits"]}, "has no labels (it holds: logits)"),
    "other keys": ({"x": np.zeros(3), "y": np.zeros(3)}, "has no logits and no labels (it holds: x, y)"),
    "pickled": (
        changed(labels=np.array([1, "a", None] * 40, dtype=object)),
        "labels holds Python objects, not plain numbers",
    ),
    "half a pair": (changed(validation_logits=np.zeros((9, 4))), "has validation_logits alone"),
    "other classes": (
        network() | {f"validation_{key}": array for key, array in network(90, 5).items()},
        "validation_logits has 5 classes, logits 4",
    ),
    "validation nan": (with_validation() | {"validation_logits": with_entry(np.nan)[:90]}, "validation_logits must be"),
    "no names": ({key: array for key, array in several().items() if key != "names"}, "need names"),
    "equal names": (several() | {"names": np.array(["a", "a"])}, "need names, a row of distinct texts"),
    "too many names": (several() | {"names": np.array(["a", "b", "c"])}, "logits has shape (2, 120, 4) for 3 names"),
    "no choice": (several(), "holds 2 networks. Choose one with --name: wide/1, narrow."),
}


@pytest.mark.parametrize("case", BAD_ARRAYS)
def test_bad_arrays_are_refused_by_name(tmp_path: Path, case: str) -> None:
    arrays, says = BAD_ARRAYS[case]
    message = refused(saved(tmp_path, arrays))
    assert message.startswith(f"{tmp_path / 'logits.npz'}: ")
    assert says in message


def test_bad_options_are_refused_by_name(tmp_path: Path) -> None:
    path, both = saved(tmp_path, network()), saved(tmp_path, several(), "both.npz")
    for options, says in (
        ({"bins": 0}, "--bins: is 0. Give at least 1."),
        ({"bootstrap": -1}, "--bootstrap: is -1."),
        ({"seed": -1}, "--seed: is -1."),
        ({"bins": 61}, "has 59 rows to fit the temperature on, fewer than 61 bins"),
        ({"fit_on": "hafl"}, "--fit-on: unknown choice 'hafl'. Did you mean 'half'?"),
        ({"fit_on": "validation"}, "has no validation_logits to fit on"),
        ({"name": "a"}, "holds one network, without a name, not 'a'. Leave out --name."),
    ):
        assert says in refused(path, **options)
    assert "has no network 'narow'. Did you mean 'narrow'?" in refused(both, name="narow")


def npy(path: Path) -> None:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(3))
    path.write_bytes(buffer.getvalue())


def truncated(path: Path) -> None:
    path.write_bytes(saved(path.parent, network(), "whole.npz").read_bytes()[:-40])


def flipped(path: Path) -> None:
    data = bytearray(saved(path.parent, network(), "whole.npz").read_bytes())
    data[len(data) // 3] ^= 1
    path.write_bytes(data)


def boastful(path: Path) -> None:
    """A header that promises more than memory holds."""
    header = io.BytesIO()
    fields = {"descr": "<f8", "fortran_order": False, "shape": (2**40, 2**20)}
    np.lib.format.write_array_header_1_0(header, fields)  # type: ignore[arg-type]  # a dictionary of these three
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("logits.npy", header.getvalue())
        archive.writestr("labels.npy", header.getvalue())


BAD_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda _: None, "no such file. Give the path of a file that is there."),
    "folder": (Path.mkdir, "no such file"),
    "text": (lambda path: path.write_text("logits"), "is not an npz archive, or cut short. Save it with numpy.savez"),
    "empty": (Path.touch, "is not an npz archive"),
    "npy": (npy, "is not an npz archive"),
    "truncated": (truncated, "is not an npz archive"),
    "flipped": (flipped, "logits is damaged (Bad CRC-32"),
    "boastful": (boastful, "logits is cut short or damaged: 128 bytes, and its header promises 9,223,"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_bad_files_are_refused(tmp_path: Path, case: str) -> None:
    make, says = BAD_FILES[case]
    make(tmp_path / "bad.npz")
    assert f"{tmp_path / 'bad.npz'}: {says}" in refused(tmp_path / "bad.npz")


class Payload:
    """Unpickling it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


def test_nothing_is_unpickled(tmp_path: Path) -> None:
    path = saved(tmp_path, changed(logits=np.array([Payload(tmp_path / "harm")], dtype=object)))
    assert "logits holds Python objects, not plain numbers" in refused(path)
    assert not (tmp_path / "harm").exists()


def test_the_folder_is_a_whole_artifact_and_the_same_from_run_to_run(tmp_path: Path) -> None:
    path = saved(tmp_path, network())
    report, folder = calibrate(path, bootstrap=20)
    assert folder == tmp_path / "logits-calibration"
    assert sorted(file.name for file in folder.iterdir()) == FILES
    artifact = open_artifact(folder, kind="calibration")
    assert artifact.problems() == []
    assert artifact.json("report.json") == json.loads(json.dumps(report))
    first = contents(folder)
    assert calibrate(path, bootstrap=20) == (report, folder)
    assert contents(folder) == first
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["logits-calibration", "logits.npz"]


def test_an_earlier_report_is_replaced_and_any_other_folder_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, network())
    output = tmp_path / "out"
    output.mkdir()
    run(path, output=output)
    run(path, output=output, seed=1)
    assert json.loads((output / "report.json").read_text())["settings"]["seed"] == 1
    (output / "notes.txt").write_text("mine")
    assert "out: holds other files (notes.txt) and would be replaced" in refused(path, output=output)
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "report.json").write_text("mine")
    assert "holds other files (report.json)" in refused(path, output=tmp_path / "documents")
    assert "is a file, not a folder" in refused(path, output=path)
    assert "below: cannot write (" in refused(path, output=path / "below")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert "is the current folder" in refused(path, output=Path())


def test_a_run_that_is_stopped_while_writing_leaves_the_earlier_report_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(tmp_path, network())

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "save", stop)
    with pytest.raises(KeyboardInterrupt):
        run(path)
    assert [entry.name for entry in tmp_path.iterdir()] == ["logits.npz"]
    monkeypatch.undo()
    run(path)
    before = contents(tmp_path)
    monkeypatch.setattr(module, "save", stop)
    with pytest.raises(KeyboardInterrupt):
        run(path, seed=1)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("fault", [errno.ENOSPC, errno.EACCES, errno.EBUSY])
def test_a_fault_while_writing_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: int) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(fault, os.strerror(fault))

    path = saved(tmp_path, network())
    monkeypatch.setattr(os, "replace", fail)
    assert f"cannot write ({os.strerror(fault)})" in refused(path, bootstrap=0)


def test_the_command_prints_the_report_and_says_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "ein schöner Ordner"
    folder.mkdir()
    path = saved(folder, several(), "köpfe.npz")
    words = ["calibrate", str(path), "--name", "wide/1", "--bootstrap", "20", "--bins", "10"]
    with pytest.raises(SystemExit) as ended:
        command(monkeypatch, *words)
    assert not ended.value.code
    printed = capsys.readouterr().out
    assert printed.startswith("köpfe.npz, wide/1\nTemperature fitted on a random half of every class, 59 rows")
    output = folder / "köpfe-wide_1-calibration"
    assert printed.endswith(f"Written to {output}: report.json, reliability.png, reliability.svg\n")
    with pytest.raises(SystemExit):
        command(monkeypatch, *words, "--json", "--fit-on", "all", "--output", str(folder / "all"))
    answer = json.loads(capsys.readouterr().out)
    assert answer.pop("folder") == str(folder / "all")
    assert answer == json.loads((folder / "all" / "report.json").read_text())
    assert answer["settings"] == {"fit_on": "all", "bins": 10, "bootstrap": 20, "seed": 0}


def test_the_command_ends_with_2_and_one_line_on_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command(monkeypatch, "calibrate", str(tmp_path / "none.npz"))
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        f"error: {tmp_path / 'none.npz'}: no such file. Give the path of a file that is there.\n"
    )


@pytest.mark.real_data("cifar10_logits")
def test_real_networks_are_named_and_scaling_mends_most_of_their_error(project_root: Path, tmp_path: Path) -> None:
    path = project_root / "data" / "raw" / "cifar10_logits.npz"
    with pytest.raises(
        InputError, match="--name: densenet_BC_100_12, resnet_basic_110, resnext_29_8x64d, vgg_15_BN_64"
    ):
        calibrate(path, output=tmp_path / "none")
    report = run(path, name="resnet_basic_110", output=tmp_path / "out")
    assert report["rows"] == {"fitted": 5000, "reported": 5000, "same": False}
    errors = [report["metrics"][arm]["expected_calibration_error"] for arm in ("before", "nll", "ece")]
    assert max(errors[1:]) < errors[0] / 2
    accuracies = {values["accuracy"] for values in report["metrics"].values()}
    assert len(accuracies) == 1
