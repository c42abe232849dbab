"""A small real sample to try `calibrate` and `TemperatureScaler` on."""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

SAMPLE = Path(__file__).with_name("sample_logits.npz")
TRAINING_ROWS = 297


def sample_logits() -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Logits (1500, 10) and labels (1500,) of an overconfident classifier of handwritten digits, see `train_sample`.

    Examples:
        >>> logits, labels = sample_logits()
        >>> round(float((logits.argmax(axis=1) == labels).mean()), 3)
        0.851
    """
    with np.load(SAMPLE) as arrays:
        return arrays["logits"].astype(np.float64), arrays["labels"].astype(np.int64)


def train_sample() -> dict[str, NDArray[Any]]:
    """The sample made anew: scikit-learn's digits, a weakly regularised logistic regression of the first 297.

    Logits are those of the other 1,500, in float16; `np.savez_compressed(SAMPLE, **train_sample())` wrote the file.
    """
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression

    images, labels = load_digits(return_X_y=True)
    images = images / 16
    classifier = LogisticRegression(C=1000, max_iter=1000).fit(images[:TRAINING_ROWS], labels[:TRAINING_ROWS])
    logits = classifier.decision_function(images[TRAINING_ROWS:])
    return {"logits": logits.astype(np.float16), "labels": labels[TRAINING_ROWS:].astype(np.uint8)}
