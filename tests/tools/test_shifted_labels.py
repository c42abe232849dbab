"""Labels that are shifted by one token or row are refused; honest sequences are not."""

from typing import Any

import numpy as np
import pytest
import torch

from softmax_temperature import TemperatureScaler, calibrate
from softmax_temperature.tools.shifted_labels import check_not_late

WORDS = 40


def chain(sequences: int = 12, tokens: int = 80, seed: int = 13) -> tuple[Any, Any]:
    """Logits for the next word after each token, and the texts.

    The logits have shape (n, words, tokens).
    """
    generator = np.random.default_rng(seed)
    following = generator.dirichlet(np.full(WORDS, 0.08), size=WORDS)
    texts = np.empty((sequences, tokens), int)
    for text in texts:
        word = int(generator.integers(WORDS))
        for place in range(tokens):
            text[place] = word
            word = int(generator.choice(WORDS, p=following[word]))
    logits = 2 * np.log(following + 1e-4)[texts]
    logits = logits + 0.3 * generator.normal(size=logits.shape)
    return np.moveaxis(logits, -1, 1), texts


def test_a_language_models_labels_must_be_shifted() -> None:
    logits, texts = chain()
    message = (
        r"^labels agree with the logits of the position before \(\d\d % instead of "
        r"\d %\)\. Shift them: logits\[:, :, :-1\] and labels\[:, 1:\]\.$"
    )
    with pytest.raises(ValueError, match=message):
        calibrate(logits, texts, fit_on="all")
    with pytest.raises(ValueError, match="position before"):
        calibrate(logits, texts)
    with pytest.raises(ValueError, match=message):
        TemperatureScaler().fit(torch.tensor(logits), torch.tensor(texts))
    shifted = calibrate(logits[:, :, :-1], texts[:, 1:], bootstrap=0)
    assert shifted.data["metrics"]["before"]["accuracy"] > 0.3


def test_padding_does_not_hide_the_shift() -> None:
    logits, texts = chain()
    texts[:, 60:] = -100
    with pytest.raises(ValueError, match="position before"):
        calibrate(logits, texts)


def test_labels_that_were_shifted_twice_are_refused() -> None:
    logits, texts = chain()
    with pytest.raises(ValueError, match=r"after .* logits\[:, :, 1:\] and .*:, :-1\]"):
        calibrate(logits[:, :, :-2], texts[:, 2:])


@pytest.mark.parametrize(
    ("shift", "message"),
    [
        (-1, r"the row after .* Shift them: logits\[1:\] and labels\[:-1\]\.$"),
        (1, r"the row before .* Shift them: logits\[:-1\] and labels\[1:\]\.$"),
    ],
)
def test_rows_that_are_off_by_one_are_refused(shift: int, message: str) -> None:
    generator = np.random.default_rng(0)
    logits = 3 * generator.normal(size=(800, 6))
    labels = (logits + generator.gumbel(size=logits.shape)).argmax(axis=1)
    labels = np.roll(labels, shift)
    with pytest.raises(ValueError, match=message):
        calibrate(logits, labels)
    with pytest.raises(ValueError, match=message):
        TemperatureScaler().fit(logits, np.array(list("abcdef"))[labels])


def honest(generator: np.random.Generator, classes: int) -> list[tuple[Any, Any]]:
    """Labels in several orders, and logits that are right, useless or misleading."""
    rows = 600
    orders = [
        generator.integers(classes, size=rows),
        np.sort(generator.integers(classes, size=rows)),
        np.arange(rows) % classes,
        np.repeat(generator.integers(classes, size=rows // 3), 3),
        np.repeat(generator.integers(classes, size=rows // 50), 50),
        np.where(
            generator.random(rows) < 0.95, 0, generator.integers(classes, size=rows)
        ),
    ]
    noise = generator.normal(size=(rows, classes))
    slow = np.repeat(generator.normal(size=(rows // 10, classes)), 10, axis=0)
    return [
        (logits, labels)
        for labels in orders
        for own in [np.eye(classes)[labels]]
        for logits in (noise, slow, noise + own, noise + 5 * own, noise - 2 * own)
    ]


@pytest.mark.parametrize("classes", [2, 3, 10, 100])
def test_honest_orders_are_accepted(classes: int) -> None:
    for seed in range(10):
        for logits, labels in honest(np.random.default_rng(seed), classes):
            table, numbers = torch.tensor(logits), torch.tensor(labels)
            for tokens in (False, True):
                check_not_late(numbers, table, "labels", tokens=tokens)


def test_a_model_that_often_repeats_the_label_before_is_accepted() -> None:
    for seed in range(10):
        generator = np.random.default_rng(seed)
        labels = generator.integers(30, size=1000)
        guess = np.roll(labels, 1)
        right = generator.random(1000) < 0.15
        guess[right] = labels[right]
        guess[generator.random(1000) < 0.3] = 0
        logits = 5 * np.eye(30)[guess]
        check_not_late(
            torch.tensor(labels), torch.tensor(logits), "labels", tokens=False
        )


def test_maps_of_smooth_classes_are_accepted() -> None:
    generator = np.random.default_rng(0)
    coarse = generator.integers(4, size=(20, 4, 4))
    labels = np.kron(coarse, np.ones((1, 4, 4), int))
    own = np.moveaxis(np.eye(4)[labels], -1, 1)
    for factor in (0, 1, 3):
        logits = generator.normal(size=own.shape) + factor * own
        report = calibrate(logits, labels, bootstrap=0)
        assert report.data["rows"]["reported"] == 20 * 256 // 2
