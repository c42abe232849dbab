"""Precisions for which this machine has native matrix instructions.

Emulated precisions are many times slower.
"""

from typing import Literal

import torch

from softmax_temperature.cosine_classifier.products import (
    RoundedProducts,
    choose_products,
)

Precision = Literal["float32", "bfloat16"]


def native_precisions() -> tuple[Precision, ...]:
    """Precisions with native instructions on this machine, the fastest last."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if isinstance(choose_products("bfloat16", device), RoundedProducts):
        return ("float32",)
    return ("float32", "bfloat16")


def fastest_precision() -> Precision:
    """The precision in which this machine trains a network fastest."""
    return native_precisions()[-1]
