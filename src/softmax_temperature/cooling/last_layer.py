"""The last-layer temperature, a buffer that divides the logits of a network.

Cooling paper, Definition 3.1.
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
    """Register a temperature of 1 by which the network divides its logits, in place.

    It is the buffer `cooling_temperature`, in the dtype of the parameters, but at least
    float32. A network that already has it keeps its temperature.

    Raises:
        ValueError: If the network is compiled: its copy of the forward function would
            not see the buffer.
    """
    if hasattr(model, "_orig_mod"):
        raise ValueError(
            "model must be held before torch.compile, got a compiled one: hand over "
            "the network itself"
        )
    if BUFFER in dict(model.named_buffers(recurse=False)):
        return
    floating = [each for each in model.parameters() if each.is_floating_point()]
    like = floating[0] if floating else torch.empty(0)
    dtype = torch.promote_types(like.dtype, torch.float32)
    temperature = torch.ones((), dtype=dtype, device=like.device)
    model.register_buffer(BUFFER, temperature)
    # The hook is a plain function of the module, so that copies of the network divide
    # by their own buffers.
    model.register_forward_hook(divide)


def last_layer_temperature(model: nn.Module) -> float:
    """The temperature that divides the logits of a held network."""
    return model.get_buffer(BUFFER).item()


def as_stored(model: nn.Module, temperature: float) -> float:
    """The temperature as the buffer's dtype rounds it."""
    return torch.tensor(temperature, dtype=model.get_buffer(BUFFER).dtype).item()


@torch.no_grad()
def set_last_layer_temperature(model: nn.Module, temperature: float) -> None:
    """Set the temperature that divides the logits.

    In place, so that compiled and captured networks see it.
    """
    model.get_buffer(BUFFER).fill_(temperature)


def divide(module: nn.Module, _images: object, logits: Any) -> Tensor:
    """The forward hook of a held network."""
    check_one_tensor(logits, "model", "cooled")
    cooled: Tensor = logits / module.get_buffer(BUFFER)
    return cooled
