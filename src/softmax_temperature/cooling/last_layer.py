"""The last-layer temperature, a buffer that divides the logits of a network.

Cooling paper, Definition 3.1.
"""

import gc
import sys
import weakref
from typing import Any

import torch
from torch import Tensor, nn

from softmax_temperature.metrics.checks import check_one_tensor
from softmax_temperature.metrics.probability_check import is_of_sigmoid

BUFFER = "cooling_temperature"
# The attribute of the network that records whether the network ends in a sigmoid. It is
# set when an output has an autograd graph, which shows the network's last function.
OF_SIGMOID = "_cooling_of_sigmoid"
# The attribute of the network that holds its `Passes`.
PASSES = "_cooling_passes"

# Deviation: we use a temperature throughout, which divides the logits. Definition 3.1
# multiplies them by a constant below 1, whose inverse is the temperature that grows
# past 100 in Algorithm 3.1 and Figure 2.


class Passes:
    """A record of the outputs that the forward hook has seen since the last `cool`.

    This is one object of the network, not several attributes, because the replicas that
    `DataParallel` makes share the objects of the network, but not its attributes. The
    hook only writes constants here, so that compiled code needs no guard.

    Attributes:
        in_training: Whether the network has run in training mode.
        in_evaluation: Whether the network has run in evaluation mode.
        shape: Shape of the last output that was not computed by compiled code, or None.
            It is kept when `cool` is called.
    """

    # The last output in training mode that was not computed by compiled code, if it
    # still exists.
    _output: weakref.ref[Tensor] | None = None

    def __init__(self) -> None:
        self.in_training = False
        self.in_evaluation = False
        self.shape: tuple[int, ...] | None = None

    def __getstate__(self) -> dict[str, object]:
        # A weak reference cannot be copied.
        return {name: each for name, each in vars(self).items() if name != "_output"}

    def keep(self, logits: Tensor, *, training: bool) -> None:
        """Record an output that was not computed by compiled code."""
        self.shape = tuple(logits.shape)
        self._output = weakref.ref(logits) if training else None

    def came_from_training(self, logits: Tensor) -> bool:
        """Whether `logits` are the last output, computed in training mode.

        The answer is False if they are a copy of that output.
        """
        output = self._output() if self._output is not None else None
        if output is None or output.layout != logits.layout:
            return False
        try:
            pointers = [it.untyped_storage().data_ptr() for it in (output, logits)]
        except (NotImplementedError, RuntimeError):
            return False  # The output has no memory, such as one inside torch.vmap.
        return pointers[0] == pointers[1]

    def forget(self) -> None:
        """Forget the modes, after `cool` has used them."""
        self.in_training = False
        self.in_evaluation = False


def passes(model: nn.Module) -> Passes:
    """Return the record of what the forward hook of `model` has seen."""
    if not isinstance(getattr(model, PASSES, None), Passes):
        setattr(model, PASSES, Passes())
    seen: Passes = getattr(model, PASSES)
    return seen


def check_not_compiled(model: nn.Module) -> None:
    """Refuse a network that is compiled, or part of a compiled one.

    The compiled forward function would not see the buffer that `hold` registers.
    """
    if _is_compiled(model):
        raise ValueError(
            "model must be passed before torch.compile, got a compiled one: pass the "
            "network itself, then compile it"
        )
    whole = _compiled_whole(model)
    if whole is not None:
        raise ValueError(
            f"model must be passed before torch.compile, got a part of {whole}, which "
            "is compiled and would not see the temperature: pass this part first, then "
            "compile that network"
        )


def hold(model: nn.Module) -> None:
    """Register a temperature of 1 that divides the network's logits, in place.

    The temperature is stored in the buffer `cooling_temperature`, in the dtype of the
    parameters but at least float32. If the network already has this buffer, the buffer
    keeps its value.
    """
    setattr(model, PASSES, Passes())
    if BUFFER in dict(model.named_buffers(recurse=False)):
        return
    model.register_buffer(BUFFER, scalar_buffer(model))
    # The hook is a plain function that receives the module, so that a copy of the
    # network divides by its own buffer.
    model.register_forward_hook(divide)


def scalar_buffer(model: nn.Module) -> Tensor:
    """Return a scalar 1 in the dtype of the parameters, but in float32 or wider."""
    floating = [each for each in model.parameters() if each.is_floating_point()]
    like = floating[0] if floating else torch.empty(0)
    dtype = torch.promote_types(like.dtype, torch.float32)
    return torch.ones((), dtype=dtype, device=like.device)


def _is_compiled(model: nn.Module) -> bool:
    """Whether torch.compile returned `model`, or `model` was compiled in place."""
    in_place = getattr(model, "_compiled_call_impl", None) is not None
    return in_place or hasattr(model, "_orig_mod")


def _compiled_whole(model: nn.Module) -> str | None:
    """Return the class name of a compiled network that contains `model`, or None."""
    if "torch._dynamo" not in sys.modules:
        return None  # No network is compiled.
    if not _compiled_networks_around(model):
        return None
    gc.collect()  # Compiled networks that were deleted may still be listed.
    wholes = _compiled_networks_around(model)
    return type(getattr(wholes[0], "_orig_mod", wholes[0])).__name__ if wholes else None


def _compiled_networks_around(model: nn.Module) -> list[nn.Module]:
    # A module does not know its parents; the garbage collector knows all objects. We
    # test their classes, because `isinstance` would trigger lazy objects.
    modules = (each for each in gc.get_objects() if issubclass(type(each), nn.Module))
    return [
        module
        for module in modules
        if _is_compiled(module) and any(part is model for part in module.modules())
    ]


def last_layer_temperature(model: nn.Module) -> float:
    """The last-layer temperature, which divides the logits of `model`."""
    return model.get_buffer(BUFFER).item()


def as_stored(model: nn.Module, temperature: float) -> float:
    """Round `temperature` to the dtype of the buffer."""
    return torch.tensor(temperature, dtype=model.get_buffer(BUFFER).dtype).item()


@torch.no_grad()
def set_last_layer_temperature(model: nn.Module, temperature: float) -> None:
    """Set the temperature that divides the logits.

    The buffer changes in place, so that compiled and captured networks use the new
    value.
    """
    model.get_buffer(BUFFER).fill_(temperature)


def ends_in_sigmoid(model: nn.Module) -> bool | None:
    """Whether the network ends in a sigmoid; None if no autograd graph has shown it."""
    known: bool | None = getattr(model, OF_SIGMOID, None)
    return known


def divide(module: nn.Module, _images: object, logits: Any) -> Tensor:
    """Return logits / temperature, as the forward hook of a network with a temperature.

    The hook also records the mode and the shape of the output in `Passes`, and whether
    the network ends in a sigmoid. Only outputs with an autograd graph show the sigmoid,
    such as those computed in training; held-out logits have no graph.
    """
    check_one_tensor(logits, "model", "cooled")
    of_sigmoid = is_of_sigmoid(logits)
    if of_sigmoid is not None:
        setattr(module, OF_SIGMOID, of_sigmoid)
    cooled: Tensor = logits / module.get_buffer(BUFFER)
    _record(module, cooled)
    return cooled


def _record(module: nn.Module, logits: Tensor) -> None:
    """Record the pass, unless an older version without records pickled the network."""
    seen: Passes | None = getattr(module, PASSES, None)
    if seen is None:
        return
    if module.training:
        seen.in_training = True
    else:
        seen.in_evaluation = True
    if not torch.compiler.is_compiling():
        seen.keep(logits, training=module.training)
