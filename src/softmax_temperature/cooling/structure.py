"""A network's structure, to detect changes made after a redistribution was planned.

Training changes only the values of parameters and buffers, for which the plan stays
valid. If layers, hooks or parameters are added, removed or replaced, the powers of the
plan may be wrong.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from torch import nn

from softmax_temperature.cooling.function_scales import BUFFER, unscale_input
from softmax_temperature.cooling.redistribution import (
    Redistribution,
    plan_redistribution,
)
from softmax_temperature.cooling.scale_graph import NOT_BY_LAYER
from softmax_temperature.metrics.checks import ArgumentError

ANEW = "Attach Cooling anew to the changed network: Cooling(model, ...)."
# Attributes that change during training; the trace covers both of their values.
PASSING = frozenset({"training"})


@dataclass(frozen=True)
class Structure:
    """The properties of a network on which a redistribution depends, apart from code.

    Attributes:
        modules: Class name and state of each module, keyed by the module's path. The
            state holds the module's identity, hooks, plain attributes, and whether its
            forward function was replaced.
        parameters: Names of the parameters; a shared parameter is listed once.
    """

    modules: Mapping[str, tuple[str, object]]
    parameters: tuple[str, ...]

    @classmethod
    def of(cls, model: nn.Module) -> "Structure":
        """Return the current structure of `model`."""
        return cls(
            modules={
                path: (type(module).__name__, _state(module))
                for path, module in model.named_modules(remove_duplicate=False)
            },
            parameters=tuple(name for name, _ in model.named_parameters()),
        )


def check_unchanged(
    model: nn.Module, structure: Structure, plan: Redistribution
) -> Structure:
    """Refuse a network to which `plan` no longer applies.

    A change is accepted if a new plan equals the old one, for example after a layer was
    replaced with another of the same kind.

    Args:
        model: The network.
        structure: The network's structure when the plan was made, or at the last check.
        plan: The plan.

    Returns:
        The current structure of the network.
    """
    present = Structure.of(model)
    if present == structure:
        return present
    change = _change(structure, present)
    try:
        planned = plan_redistribution(model)
    except ValueError as error:
        fault = error.fault if isinstance(error, ArgumentError) else str(error)
        reason = fault.removeprefix(NOT_BY_LAYER)
        raise ArgumentError(
            f"the network has changed since Cooling was attached: {reason}",
            "Undo the change, or attach Cooling in mode 'last_layer'.",
        ) from error
    unheld = [path for path in plan.functions if not _holds_scale(model, path)]
    same = (planned.parameters, planned.functions) == (plan.parameters, plan.functions)
    if not same or unheld:
        raise ArgumentError(
            f"the network has changed since Cooling was attached: {change}", ANEW
        )
    return present


def _holds_scale(model: nn.Module, path: str) -> bool:
    """Whether the module at `path` holds a scale, and applies it."""
    module = model.get_submodule(path)
    hooks = module._forward_pre_hooks.values()  # noqa: SLF001
    return hasattr(module, BUFFER) and unscale_input in hooks


def _state(module: nn.Module) -> object:
    attributes = {
        name: value
        for name, value in vars(module).items()
        if name not in PASSING
        and not name.startswith("_")
        and isinstance(value, bool | int | float | str | tuple | None)
    }
    return (
        id(module),
        type(module),
        # torch has no public API for hooks.
        tuple(map(id, module._forward_pre_hooks.values())),  # noqa: SLF001
        tuple(map(id, module._forward_hooks.values())),  # noqa: SLF001
        # Accelerate replaces the forward function with one that only adds casts, and
        # keeps the original in `_original_forward`.
        "forward" in vars(module) and "_original_forward" not in vars(module),
        attributes,
    )


def _change(before: Structure, now: Structure) -> str:
    """Describe the first difference between two structures of a network."""
    paths = {**now.modules, **before.modules}
    for path in paths:
        kind, state = now.modules.get(path, ("", None))
        earlier, earlier_state = before.modules.get(path, ("", None))
        if not earlier:
            return f"module {path!r} ({kind}) is new"
        if not kind:
            return f"module {path!r} ({earlier}) is gone"
        if kind != earlier:
            return f"module {path!r} was {earlier} and is {kind}"
        if state != earlier_state:
            return f"module {path!r} ({kind}) was replaced or has other settings"
    differing = set(before.parameters) ^ set(now.parameters)
    return f"parameter {min(differing, default='')!r} was added, removed or shared"
