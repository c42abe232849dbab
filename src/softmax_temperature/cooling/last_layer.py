"""The last-layer temperature: a buffer of the network that divides its logits (cooling
paper, Definition 3.1).
"""

from typing import Any

import torch
from torch import Tensor, nn

from softmax_temperature.metrics.checks import check_one_tensor

BUFFER = "cooling_temperature"

# Deviation: Definition 3.1 multiplies the logits by a constant below 1, Algorithm 3.1
# and Figure 2 let its inverse grow past 100. Here it is a temperature throughout: it
# divides.


def hold(model: nn.Module) -> None:
    """Make the network divide its logits by a buffer of its own, `cooling_temperature`,
    which starts at 1; in place.

    The buffer has the dtype of the parameters, but at least float32; a network that is
    held already keeps its temperature. Raises ValueError for a compiled network: its
    own copy of the forward function would not see the buffer.
    """
    if hasattr(model, "_orig_mod"):
        raise ValueError(
            "model must be held before torch.compile, got a compiled one: hand over the network itself"
        )
    if BUFFER not in dict(model.named_buffers(recurse=False)):
        parameter = next(
            (each for each in model.parameters() if each.is_floating_point()),
            torch.empty(0),
        )
        dtype = torch.promote_types(parameter.dtype, torch.float32)
        model.register_buffer(
            BUFFER, torch.ones((), dtype=dtype, device=parameter.device)
        )
        # A function of the module, not of an object beside it: copies of the network
        # divide by their own buffers.
        model.register_forward_hook(divide)


def last_layer_temperature(model: nn.Module) -> float:
    """What divides the logits of a held network now."""
    return model.get_buffer(BUFFER).item()


def as_stored(model: nn.Module, temperature: float) -> float:
    """The temperature as the buffer's dtype rounds it."""
    return torch.tensor(temperature, dtype=model.get_buffer(BUFFER).dtype).item()


@torch.no_grad()
def set_last_layer_temperature(model: nn.Module, temperature: float) -> None:
    """Change what divides the logits; in place, so that compiled and captured networks
    see it.
    """
    model.get_buffer(BUFFER).fill_(temperature)


def divide(module: nn.Module, _images: object, logits: Any) -> Tensor:
    """The forward hook of a held network."""
    check_one_tensor(logits, "model", "cooled")
    cooled: Tensor = logits / module.get_buffer(BUFFER)
    return cooled
