"""Which tensors of a network share one scale, and which layers lie between: read off
its graph.
"""

import builtins
import copy
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from scipy.cluster.hierarchy import DisjointSet
from torch import fx, nn

from softmax_temperature.cooling.last_layer import divide


def _kinds(*names: str) -> frozenset[type[nn.Module]]:
    """Modules by name, those that end in Nd for 1, 2 and 3 dimensions."""
    return frozenset(
        getattr(nn, name.replace("Nd", f"{n}d")) for name in names for n in (1, 2, 3)
    )


# Types are compared exactly: a subclass may do anything to its weights, standardise
# them for instance.
LINEAR_LAYERS = _kinds("Linear", "ConvNd", "ConvTransposeNd")
BATCH_NORMS = _kinds("BatchNormNd", "SyncBatchNorm")
# f(c x) = c f(x) for every c > 0.
HOMOGENEOUS_MODULES = _kinds(
    *("ReLU", "LeakyReLU", "PReLU", "Identity", "Dropout", "DropoutNd"),
    *("MaxPoolNd", "AvgPoolNd", "AdaptiveMaxPoolNd", "AdaptiveAvgPoolNd"),
    *("Flatten", "Unflatten", "PixelShuffle", "PixelUnshuffle", "ChannelShuffle"),
    *(
        "Upsample",
        "UpsamplingNearest2d",
        "UpsamplingBilinear2d",
        "ZeroPadNd",
        "ReflectionPad2d",
        "ReplicationPad2d",
    ),
)

# Functions and methods by name. A homogeneous one reads one tensor, and any numbers.
HOMOGENEOUS = frozenset(
    {
        *("relu", "relu_", "leaky_relu", "neg", "abs"),
        *(
            f"{kind}{n}d"
            for kind in ("dropout", "max_pool", "avg_pool")
            for n in (1, 2, 3)
        ),
        *(f"adaptive_{kind}_pool{n}d" for kind in ("max", "avg") for n in (1, 2, 3)),
        *("dropout", "clone", "detach", "contiguous", "float", "double", "to"),
        *("mean", "sum", "amax", "amin"),
        *("flatten", "unflatten", "view", "reshape", "squeeze", "unsqueeze"),
        *(
            "permute",
            "transpose",
            "movedim",
            "expand",
            "getitem",
            "chunk",
            "split",
            "narrow",
        ),
        *("interpolate", "pixel_shuffle", "pixel_unshuffle", "channel_shuffle"),
    }
)
JOINS = frozenset({"cat", "concat", "concatenate", "stack", "maximum", "minimum"})
SUMS = frozenset({"add", "add_", "sub", "sub_"})
PRODUCTS = frozenset({"mul", "mul_"})
QUOTIENTS = frozenset({"truediv", "div", "div_"})
SIZES = frozenset({"size", "dim"})
SIZE_ATTRIBUTES = frozenset({"shape", "ndim", "dtype", "device"})

_SPACES = (operator, torch, F, builtins)


@dataclass(frozen=True)
class Layer:
    """A layer whose parameters can change the scale of what passes."""

    source: int  # Group of the tensor that it reads.
    target: int  # Group of the tensor that it returns.
    weight: str  # Name of the parameter that multiplies.
    bias: str | None  # Name of the parameter that is added.
    # Whether it is one of the L layers of the paper; a batch norm belongs to a layer
    # beside it.
    counts: bool


@dataclass(frozen=True)
class ScaleGraph:
    """The tensors of a network in groups that can only be multiplied together, and the
    layers between the groups.
    """

    layers: tuple[Layer, ...]  # In the order of computation.
    groups: int
    fixed: dict[
        int, str
    ]  # Groups that must keep their scale, each with what demands it.
    logits: int  # Group of the output.
    outputs: dict[
        str, int
    ]  # Group of the output of each module that was called, by path.


def scale_graph(model: nn.Module) -> ScaleGraph:
    """Walk the graph of a network and group its tensors by scale.

    A homogeneous operation (ReLU, pooling, reshaping, multiplying by a number) passes
    the scale of its input on; a sum or a concatenation wants one scale for all its
    inputs; a convolution or dense layer may change the scale, by its weights; a batch
    normalisation wants its input unscaled, and may change the scale of its output. A
    trace takes `a += b` for `a = a + b`, so another name for the old `a` must not be
    read afterwards.

    Raises:
        ValueError: If `torch.fx` cannot trace the network, its two modes differ, or it
            holds another operation or one that a trace does not see (a hook, a forward
            function of its own); the message names the module.
    """
    for path, module in model.named_modules():
        what = (
            f"module {path!r} ({type(module).__name__})"
            if path
            else f"the network ({type(module).__name__})"
        )
        hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]  # noqa: SLF001 - torch has no public API for this.
        if any(path or hook is not divide for hook in hooks):
            raise _refusal(what, "has a hook, which may do anything")
        if "forward" in vars(module):
            raise _refusal(what, "has another forward function than its class")
    modes = {module: module.training for module in model.modules()}
    try:
        in_training, in_evaluation = (
            _Walk(model.train(mode)).result() for mode in (True, False)
        )
    finally:
        for module, mode in modes.items():
            module.training = mode
    if in_training != in_evaluation:
        raise _refusal(
            f"{type(model).__name__}",
            "computes one thing in training and another in evaluation",
        )
    return in_evaluation


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return _is_norm_with_activation(m) or super().is_leaf_module(
            m, module_qualified_name
        )


class _Walk:
    """Joins the nodes of a graph into groups, one by one."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.groups = DisjointSet()
        self.numbers: set[fx.Node] = (
            set()
        )  # Sizes and what is computed from them: nothing that could be scaled.
        self.fixed: list[tuple[fx.Node, str]] = []
        self.layers: list[tuple[fx.Node, fx.Node, str, str | None, bool]] = []
        self.owners: dict[nn.Parameter, str] = {}

    def result(self) -> ScaleGraph:
        *nodes, output = _trace(self.model).nodes
        for node in nodes:
            if node.op == "placeholder":
                self.groups.add(node)
                self.fixed.append((node, f"the input {node.target!r}"))
            elif node.op == "call_module":
                self._module(node)
            elif node.op in {"call_function", "call_method"}:
                self._function(node)
            else:
                raise _refusal(
                    f"{node.target!r}",
                    "is a tensor used outside of the layers that can be scaled",
                )
        logits = output.args[0]
        if not isinstance(logits, fx.Node) or logits not in self.groups:
            raise ValueError(
                f"model must return one tensor of logits to be cooled, got {logits}"
            )
        index: dict[fx.Node, int] = {}
        group = {
            node: index.setdefault(self.groups[node], len(index))
            for node in self.groups
        }
        layers = tuple(
            Layer(group[a], group[b], weight, bias, counts)
            for a, b, weight, bias, counts in self.layers
        )
        outputs = {
            str(node.target): group[node]
            for node in self.groups
            if node.op == "call_module"
        }
        fixed = {group[node]: why for node, why in self.fixed}
        return ScaleGraph(layers, len(index), fixed, group[logits], outputs)

    def _module(self, node: fx.Node) -> None:
        path = str(node.target)
        module = self.model.get_submodule(path)
        what = f"module {path!r} ({type(module).__name__})"
        source = self._only_input(node, what)
        self.groups.add(node)
        if type(module) in HOMOGENEOUS_MODULES and not getattr(
            module, "return_indices", False
        ):
            self.groups.merge(node, source)
        elif type(module) in LINEAR_LAYERS:
            self._layer(what, source, node, counts=True)
        elif type(module) in BATCH_NORMS or _is_norm_with_activation(module):
            for inner in module.children():
                if type(inner) not in HOMOGENEOUS_MODULES:
                    raise _refusal(
                        what,
                        f"holds {type(inner).__name__}, which does not pass its scale on",
                    )
            self.fixed.append((source, what))
            if dict(module.named_parameters(recurse=False)):
                self._layer(what, source, node, counts=False)
            else:
                self.fixed.append((node, what))
        else:
            raise _refusal(
                what, "does not pass the scale of its input on to its output"
            )

    def _layer(
        self, what: str, source: fx.Node, node: fx.Node, *, counts: bool
    ) -> None:
        path = str(node.target)
        parameters = dict(
            self.model.get_submodule(path).named_parameters(recurse=False)
        )
        if "weight" not in parameters:
            raise _refusal(what, "computes its weight from other parameters")
        for parameter in parameters.values():
            if parameter in self.owners:
                raise _refusal(
                    what,
                    f"shares a parameter with {self.owners[parameter]}, or is called twice",
                )
            self.owners[parameter] = what
        bias = f"{path}.bias" if "bias" in parameters else None
        self.layers.append((source, node, f"{path}.weight", bias, counts))

    def _function(self, node: fx.Node) -> None:
        name, what = _operation_name(node.target), _called(node)
        scaled = self._scaled(node)
        if (
            not scaled
            or name in SIZES
            or (name == "getattr" and node.args[1] in SIZE_ATTRIBUTES)
        ):
            self.numbers.add(node)
            return
        self.groups.add(node)
        if _passes(name, node, scaled[0]):
            self.groups.merge(node, self._only_input(node, what))
        elif _unites(name, node) and len(scaled) == len(node.all_input_nodes):
            for each in scaled:
                self.groups.merge(node, each)
        else:
            raise _refusal(
                what, "does not pass the scale of its input on to its output"
            )

    def _scaled(self, node: fx.Node) -> list[fx.Node]:
        return [each for each in node.all_input_nodes if each not in self.numbers]

    def _only_input(self, node: fx.Node, what: str) -> fx.Node:
        if len(scaled := self._scaled(node)) != 1:
            raise _refusal(what, f"reads {len(scaled)} tensors where one is expected")
        return scaled[0]


def _trace(model: nn.Module) -> fx.Graph:
    tracer = _Tracer()
    try:
        # The tracer stores constants that it meets on the module that it traces: a
        # shallow copy keeps them.
        return tracer.trace(copy.copy(model))
    except (
        TypeError,
        ValueError,
        RuntimeError,
        AttributeError,
        NotImplementedError,
    ) as error:
        where, why = (
            _innermost(tracer.module_stack),
            f"has no fixed graph that could be walked: {error}",
        )
        raise ValueError(
            f"model ({type(model).__name__}) cannot be cooled layer by layer: {where} {why}"
        ) from error


def _called(node: fx.Node) -> str:
    """What is called, and in which module."""
    name = (
        node.target
        if isinstance(node.target, str)
        else getattr(node.target, "__name__", str(node.target))
    )
    return f"{name!r} in {_innermost(node.meta.get('nn_module_stack') or {})}"


def _innermost(stack: Mapping[str, tuple[str, type[nn.Module]]]) -> str:
    """The last of the modules that call one another."""
    if not stack:
        return "the network's own forward"
    path, kind = list(stack.values())[-1]
    return f"module {path!r} ({kind.__name__})"


def _passes(name: str | None, node: fx.Node, tensor: fx.Node) -> bool:
    """Whether the output is c times what it was when the one tensor that is read is c
    times what it was.
    """
    if [*node.args, *node.kwargs.values()].count(tensor) != 1:
        return False  # Such as its square.
    types = [
        given
        for given in (*node.args, *node.kwargs.values())
        if isinstance(given, torch.dtype)
    ]
    if not all(given.is_floating_point for given in types) or (
        name == "view" and types
    ):
        # Whole numbers have no scale, nor have the bits of a number that are read as
        # another.
        return False
    if name in QUOTIENTS:
        # Not a number over the tensor; a keyword would be a way of rounding.
        return node.args[0] is tensor and not node.kwargs
    return (
        name in HOMOGENEOUS or name in PRODUCTS or (name == "pad" and _pads_zeros(node))
    )


def _unites(name: str | None, node: fx.Node) -> bool:
    """Whether the output is c times what it was when all tensors that are read are c
    times what they were.
    """
    if name in SUMS:
        # A number other than zero has a scale of its own; a keyword may be the second
        # term.
        return all(
            isinstance(term, fx.Node) or term == 0 for term in node.args[:2]
        ) and node.kwargs.keys() <= {"alpha"}
    return name in JOINS


def _pads_zeros(node: fx.Node) -> bool:
    """Whether F.pad(input, pad, mode, value) adds only zeros, or values of the input."""
    given = (
        dict(zip(("input", "pad", "mode", "value"), node.args, strict=False))
        | node.kwargs
    )
    return bool(
        given.get("mode", "constant") != "constant" or given.get("value") in {None, 0}
    )


def _is_norm_with_activation(module: nn.Module) -> bool:
    """Whether this is timm's batch normalisation with dropout and activation inside; by
    name, as timm may be absent.
    """
    return (
        f"{type(module).__module__}.{type(module).__name__}"
        == "timm.layers.norm_act.BatchNormAct2d"
    )


def _operation_name(target: Callable[..., object] | str) -> str | None:
    """The name of a method or of a function of torch or of Python's operators; None for
    any other function.
    """
    if isinstance(target, str):
        return target
    name = getattr(target, "__name__", "")
    return (
        name if any(getattr(space, name, None) is target for space in _SPACES) else None
    )


def _refusal(what: str, why: str) -> ValueError:
    return ValueError(f"model cannot be cooled layer by layer: {what} {why}")
