"""Columns that were made from the labels are refused; honest columns are not."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from typer.testing import CliRunner

from softmax_temperature import TemperatureScaler, calibrate, suggest_temperature
from softmax_temperature.tools import cli
from softmax_temperature.tools.label_leaks import check_no_leak

IMAGES, DIGITS = load_digits(return_X_y=True)
IMAGES, DIGITS = IMAGES[:700] / 16, DIGITS[:700]
GENERATOR = np.random.default_rng(0)
LOGITS = 3 * GENERATOR.normal(size=(600, 5))
LABELS = (LOGITS / 1.8 + GENERATOR.gumbel(size=LOGITS.shape)).argmax(axis=1)


def standardised(labels: Any) -> Any:
    return ((labels - labels.mean()) / labels.std())[:, None]


def leaks(labels: Any, target: Any) -> dict[str, Any]:
    """Columns made from `labels`; the target encoding is the mean of `target` in each
    class.
    """
    classes = labels.max() + 1
    means = [target[labels == label].mean() for label in range(classes)]
    return {
        "one-hot": np.eye(classes)[labels],
        "scaled one-hot": 10 * np.eye(classes)[labels],
        "standardised": standardised(labels),
        "target encoding": np.array(means)[labels][:, None],
    }


KINDS = ("one-hot", "scaled one-hot", "standardised", "target encoding")


@pytest.mark.parametrize("kind", KINDS)
def test_embeddings_with_a_column_made_from_the_labels_are_refused(kind: str) -> None:
    leak = leaks(DIGITS, IMAGES[:, 20])[kind]
    with pytest.raises(ValueError, match=r"column 64 has the same value .* labels\. R"):
        suggest_temperature(np.hstack([IMAGES, leak]), DIGITS)
    with pytest.raises(ValueError, match="column 0 has the same value"):
        suggest_temperature(torch.tensor(np.hstack([leak, IMAGES])), DIGITS)


def test_the_commands_name_the_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    embeddings = np.hstack([IMAGES, np.eye(10)[DIGITS]])
    np.savez("embeddings.npz", embeddings=embeddings, labels=DIGITS)
    logits = np.hstack([LOGITS, standardised(LABELS)])
    np.savez("logits.npz", logits=logits, labels=LABELS)
    for command, column in (
        ("suggest embeddings.npz", "column 64"),
        ("calibrate logits.npz", "column 5"),
    ):
        done = CliRunner().invoke(cli.app, command.split())
        assert done.exit_code != 0
        assert column in str(done.exception)
        assert "made from the labels" in str(done.exception)


@pytest.mark.parametrize("kind", KINDS)
def test_logits_with_a_column_made_from_the_labels_are_refused(kind: str) -> None:
    table = np.hstack([LOGITS, leaks(LABELS, LOGITS[:, 0])[kind]])
    more = np.random.default_rng(1).normal(size=table.shape)
    with pytest.raises(ValueError, match="made from the labels"):
        TemperatureScaler().fit(table, LABELS)
    with pytest.raises(ValueError, match=r"^logits hold the labels: column 5 "):
        calibrate(table, LABELS)
    with pytest.raises(ValueError, match=r"^validation logits hold the labels: column"):
        calibrate(more, LABELS, validation=(table, LABELS))


def test_the_remedy_names_the_columns() -> None:
    table = np.hstack([LOGITS, np.eye(5)[LABELS]])
    with pytest.raises(ValueError, match=r"Remove columns 5, 6, 7 and 2 more\.$"):
        calibrate(table, LABELS)
    with pytest.raises(ValueError, match=r"Remove column 5\.$"):
        calibrate(table[:, :6], LABELS)


def test_labels_that_are_text_leak_too() -> None:
    names = np.array(list("abcdef"))[LABELS]
    names[:30] = "f"
    leak = standardised(np.unique(names, return_inverse=True)[1])
    with pytest.raises(ValueError, match="column 5 has the same value"):
        TemperatureScaler().fit(np.hstack([LOGITS, leak]), names)


def honest(generator: np.random.Generator, rows: int, classes: int) -> dict[str, Any]:
    """Labels, and tables of logits, some with a column that is constant within each
    class.
    """
    logits = 3 * generator.normal(size=(rows, classes))
    labels = (logits / 1.5 + generator.gumbel(size=logits.shape)).argmax(axis=1)
    own = labels[:, None] == np.arange(classes)
    even = (labels % 2)[:, None] == (np.arange(classes) % 2)
    first_is_clear = np.where(
        np.arange(classes) == 0,
        np.where(own, 20, -20),
        np.clip(logits, -19, 19),
    )
    dummy = np.zeros((rows, 1))
    tables = {
        "plain": logits,
        "whole": np.clip(np.round(10 * logits), -128, 127),
        "masks": np.where(generator.random(logits.shape) < 0.4, -np.inf, logits),
        "task masks": np.where(even, logits, -np.inf),
        "finite masks": np.where(even, logits, -1e4),
        "a reference": logits - logits[:, :1],
        "a dummy": np.hstack([logits, dummy]),
        "a masked dummy": np.hstack([logits, np.where(labels % 2, -1e4, 0)[:, None]]),
        "a dummy of a task": np.hstack(
            [logits, np.where(labels % 2, -np.inf, 0)[:, None]]
        ),
        "a recognised class": first_is_clear,
        "saturated": np.clip(8 * logits + 60 * own, -20, 20),
        "perfect": np.where(own, 7.0, -2.0),
        "a row of scores for each class": generator.normal(size=(classes, classes))[
            labels
        ],
    }
    return {"labels": labels, "tables": tables}


@pytest.mark.parametrize(("rows", "classes"), [(20, 2), (60, 5), (300, 3), (900, 40)])
def test_honest_columns_are_accepted(rows: int, classes: int) -> None:
    for seed in range(20):
        drawn = honest(np.random.default_rng(seed), rows, classes)
        for table in drawn["tables"].values():
            check_no_leak(table, drawn["labels"], "logits", classes=True)


def test_honest_embeddings_are_accepted() -> None:
    for seed in range(20):
        generator = np.random.default_rng(seed)
        labels = generator.integers(10, size=400)
        rows = np.maximum(generator.normal(size=(400, 50)) - 1, 0)
        presence = generator.random((400, 200)) < 0.01
        presence |= labels[:, None] == np.arange(200) % 10
        # A word that occurs in all texts of a small class, and in no other text.
        labels[:5] = 10
        rare = (labels == 10)[:, None].astype(float)
        for table in (
            rows,
            np.floor(3 * rows),
            presence.astype(float),
            np.hstack([rows, np.ones((400, 1))]),
            np.hstack([rows, rare]),
        ):
            check_no_leak(table, labels, "embeddings", classes=False)


def test_few_rows_for_the_classes_are_not_judged() -> None:
    labels = np.arange(200) // 2
    table = np.hstack([np.random.default_rng(0).normal(size=(200, 5)), labels[:, None]])
    check_no_leak(table / 3, labels, "embeddings", classes=False)


def test_a_leak_is_found_in_sorted_rows_of_a_large_table() -> None:
    labels = np.arange(30_000) // 3_000
    table = np.random.default_rng(0).normal(size=(30_000, 40))
    table[:, 30] = 0.1 * (labels > 8)
    with pytest.raises(ValueError, match="column 30 "):
        check_no_leak(table, labels, "embeddings", classes=False)
    # This row is not among those that the check examines first.
    table[-2, 30] = 0
    check_no_leak(table, labels, "embeddings", classes=False)


def test_a_data_frame_with_one_hot_columns_is_refused() -> None:
    frame = pd.DataFrame(np.hstack([IMAGES, np.eye(10)[DIGITS]])).add_prefix("pixel_")
    with pytest.raises(ValueError, match="column 64 has the same value"):
        suggest_temperature(frame, DIGITS)


def test_labels_that_are_the_predictions_get_a_remedy() -> None:
    predicted = LOGITS.argmax(axis=1)
    verdict = calibrate(LOGITS, predicted, bootstrap=0).data["verdict"]
    remedy = "Check that the labels are the true ones, not the network's predictions"
    assert "separate the labels (search ended at T = " in verdict
    assert remedy in verdict
    with pytest.warns(ConvergenceWarning, match=remedy):
        TemperatureScaler().fit(LOGITS, predicted)
