"""Logits of which only the largest were saved, beside zeros, are refused."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from typer.testing import CliRunner

from softmax_temperature import TemperatureScaler, calibrate
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools import cli
from softmax_temperature.tools.refilled_zeros import check_not_refilled

GENERATOR = np.random.default_rng(12)
LOGITS = 4 * GENERATOR.normal(size=(500, 30)) + 3
LABELS = (LOGITS / 1.4 + GENERATOR.gumbel(size=LOGITS.shape)).argmax(axis=1)


def refilled(table: NDArray[np.float64], kept: int) -> NDArray[np.float64]:
    """A table of zeros with the `kept` largest numbers of each row of `table`."""
    scores = torch.tensor(table)
    top = scores.topk(kept)
    return torch.zeros_like(scores).scatter(1, top.indices, top.values).numpy()


def test_the_largest_logits_among_zeros_are_refused(tmp_path: Path) -> None:
    table = refilled(LOGITS, 5)
    message = (
        "logits are 0 for 25 of 30 classes in every row, as if only the 5 largest had "
        r"been saved\. Give each class its own logit\.$"
    )
    known = table[np.arange(500), LABELS] != 0
    assert 0.5 < known.mean() < 1
    for logits, labels in [(table, LABELS), (table[known], LABELS[known])]:
        with pytest.raises(ValueError, match=f"^{message}"):
            calibrate(logits, labels)
        with pytest.raises(ValueError, match=message):
            TemperatureScaler().fit(logits.astype(np.float32), labels)
    with pytest.raises(ValueError, match=f"^validation {message}"):
        calibrate(LOGITS, LABELS, validation=(table, LABELS))
    file = tmp_path / "logits.npz"
    np.savez(file, logits=table, labels=LABELS)
    done = CliRunner().invoke(cli.app, ["calibrate", str(file)])
    assert isinstance(done.exception, InputError)
    assert [*tmp_path.iterdir()] == [file]


@pytest.mark.parametrize("kept", [1, 2, 15])
def test_any_number_up_to_half_of_the_classes_is_recognised(kept: int) -> None:
    log_probs = torch.log_softmax(torch.tensor(LOGITS), 1).numpy()
    for table in (LOGITS, LOGITS - 9, log_probs):
        for rows in (table[:20], table):
            with pytest.raises(ValueError, match=f"only the {kept} largest"):
                check_not_refilled(refilled(rows, kept), "logits")


def accepted() -> dict[str, NDArray[np.floating]]:
    same_columns = LOGITS.copy()
    same_columns[:, 10:] = 0
    one_more = refilled(LOGITS, 5)
    one_more[450, one_more[450].argmin()] = 0.5
    unlearned = np.hstack([np.maximum(LOGITS[:, :4], 0.1), np.zeros((500, 20))])
    return {
        "as they are": LOGITS,
        "ReLU": np.maximum(LOGITS - 9, 0),
        "more than half kept": refilled(LOGITS, 16),
        "few classes": refilled(LOGITS[:, :4], 2),
        "few rows": refilled(LOGITS[:19], 5),
        "classes never learned": same_columns,
        "one zero per row among classes never learned": np.where(
            unlearned == unlearned.max(axis=1, keepdims=True), 0, unlearned
        ),
        "one row with another number of zeros": one_more,
        "predicted classes times a constant": 4.0 * np.eye(30)[LABELS],
        "logits minus the largest": LOGITS - LOGITS.max(axis=1, keepdims=True),
        "masks": np.where(refilled(LOGITS, 5) == 0, -np.inf, LOGITS),
        "zeros": np.zeros((500, 30)),
    }


@pytest.mark.parametrize("case", accepted())
def test_other_zeros_are_accepted(case: str) -> None:
    check_not_refilled(accepted()[case], "logits")
