"""Make losses by name; the module of a loss is imported when the loss is made."""

from typing import Any

from softmax_temperature.losses.base import Loss
from softmax_temperature.params.implementations import LOSSES
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.implementations import load_class, reference_to


def make_loss(name: str, options: dict[str, Any]) -> Loss:
    """Make a loss from its options and its name, which may be "package.module:Class".

    Raises:
        InputError: If there is no such loss, or it does not accept the options.
    """
    loss = load_class(reference_to(name, LOSSES, "loss"), Loss)
    try:
        made: Loss = loss.from_options(**options)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"does not take the options {options} ({error})",
            where=f"loss {name!r}",
            remedy="Correct `options`.",
        ) from error
    return made
