"""Checks whether logits can be held-out logits of the network that is cooled."""

import warnings

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

from softmax_temperature.cooling.last_layer import passes
from softmax_temperature.metrics.checks import ArgumentError

# The attributes in which modules hold the probability of dropping something, in torch
# (`p`, or `dropout` of recurrent layers and attention), timm and transformers.
DROP_ATTRIBUTES = ("p", "dropout", "drop_prob")
WHOLE_MODEL = (
    "Attach Cooling to the module that returns the logits: Cooling(model). If you left "
    "out classes, give all columns, with -inf in those of the classes that are left "
    "out."
)


def check_mode(model: nn.Module, rows: Tensor, stacklevel: int) -> None:
    """Warn if `model` computed the logits in training mode.

    It did so if the logits are the model's last output, and the model was then in
    training mode. It seems to have done so if, since the last call of `cool`, the model
    has run only in training mode; in that case a copy of the model may have computed
    the logits. There is no warning if the model computes the same function in both
    modes.

    Args:
        model: The network that is cooled.
        rows: The logits, shape (n, classes).
        stacklevel: Stack level of the warning; 1 is the caller of this function.
    """
    seen = passes(model)
    is_last = seen.came_from_training(rows)
    if not is_last and (not seen.in_training or seen.in_evaluation):
        return
    name = _differs_in_training(model)
    if name is None:
        return
    verb = "come" if is_last else "seem to come"
    warnings.warn(
        f"logits must be computed in evaluation mode, but {verb} from training mode, "
        f"where the model's {name} changes them. Call model.eval() before you compute "
        "them.",
        stacklevel=stacklevel + 1,
    )


def _differs_in_training(model: nn.Module) -> str | None:
    """Return the class of a part that behaves differently in training mode, or None."""
    for module in model.modules():
        # If the model is still in training mode, a part in evaluation mode is frozen.
        frozen = model.training and not module.training
        if not frozen and (_normalises_batches(module) or _drops(module)):
            return type(module).__name__
    return None


def _normalises_batches(module: nn.Module) -> bool:
    # Without running statistics, the normalisation is the same in both modes.
    return isinstance(module, _NormBase) and module.track_running_stats


def _drops(module: nn.Module) -> bool:
    """Whether a module drops numbers or paths, or draws random slopes, in training."""
    if isinstance(module, nn.RReLU):
        return module.lower != module.upper
    if isinstance(module, nn.RNNBase) and module.num_layers == 1:
        return False
    kind = type(module).__name__.lower()
    # In modules that drop nothing, `p` may have a different meaning.
    names = (
        DROP_ATTRIBUTES if "drop" in kind or kind == "stochasticdepth" else ("dropout",)
    )
    values = (getattr(module, name, None) for name in names)
    return any(isinstance(value, int | float) and value > 0 for value in values)


def check_columns(model: nn.Module, classes: int) -> None:
    """Refuse logits whose number of classes differs from that of the network's output.

    Two differences are accepted. If the output has its classes in the last dimension,
    as for tokens, they may have been moved to the second. If the output has a single
    logit for class 1, this logit may have been converted to two columns.

    Args:
        model: The network that is cooled.
        classes: Number of columns of the logits.
    """
    shape = passes(model).shape
    if shape is None or classes in shape[1:]:
        return
    # An output of three dimensions may hold one logit for each pixel.
    binary = len(shape) in (0, 1, 3) or 1 in (shape[1], shape[-1])
    if classes == 2 and binary:
        return
    raise ArgumentError(
        f"logits must come from model, whose output has shape {shape}, got logits of "
        f"{classes} classes",
        WHOLE_MODEL,
    )


def warn_of_training_without(model: nn.Module, remedy: str, stacklevel: int) -> bool:
    """Warn if training has not run `model`; return whether a warning was issued.

    The check is meaningful only after training has run and before `cool` is called.

    Args:
        model: The network that is cooled.
        remedy: What to do.
        stacklevel: Stack level of the warning; 1 is the caller of this function.
    """
    seen = passes(model)
    # If the model itself is frozen in evaluation mode, training runs it in that mode.
    frozen = not model.training
    if seen.in_training or (frozen and seen.in_evaluation):
        return False
    warnings.warn(
        f"the training loss does not use the cooled logits: no training step has "
        f"called the {type(model).__name__} that was given to Cooling. {remedy}",
        stacklevel=stacklevel + 1,
    )
    return True
