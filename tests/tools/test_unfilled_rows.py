"""Rows of zeros at the end of an array are refused; honest zeros are not."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from softmax_temperature import TemperatureScaler, calibrate
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools import cli
from softmax_temperature.tools.files import read_csv
from softmax_temperature.tools.unfilled_rows import check_filled

Drawn = tuple[NDArray[np.float64], NDArray[np.int64]]


@pytest.fixture
def drawn() -> Drawn:
    generator = np.random.default_rng(30)
    logits = 3 * generator.normal(size=(400, 5))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (probs.cumsum(axis=1) > generator.random((400, 1))).argmax(axis=1)
    return logits, labels


def with_zeros(drawn: Drawn, count: int) -> Drawn:
    logits, labels = drawn
    return np.pad(logits, ((0, count), (0, 0))), np.pad(labels, (0, count))


def test_a_buffer_that_was_not_filled_is_refused(drawn: Drawn, tmp_path: Path) -> None:
    logits, labels = with_zeros(drawn, 300)
    message = (
        r"of the last 300 rows are all 0, and so are their labels: they look like the "
        r"end of an array that was not filled\. Leave these rows out: keep the first "
        r"400\.$"
    )
    with pytest.raises(ValueError, match=rf"^logits {message}"):
        calibrate(logits, labels, bootstrap=0)
    with pytest.raises(ValueError, match=message):
        TemperatureScaler().fit(logits, labels)
    file = tmp_path / "logits.npz"
    np.savez(file, logits=logits, labels=labels)
    done = CliRunner().invoke(cli.app, ["calibrate", str(file)])
    assert isinstance(done.exception, InputError)
    assert [*tmp_path.iterdir()] == [file]


def test_ten_rows_of_zeros_are_enough(drawn: Drawn) -> None:
    with pytest.raises(ValueError, match=r"the last 10 rows .* keep the first 400"):
        check_filled(*with_zeros(drawn, 10), "logits")


def test_zeros_that_may_be_genuine_are_accepted(drawn: Drawn) -> None:
    late = with_zeros(drawn, 40)
    cases: list[Drawn] = [
        drawn,
        # There are fewer than ten rows of zeros.
        with_zeros(drawn, 9),
        (late[0], np.pad(drawn[1], (0, 40), constant_values=1)),
        # All logits are zero; then, all labels are of one class.
        (np.zeros_like(late[0]), late[1]),
        (late[0], np.zeros_like(late[1])),
        # The zeros come first.
        (late[0][::-1], late[1][::-1]),
    ]
    for logits, labels in cases:
        check_filled(logits, labels, "logits")


def test_a_header_of_savetxt_is_read(drawn: Drawn, tmp_path: Path) -> None:
    logits, labels = drawn
    file = tmp_path / "logits.csv"
    names = [f"logit_{number}" for number in range(5)]
    table = np.column_stack([logits, labels])
    np.savetxt(file, table, delimiter=",", header=",".join([*names, "label"]))
    read = read_csv(file)
    assert list(read.columns) == [*names, "label"]
    assert np.array_equal(read[names].to_numpy(), logits)
