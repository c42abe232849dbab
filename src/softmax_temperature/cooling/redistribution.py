"""A temperature spread over the layers of a network (cooling paper, section 3.2)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from torch import nn

from softmax_temperature.cooling.scale_graph import ScaleGraph, scale_graph
from softmax_temperature.metrics.checks import check_positive


@dataclass(frozen=True)
class Redistribution:
    """The powers of a temperature by which a network's parameters and outputs are
    divided.
    """

    # L, the number of convolutions and dense layers on the longest path that counts.
    layers: int
    parameters: Mapping[
        str, float
    ]  # For each parameter that changes; negative where it is multiplied.
    outputs: Mapping[
        str, float
    ]  # For the output of each module that is called, by path; 1 for the last.


def plan_redistribution(model: nn.Module) -> Redistribution:
    """Choose the powers by which a network's parameters are divided, so that its logits
    are divided by the temperature.

    The paper divides the weights of each of L layers in a chain by T^(1/L) and the bias
    of layer i by T^(i/L) (Definition 3.2). Here the same is done on the graph: tensors
    that can only be scaled together (before and after ReLU or pooling, the terms of a
    sum, the pieces of a concatenation) form a group, whose power is the number of
    convolutions and dense layers on the longest path to it, over L, which is that of
    the logits. A layer's bias is divided by T to the power of the group that it
    returns, its weights by T to the difference to the group that it reads. The function
    is then exactly the old one over T (equation 3.2).

    - Layers between two tensors of one group (a residual branch beside an identity)
      count nothing; only their biases are scaled.
    - The input of a batch normalisation has power 0, where its running statistics and
      epsilon belong: its own weight and bias carry the power of what it returns, and
      the layer in front takes the power of its own input back.

    Raises:
        ValueError: If the network cannot be redistributed exactly; the message names
            the module. Nothing changes.
    """
    # Deviation: Algorithm 3.1 leaves out batch normalisation and skip connections as
    # "straightforward to address". A skip forces one scale on both its ends, so the
    # layers between share nothing of the temperature; a batch normalisation keeps its
    # input, and its affine parameters carry the scale.
    graph = scale_graph(model)
    if graph.logits in graph.fixed:
        where = graph.fixed[graph.logits]
        raise ValueError(
            f"model cannot be cooled layer by layer: no layer between {where} and the logits"
        )
    depths = _depths(graph)
    powers = [
        0.0 if group in graph.fixed else depth / max(1, depths[graph.logits])
        for group, depth in enumerate(depths)
    ]
    # Already so, unless only batch normalisations count, or the logits lead back to a
    # tensor added to the input.
    powers[graph.logits] = 1.0
    parameters: dict[str, float] = {}
    for layer in graph.layers:
        parameters[layer.weight] = powers[layer.target] - powers[layer.source]
        if layer.bias is not None:
            parameters[layer.bias] = powers[layer.target]
    return Redistribution(
        layers=depths[graph.logits],
        parameters={name: power for name, power in parameters.items() if power != 0},
        outputs={path: powers[group] for path, group in graph.outputs.items()},
    )


def parameter_scales(
    model: nn.Module, plan: Redistribution, temperature: float
) -> dict[nn.Parameter, float]:
    """What each parameter is multiplied by when a temperature is spread over the
    layers.
    """
    check_positive(temperature, "temperature")
    return {
        model.get_parameter(name): temperature**-power
        for name, power in plan.parameters.items()
    }


@torch.no_grad()
def rescale_parameters(scales: Mapping[nn.Parameter, float]) -> None:
    """Multiply parameters, in place."""
    for parameter, scale in scales.items():
        parameter.mul_(scale)


def _depths(graph: ScaleGraph) -> list[int]:
    """Layers on the longest path to each group; groups that lead back to each other
    have one depth.
    """
    sources, targets = (
        [getattr(layer, end) for layer in graph.layers] for end in ("source", "target")
    )
    links = coo_array(
        (np.ones(len(sources)), (sources, targets)), shape=(graph.groups, graph.groups)
    )
    loops = connected_components(links, directed=True, connection="strong")[1].tolist()
    depths, changed = [0] * graph.groups, True
    # Ends: between different loops there is no way back, so no depth exceeds the number
    # of layers.
    while changed:
        changed = False
        for layer in graph.layers:
            above, below = loops[layer.source], loops[layer.target]
            reached = depths[above] + layer.counts
            if above != below and depths[below] < reached:
                depths[below], changed = reached, True
    return [depths[loop] for loop in loops]
