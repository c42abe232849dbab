"""Which precisions this machine multiplies itself: an emulated one is slower many
times, and nobody's choice.
"""

from typing import Literal

import torch

from softmax_temperature.cosine_classifier.products import (
    RoundedProducts,
    choose_products,
)

Precision = Literal["float32", "bfloat16"]


def native_precisions() -> tuple[Precision, ...]:
    """Those with instructions of their own here, the fastest last."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rounds = isinstance(choose_products("bfloat16", device), RoundedProducts)
    return ("float32",) if rounds else ("float32", "bfloat16")


def fastest_precision() -> Precision:
    """What a network is best trained in here."""
    return native_precisions()[-1]
