"""Checks of commands' options. Imports are inside functions, so `--help` is quick."""

import math
import re
from collections.abc import Mapping

from softmax_temperature.runner.errors import InputError

# Python arguments and functions that the library's messages name, with the
# corresponding command-line options.
OPTIONS = {
    r"kind='probs'": "--probs",
    r"fit_on='(\w+)'": r"--fit-on \1",
    r"ignore_index=(-?\d+)": r"--ignore-index \1",
    r"ignore_index": "--ignore-index",
    r"cosine_classifier\.train_temperature_grid": "--verify",
}


def in_options(text: str) -> str:
    """Rewrite a message of the library with the command's options."""
    for pattern, option in OPTIONS.items():
        text = re.sub(rf"\b{pattern}", option, text)
    return text


def names(columns: str) -> list[str]:
    """The names in the comma-separated option `columns`."""
    return [name.strip() for name in columns.split(",") if name.strip()]


def refuse_unused(options: Mapping[str, object], reason: str) -> None:
    """Refuse the first of `options` that was given; `reason` says why it is unused."""
    unused = [
        name
        for name, value in options.items()
        if value is not None and value is not False and value != ""
    ]
    if unused:
        raise InputError(f"is not used: {reason}", where=unused[0], remedy="Omit it.")


def checked_device(device: str) -> str:
    """Return `device`, or raise InputError if torch cannot use it."""
    import torch

    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise InputError(
            "is not a device that torch can use here",
            where=f"--device {device}",
            remedy="Use cpu.",
        ) from error
    return device


def checked_bootstrap(resamples: int) -> int:
    """Return `resamples`, or raise InputError if they are too few for an interval."""
    from softmax_temperature.metrics.checks import (
        FEWEST_RESAMPLES,
        MORE_RESAMPLES,
        TOO_FEW_RESAMPLES,
    )

    if 0 < resamples < FEWEST_RESAMPLES:
        raise InputError(
            TOO_FEW_RESAMPLES,
            where=f"--bootstrap {resamples}",
            remedy=MORE_RESAMPLES,
        )
    return resamples


def checked_lr(lr: float) -> float:
    """Return `lr`, or raise InputError unless it is finite and positive."""
    if not 0 < lr < math.inf:
        raise InputError(
            "is not a valid learning rate",
            where=f"--lr {lr}",
            remedy="Give a number above 0.",
        )
    return lr
