"""A temperature spread over the layers of a network (cooling paper, section 3.2)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import nn

from softmax_temperature.cooling.function_scales import multiply_scales
from softmax_temperature.cooling.scale_graph import ScaleGraph, refusal, scale_graph
from softmax_temperature.metrics.checks import check_positive


@dataclass(frozen=True)
class Redistribution:
    """Changes of a network's parameters and outputs when a temperature is spread.

    A parameter, an output or an input with the power p is divided by T^p, where T is
    the temperature.

    Attributes:
        layers: L, the number of convolutions and dense layers on the longest path to
            the logits.
        parameters: Power of each parameter that changes, keyed by the parameter's name.
            A negative power means that the parameter is multiplied.
        outputs: Power of the output of each module that is called, keyed by the
            module's path. The power of the last output is 1.
        functions: Power of the input of each activation and normalisation that needs
            its input unscaled, keyed by the module's path (see `function_scales`).
            Powers of 0 are left out.
    """

    layers: int
    parameters: Mapping[str, float]
    outputs: Mapping[str, float]
    functions: Mapping[str, float]


def plan_redistribution(model: nn.Module) -> Redistribution:
    """Plan how scaled parameters can divide a network's logits by a temperature.

    The paper divides the weights of each of L layers in a chain by T^(1/L) and the bias
    of layer i by T^(i/L) (Definition 3.2). We do the same on a graph. Tensors that can
    only be scaled together form a group: a tensor before and after ReLU or pooling, the
    terms of a sum, the parts of a concatenation. The depth of a group is the number of
    convolutions and dense layers on the longest path to it, and L is the depth of the
    logits. The power of a group is its depth over L. A layer's bias is divided by T to
    the power of its output's group, and its weights by T to the difference between the
    powers of its output's and its input's groups. The new function is exactly the old
    function divided by T (equation 3.2).

    - Layers between two tensors of one group, such as those of a residual branch with
      an identity shortcut, do not count towards the depth; only their biases are
      scaled.
    - The input of a batch normalisation has power 0, because it must fit the running
      statistics and epsilon. The weight and bias of the batch normalisation carry the
      power of its output, and the layer before the batch normalisation undoes the power
      of its own input.
    - An activation f that is not homogeneous (tanh, GELU, SiLU, ...) becomes
      β f(x / β), where β is the scale of its group (Definition 3.2, 3).
    - A per-sample normalisation (LayerNorm, GroupNorm, RMSNorm) would remove any scale
      of its input if it had no epsilon. Because of the epsilon, its input must be
      divided by β. Its weight and bias carry the power of its output, as in a batch
      normalisation.

    Raises:
        ValueError: If the network cannot be redistributed exactly; the message names
            the module, and the mode of `Cooling` that accepts the network. Nothing
            changes.
    """
    # Deviation: we extend Algorithm 3.1 to batch normalisation and skip connections,
    # which it leaves out as "straightforward to address". A skip connection forces the
    # same scale on both of its ends, so the layers between them carry none of the
    # temperature. We leave the input of a batch normalisation unscaled; its affine
    # parameters carry the scale. We refuse attention, because its queries and keys must
    # keep their scale although its values are scaled.
    graph = scale_graph(model)
    if graph.logits in graph.fixed:
        where = graph.fixed[graph.logits]
        raise refusal(f"no layer between {where} and the logits")
    depths = _depths(graph)
    layers = depths[graph.logits]
    powers = [depth / max(1, layers) for depth in depths]
    for group in graph.fixed:
        powers[group] = 0.0
    # The power of the logits is already 1, unless the only layers are batch
    # normalisations, or a path leads from the logits back to a tensor that is added to
    # the input.
    powers[graph.logits] = 1.0
    parameters: dict[str, float] = {}
    for layer in graph.layers:
        undone = 0.0 if layer.normalises else powers[layer.source]
        parameters[layer.weight] = powers[layer.target] - undone
        if layer.bias is not None:
            parameters[layer.bias] = powers[layer.target]
    changed = {name: power for name, power in parameters.items() if power != 0}
    outputs = {path: powers[group] for path, group in graph.outputs.items()}
    functions = _powers_of_functions(graph, powers)
    return Redistribution(layers, changed, outputs, functions)


def _powers_of_functions(
    graph: ScaleGraph, powers: Sequence[float]
) -> dict[str, float]:
    """Map the path of each module that holds a scale to the power of its input."""
    found: dict[str, float] = {}
    for path, group in graph.functions:
        power = powers[group]
        if found.setdefault(path, power) != power:
            raise refusal(
                f"module {path!r} is called at places of different scales; use a "
                "separate module at each place"
            )
    return {path: power for path, power in found.items() if power != 0}


def parameter_scales(
    model: nn.Module, plan: Redistribution, temperature: float
) -> dict[nn.Parameter, float]:
    """Compute the factors by which to multiply the parameters to spread `temperature`.

    Parameters that `plan` does not change are absent.
    """
    check_positive(temperature, "temperature")
    return {
        model.get_parameter(name): temperature**-power
        for name, power in plan.parameters.items()
    }


@torch.no_grad()
def redistribute(model: nn.Module, plan: Redistribution, temperature: float) -> None:
    """Divide a network's function by a temperature by scaling its layers in place.

    The modules in `plan.functions` must already hold a scale; see
    `function_scales.hold_scales`.
    """
    for parameter, scale in parameter_scales(model, plan, temperature).items():
        parameter.mul_(scale)
    multiply_scales(
        model, {path: temperature**-power for path, power in plan.functions.items()}
    )


def _depths(graph: ScaleGraph) -> list[int]:
    """Count the layers on the longest path to each group.

    Groups that lead back to each other form a loop and have the same depth.
    """
    sources = [layer.source for layer in graph.layers]
    targets = [layer.target for layer in graph.layers]
    links = coo_array(
        (np.ones(len(sources)), (sources, targets)), shape=(graph.groups, graph.groups)
    )
    _, loops = connected_components(links, directed=True, connection="strong")
    depths = [0] * graph.groups
    changed = True
    # The iteration terminates: no path leads from one loop of the graph to another and
    # back, so no depth exceeds the number of layers.
    while changed:
        changed = False
        for layer in graph.layers:
            source = loops[layer.source]
            target = loops[layer.target]
            depth = depths[source] + (not layer.normalises)
            if source != target and depths[target] < depth:
                depths[target] = depth
                changed = True
    return [depths[loop] for loop in loops]
