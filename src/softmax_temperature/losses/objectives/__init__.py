"""What a network is trained on: one module for each loss, so that a new one makes no result of another stale.

Each module has `make(**options)`, which returns the mean loss of a batch as a function of logits (n, classes), labels
(n,) and the position in the written recipe, in epochs; a loss that does not change on the way ignores the position.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from softmax_temperature.runner.errors import InputError, nearest

if TYPE_CHECKING:
    from softmax_temperature.training.trainer import Objective


def objective_names() -> list[str]:
    """The losses that there are."""
    return sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py"))


def objective_module(name: str) -> str:
    """The module of a loss.

    Raises:
        InputError: there is none of this name.
    """
    if name not in objective_names():
        raise InputError("no such loss", where=f"loss {name!r}", remedy=nearest(name, objective_names()))
    return f"{__name__}.{name}"


def make_objective(name: str, options: dict[str, Any]) -> Objective:
    """A loss by name.

    Raises:
        InputError: there is no such loss, or it does not take the options.
    """
    try:
        objective: Objective = import_module(objective_module(name)).make(**options)
    except (TypeError, ValueError) as error:
        what = f"does not take the options {options} ({error})"
        raise InputError(what, where=f"loss {name!r}", remedy="Correct `options`.") from error
    return objective
