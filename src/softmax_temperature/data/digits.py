"""The handwritten digits that scikit-learn ships: 1,797 real images of 8 x 8 grey pixels."""

from __future__ import annotations

import numpy as np

from softmax_temperature.data.raw import RawDataset, RawPart

DIGITS = "digits"

_LEVELS = 16  # Pixels count the dark points of a 4 x 4 block.


def read_digits() -> RawDataset:
    """The digits, undivided: scikit-learn ships one part of the original, without a split."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    counts = images.reshape(-1, 8, 8, 1).astype(np.int64)
    return RawDataset(
        name=DIGITS,
        class_names=tuple(str(digit) for digit in range(10)),
        train=RawPart(((counts * 255 + _LEVELS // 2) // _LEVELS).astype(np.uint8), labels.astype(np.int64)),
        test=None,
        source={"how": "shipped with scikit-learn"},
    )
