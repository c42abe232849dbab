"""The graph of a network's scales.

Its nodes are groups of tensors that share a scale; its edges are the layers between
them.
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

from softmax_temperature.cooling.function_scales import (
    RESCALED_FUNCTIONS,
    SAMPLE_NORMS,
    multiply_output,
    unscale_input,
)
from softmax_temperature.cooling.last_layer import divide
from softmax_temperature.metrics.checks import ArgumentError

# Module types are compared exactly, because a subclass may transform its weights, for
# instance standardise them.
LINEAR_LAYERS = frozenset(
    {
        nn.Linear,
        nn.Conv1d,
        nn.Conv2d,
        nn.Conv3d,
        nn.ConvTranspose1d,
        nn.ConvTranspose2d,
        nn.ConvTranspose3d,
    }
)
BATCH_NORMS = frozenset(
    {nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm}
)
# Modules that compute a function f with f(c x) = c f(x) for every c > 0.
HOMOGENEOUS_MODULES = frozenset(
    {
        nn.ReLU,
        nn.LeakyReLU,
        nn.PReLU,
        nn.RReLU,
        nn.Identity,
        nn.Dropout,
        nn.Dropout1d,
        nn.Dropout2d,
        nn.Dropout3d,
        nn.MaxPool1d,
        nn.MaxPool2d,
        nn.MaxPool3d,
        nn.AvgPool1d,
        nn.AvgPool2d,
        nn.AvgPool3d,
        nn.AdaptiveMaxPool1d,
        nn.AdaptiveMaxPool2d,
        nn.AdaptiveMaxPool3d,
        nn.AdaptiveAvgPool1d,
        nn.AdaptiveAvgPool2d,
        nn.AdaptiveAvgPool3d,
        nn.Flatten,
        nn.Unflatten,
        nn.PixelShuffle,
        nn.PixelUnshuffle,
        nn.ChannelShuffle,
        nn.Upsample,
        nn.UpsamplingNearest2d,
        nn.UpsamplingBilinear2d,
        nn.ZeroPad1d,
        nn.ZeroPad2d,
        nn.ZeroPad3d,
        nn.ReflectionPad2d,
        nn.ReplicationPad2d,
    }
)

NOT_BY_LAYER = "model cannot be cooled layer by layer: "
OTHER_MODE = (
    "Mode 'last_layer' scales no layer and accepts this network: Cooling(model, "
    "mode='last_layer')."
)

# Layers that cannot pass a scale on, each with the reason.
_ATTENTION = "weights by a softmax, which changes if queries and keys are scaled"
REFUSED_MODULES = {
    nn.MultiheadAttention: _ATTENTION,
    nn.TransformerEncoderLayer: _ATTENTION,
    nn.TransformerDecoderLayer: _ATTENTION,
    nn.Softmax: "normalises exponentials, which a scale changes",
}
REFUSED_FUNCTIONS = {
    "scaled_dot_product_attention": _ATTENTION,
    "softmax": "normalises exponentials, which a scale changes",
}

# Names of homogeneous functions and methods. Each reads one tensor; the other arguments
# have no scale.
HOMOGENEOUS = frozenset(
    {
        "relu",
        "relu_",
        "leaky_relu",
        "neg",
        "abs",
        "dropout",
        "dropout1d",
        "dropout2d",
        "dropout3d",
        "max_pool1d",
        "max_pool2d",
        "max_pool3d",
        "avg_pool1d",
        "avg_pool2d",
        "avg_pool3d",
        "adaptive_max_pool1d",
        "adaptive_max_pool2d",
        "adaptive_max_pool3d",
        "adaptive_avg_pool1d",
        "adaptive_avg_pool2d",
        "adaptive_avg_pool3d",
        "clone",
        "detach",
        "contiguous",
        "float",
        "double",
        "to",
        "mean",
        "sum",
        "amax",
        "amin",
        "flatten",
        "unflatten",
        "view",
        "reshape",
        "squeeze",
        "unsqueeze",
        "permute",
        "transpose",
        "movedim",
        "expand",
        "getitem",
        "chunk",
        "split",
        "narrow",
        "interpolate",
        "pixel_shuffle",
        "pixel_unshuffle",
        "channel_shuffle",
    }
)
JOINS = frozenset({"cat", "concat", "concatenate", "stack", "maximum", "minimum"})
SUMS = frozenset({"add", "add_", "sub", "sub_"})
PRODUCTS = frozenset({"mul", "mul_"})
QUOTIENTS = frozenset({"truediv", "div", "div_"})
SIZES = frozenset({"size", "dim"})
SIZE_ATTRIBUTES = frozenset({"shape", "ndim", "dtype", "device"})

# Python modules in which operations are looked up by name.
_NAMESPACES = (operator, torch, F, builtins)
_NO_SCALE = "does not pass the scale of its input to its output"
# Maps the name of a function or method to the torch module that can hold its scale, for
# instance tanh to Tanh.
_MODULES_OF_FUNCTIONS = {
    kind.__name__.lower(): kind.__name__ for kind in RESCALED_FUNCTIONS
} | {
    "layer_norm": "LayerNorm",
    "group_norm": "GroupNorm",
    "rms_norm": "RMSNorm",
    "instance_norm": "InstanceNorm2d",
}
# timm's batch normalisation with dropout and activation inside.
_NORM_WITH_ACTIVATION = "timm.layers.norm_act.BatchNormAct2d"


@dataclass(frozen=True)
class Layer:
    """A layer whose parameters can change the scale between two tensors.

    Attributes:
        source: Group of the layer's input.
        target: Group of the layer's output.
        weight: Name of the parameter that multiplies the input.
        bias: Name of the parameter that is added.
        normalises: Whether the layer removes the scale of its input, as batch
            normalisation does. Such a layer is counted as part of a neighbouring layer,
            not as one of the paper's L.
    """

    source: int
    target: int
    weight: str
    bias: str | None
    normalises: bool


@dataclass(frozen=True)
class ScaleGraph:
    """Groups of tensors that must be scaled together, and the layers between them.

    Attributes:
        layers: The layers, in the order of computation.
        groups: Number of groups.
        fixed: The groups that must keep their scale, each with the reason.
        logits: Group of the network's output.
        outputs: Group of the output of each module that is called, keyed by the
            module's path.
        functions: Path of each module that needs its input unscaled, and the group of
            that input; one entry per call.
    """

    layers: tuple[Layer, ...]
    groups: int
    fixed: dict[int, str]
    logits: int
    outputs: dict[str, int]
    functions: tuple[tuple[str, int], ...]


def scale_graph(model: nn.Module) -> ScaleGraph:
    """Group the tensors of a network by scale, and list the layers between the groups.

    A homogeneous operation (ReLU, pooling, reshaping, multiplication by a number)
    preserves the scale of its input. A sum or a concatenation needs one scale for all
    its inputs. A convolution or dense layer may change the scale through its weights. A
    batch normalisation needs its input unscaled, and may change the scale of its
    output. Other activations (tanh, GELU) preserve the scale if they hold it in a
    buffer. A normalisation of each sample (layer normalisation) removes the scale. The
    module `function_scales` makes activations hold a scale, and makes normalisations of
    each sample undo one. The trace treats `a += b` as `a = a + b`, so the network must
    not read the old `a` afterwards under another name.

    Raises:
        ValueError: If `torch.fx` cannot trace the network, if its training and
            evaluation modes compute different functions, or if it contains an unknown
            operation or one that a trace does not show (a hook, a replaced forward
            function). The message names the module.
    """
    _refuse_hidden_operations(model)
    modes = {module: module.training for module in model.modules()}
    try:
        in_training = _Walk(model.train()).result()
        in_evaluation = _Walk(model.eval()).result()
    finally:
        for module, mode in modes.items():
            module.training = mode
    if in_training != in_evaluation:
        raise _refusal(
            type(model).__name__,
            "computes different functions in training and in evaluation",
        )
    return in_evaluation


def _refuse_hidden_operations(model: nn.Module) -> None:
    """Raise ValueError for hooks and replaced forward functions, which traces miss."""
    for path, module in model.named_modules():
        kind = type(module).__name__
        where = f"module {path!r} ({kind})" if path else f"the network ({kind})"
        # torch has no public API for hooks.
        hooks = [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]  # noqa: SLF001
        known = [unscale_input, multiply_output]
        if not path:
            # The hook of the last-layer temperature acts on the logits only.
            known.append(divide)
        if any(hook not in known for hook in hooks):
            raise _refusal(where, "has a hook, whose effect is unknown")
        if "forward" in vars(module):
            raise _refusal(where, "has a replaced forward function")


class _Tracer(fx.Tracer):
    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        if _is_norm_with_activation(m):
            return True
        return super().is_leaf_module(m, module_qualified_name)


@dataclass(frozen=True)
class _NodeLayer:
    """A `Layer` between nodes of the trace, whose groups are not final yet."""

    source: fx.Node
    target: fx.Node
    weight: str
    bias: str | None
    normalises: bool


class _Walk:
    """Joins the nodes of a graph into groups, one by one."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.groups = DisjointSet()
        # Nodes whose values are sizes, or numbers derived from sizes; these have no
        # scale.
        self.numbers: set[fx.Node] = set()
        # Nodes that must keep their scale, each with the reason.
        self.fixed: list[tuple[fx.Node, str]] = []
        self.layers: list[_NodeLayer] = []
        # Modules that need their input unscaled: the path and the input node of each
        # call.
        self.functions: list[tuple[str, fx.Node]] = []
        # The module that uses each parameter.
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
                    repr(node.target),
                    "is used outside the layers that can be scaled",
                )
        logits = output.args[0]
        if not isinstance(logits, fx.Node) or logits not in self.groups:
            raise ValueError(
                f"model must return one tensor of logits for Cooling, got {logits}"
            )
        return self._numbered(logits)

    def _numbered(self, logits: fx.Node) -> ScaleGraph:
        """Build the scale graph, with groups numbered in the order of computation."""
        numbers: dict[fx.Node, int] = {}
        group: dict[fx.Node, int] = {}
        for node in self.groups:
            representative = self.groups[node]
            group[node] = numbers.setdefault(representative, len(numbers))
        layers = []
        for layer in self.layers:
            source = group[layer.source]
            target = group[layer.target]
            layers.append(
                Layer(source, target, layer.weight, layer.bias, layer.normalises)
            )
        outputs = {
            str(node.target): group[node]
            for node in self.groups
            if node.op == "call_module"
        }
        return ScaleGraph(
            layers=tuple(layers),
            groups=len(numbers),
            fixed={group[node]: reason for node, reason in self.fixed},
            logits=group[logits],
            outputs=outputs,
            functions=tuple((path, group[node]) for path, node in self.functions),
        )

    def _module(self, node: fx.Node) -> None:
        path = str(node.target)
        module = self.model.get_submodule(path)
        kind = type(module)
        where = f"module {path!r} ({kind.__name__})"
        source = self._only_input(node, where)
        self.groups.add(node)
        returns_indices = getattr(module, "return_indices", False)
        if kind in HOMOGENEOUS_MODULES and not returns_indices:
            self.groups.merge(node, source)
        elif kind in RESCALED_FUNCTIONS:
            self._rescaled_function(where, source, node, module)
            self.groups.merge(node, source)
        elif kind in LINEAR_LAYERS:
            self._layer(where, source, node, normalises=False)
        elif kind in BATCH_NORMS or _is_norm_with_activation(module):
            self._batch_norm(where, source, node, module)
        elif kind in SAMPLE_NORMS and not _has_running_statistics(module):
            self._rescaled_function(where, source, node, module)
            self._affine(where, source, node, module)
        else:
            raise _refusal(where, REFUSED_MODULES.get(kind, _NO_SCALE))

    def _rescaled_function(
        self, where: str, source: fx.Node, node: fx.Node, module: nn.Module
    ) -> None:
        if node.args != (source,):
            raise _refusal(where, "is not called with its input as the only argument")
        if getattr(module, "inplace", False) and len(source.users) > 1:
            # A module that holds a scale would no longer modify the tensor that others
            # read.
            raise _refusal(where, "works in place on a tensor that is read elsewhere")
        self.functions.append((str(node.target), source))

    def _batch_norm(
        self, where: str, source: fx.Node, node: fx.Node, module: nn.Module
    ) -> None:
        for name, inner in module.named_children():
            if type(inner) in RESCALED_FUNCTIONS:
                # The activation reads the normalised tensor, which has the output's
                # scale.
                self.functions.append((f"{node.target}.{name}", node))
            elif type(inner) not in HOMOGENEOUS_MODULES:
                raise _refusal(
                    where,
                    f"holds {type(inner).__name__}, which does not pass on the scale "
                    "of its input",
                )
        self.fixed.append((source, where))
        self._affine(where, source, node, module)

    def _affine(
        self, where: str, source: fx.Node, node: fx.Node, module: nn.Module
    ) -> None:
        """Add a normalisation as a layer, or fix its output if it has no weights."""
        if dict(module.named_parameters(recurse=False)):
            self._layer(where, source, node, normalises=True)
        else:
            self.fixed.append((node, where))

    def _layer(
        self, where: str, source: fx.Node, node: fx.Node, *, normalises: bool
    ) -> None:
        path = str(node.target)
        module = self.model.get_submodule(path)
        parameters = dict(module.named_parameters(recurse=False))
        if "weight" not in parameters:
            raise _refusal(where, "computes its weight from other parameters")
        for parameter in parameters.values():
            if parameter in self.owners:
                owner = self.owners[parameter]
                raise _refusal(
                    where, f"shares a parameter with {owner}, or is called twice"
                )
            self.owners[parameter] = where
        bias = f"{path}.bias" if "bias" in parameters else None
        self.layers.append(_NodeLayer(source, node, f"{path}.weight", bias, normalises))

    def _function(self, node: fx.Node) -> None:
        name = _operation_name(node.target)
        where = _called(node)
        scaled = self._scaled(node)
        is_size = name in SIZES
        if name == "getattr" and node.args[1] in SIZE_ATTRIBUTES:
            is_size = True
        if not scaled or is_size:
            self.numbers.add(node)
            return
        self.groups.add(node)
        if _passes(name, node, scaled[0]):
            self.groups.merge(node, self._only_input(node, where))
        elif _unites(name, node) and len(scaled) == len(node.all_input_nodes):
            for term in scaled:
                self.groups.merge(node, term)
        else:
            raise _refusal(where, _reason(name))

    def _scaled(self, node: fx.Node) -> list[fx.Node]:
        """Return the inputs of `node` that have a scale."""
        return [each for each in node.all_input_nodes if each not in self.numbers]

    def _only_input(self, node: fx.Node, where: str) -> fx.Node:
        scaled = self._scaled(node)
        if len(scaled) != 1:
            raise _refusal(where, f"reads {len(scaled)} tensors instead of one")
        return scaled[0]


def _trace(model: nn.Module) -> fx.Graph:
    tracer = _Tracer()
    try:
        # The tracer stores constants on the module that it traces, so it traces a
        # shallow copy.
        return tracer.trace(copy.copy(model))
    except (
        TypeError,
        ValueError,
        RuntimeError,
        AttributeError,
        NotImplementedError,
    ) as error:
        where = _innermost(tracer.module_stack)
        reason = f"has no fixed graph that torch.fx can trace: {error}"
        raise _refusal(where, reason) from error


def _called(node: fx.Node) -> str:
    """Describe the function or method that `node` calls, and the calling module."""
    # `node.target` is the name of a method, or a function.
    name = getattr(node.target, "__name__", str(node.target))
    stack = node.meta.get("nn_module_stack") or {}
    return f"{name!r} in {_innermost(stack)}"


def _innermost(stack: Mapping[str, tuple[str, type[nn.Module]]]) -> str:
    """Describe the innermost of the nested modules in `stack`."""
    if not stack:
        return "the network's own forward"
    path, kind = list(stack.values())[-1]
    return f"module {path!r} ({kind.__name__})"


def _passes(name: str | None, node: fx.Node, tensor: fx.Node) -> bool:
    """Whether scaling the only tensor input scales the output by the same factor."""
    arguments = [*node.args, *node.kwargs.values()]
    if arguments.count(tensor) != 1:
        # The tensor occurs more than once, as in x * x, which squares the scale.
        return False
    dtypes = [each for each in arguments if isinstance(each, torch.dtype)]
    if not all(dtype.is_floating_point for dtype in dtypes):
        # The output is cast to whole numbers, which have no scale.
        return False
    if name == "view" and dtypes:
        # A number's bits, reinterpreted as another number, have no scale.
        return False
    if name in QUOTIENTS:
        # The tensor must not be the divisor. The only possible keyword is a rounding
        # mode, and a rounded quotient does not scale with the tensor.
        return node.args[0] is tensor and not node.kwargs
    if name == "pad":
        return _pads_zeros(node)
    return name in HOMOGENEOUS or name in PRODUCTS


def _unites(name: str | None, node: fx.Node) -> bool:
    """Whether a common factor of all tensor inputs also multiplies the output."""
    if name in SUMS:
        # A nonzero number has its own scale. A second term given by keyword is refused.
        terms = node.args[:2]
        scalable = all(isinstance(term, fx.Node) or term == 0 for term in terms)
        return scalable and node.kwargs.keys() <= {"alpha"}
    return name in JOINS


def _pads_zeros(node: fx.Node) -> bool:
    """Whether F.pad(input, pad, mode, value) adds only zeros or values of the input."""
    parameters = ("input", "pad", "mode", "value")
    arguments = dict(zip(parameters, node.args, strict=False)) | node.kwargs
    if arguments.get("mode", "constant") != "constant":
        return True
    return arguments.get("value") in {None, 0}


def _reason(name: str | None) -> str:
    """Return the reason why no scale passes through the function called `name`."""
    stem = (name or "").rstrip("_")
    if stem in _MODULES_OF_FUNCTIONS:
        module = _MODULES_OF_FUNCTIONS[stem]
        return f"is a function, which cannot hold a scale: use torch.nn.{module}"
    return REFUSED_FUNCTIONS.get(stem, _NO_SCALE)


def _has_running_statistics(module: nn.Module) -> bool:
    """Whether `module`, an instance normalisation, keeps running statistics."""
    return bool(getattr(module, "track_running_stats", False))


def _is_norm_with_activation(module: nn.Module) -> bool:
    """Whether `module` has the class name of timm's norm; timm may not be installed."""
    kind = type(module)
    return f"{kind.__module__}.{kind.__name__}" == _NORM_WITH_ACTIVATION


def _operation_name(target: Callable[..., object] | str) -> str | None:
    """Return the name of a method, or of a function of torch, `operator` or `builtins`.

    Returns None for any other function.
    """
    if isinstance(target, str):
        return target
    name = getattr(target, "__name__", "")
    for namespace in _NAMESPACES:
        if getattr(namespace, name, None) is target:
            return name
    return None


def refusal(reason: str) -> ArgumentError:
    """The error for a network whose layers cannot be scaled; names another mode."""
    return ArgumentError(NOT_BY_LAYER + reason.rstrip("."), OTHER_MODE)


def _refusal(where: str, reason: str) -> ArgumentError:
    return refusal(f"{where} {reason}")
