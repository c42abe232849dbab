"""Simulates a GPU: tensors are on the CPU, but Python code sees them on `cuda:0`.

Tensors on the GPU are recognised by their storage. A torch dispatch mode sees every
operator: it refuses mixed devices and operators without a CUDA kernel, and records each
time the host waits for the device. A simulated CUDA graph replays the captured
operators on the captured tensors, without the Python code between them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from softmax_temperature.networks import layers

GPU, CPU = torch.device("cuda", 0), torch.device("cpu")
PACKAGE = "softmax_temperature"
COMPOSITE = (
    "CUDA",
    "CompositeExplicitAutograd",
    "CompositeImplicitAutograd",
    "CompositeExplicitAutogradNonFunctional",
)
# On a CPU, torch calls these operators where it would call a CUDA operator on a GPU.
STAND_INS = {
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
    "aten::mkldnn_rnn_layer",
    "aten::mkldnn_rnn_layer_backward",
}
WAIT = {
    "_local_scalar_dense",
    "nonzero",
    "masked_select",
    "is_nonzero",
    "equal",
    "_unique2",
    "bincount",
}
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}
UNDECLARED = {
    "running_mean",
    "running_var",
}  # Operators write to these arguments, although their schemas do not say so.
MOVES = {Tensor.to, Tensor.cpu, Tensor.cuda, torch.as_tensor}


class Mixed(AssertionError):
    """An operator got tensors on both devices, or has no GPU kernel."""


def _key(tensor: Tensor) -> int:
    """The address of the tensor's storage; 0 for packed weights and meta tensors."""
    try:
        address = int(torch._C._storage_address(tensor))
    except NotImplementedError:  # A tensor in `vmap` or `grad`, or packed weights.
        if torch._C._functorch.is_functorch_wrapped_tensor(tensor):
            return _key(torch._C._functorch.get_unwrapped(tensor))
        return 0
    with torch._C.DisableTorchFunction():
        return 0 if tensor.is_meta else address


class PretendedGPU:
    """Knows which tensors are on the GPU, and records when the host waits for it.

    `waits` has one entry per wait: the operator, and the package's line that called it.
    """

    def __init__(self) -> None:
        self.waits: list[str] = []
        self.graph: PretendedGraph | None = None
        self.inside = False  # True during a call with GPU tensors.
        # True during a call that reads numbers on a CPU but need not wait on a GPU.
        self.unlike = False
        self._there: dict[int, StorageWeakRef] = {}
        self._pinned: dict[int, StorageWeakRef] = {}

    def holds(self, tensor: Tensor) -> bool:
        return self.has(_key(tensor))

    def has(self, key: int) -> bool:
        return key in self._there

    def put(self, tensor: Tensor, *, pinned: bool = False) -> Tensor:
        with torch._C.DisableTorchFunction():
            storage = tensor.untyped_storage()
            (self._pinned if pinned else self._there)[storage._cdata] = StorageWeakRef(
                storage
            )
        return tensor

    def is_pinned(self, tensor: Tensor) -> bool:
        return _key(tensor) in self._pinned

    def wait(self, reason: str) -> None:
        if self.unlike:
            return
        if self.graph is not None:
            raise RuntimeError(
                f"operation not permitted when stream is capturing: {reason}"
            )
        frame = sys._getframe()
        while frame is not None and PACKAGE not in frame.f_code.co_filename:
            frame = frame.f_back
        self.waits.append(
            f"{reason} at {Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
            if frame
            else reason
        )

    def move(
        self, source: Tensor, moved: Tensor, *, there: bool, non_blocking: bool
    ) -> Tensor:
        """Return `moved`, the copy of `source`, on the GPU if `there` is true,
        otherwise on the CPU.
        """
        if (was := self.holds(source)) == there:
            return moved
        if _key(moved) == _key(source):
            moved = moved.clone(memory_format=torch.preserve_format)
        self._there.pop(_key(moved), None)
        if was or not (non_blocking and self.is_pinned(source)):
            self.wait("download" if was else "upload")
        return self.put(moved) if there else moved


class _Functions(TorchFunctionMode):
    """Intercepts calls that name a device or read a tensor without an operator."""

    def __init__(self, gpu: PretendedGPU) -> None:
        super().__init__()
        self._gpu = gpu

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        gpu, kwargs = self._gpu, dict(kwargs or {})
        tensors = _tensors_in(args, kwargs)
        held = [gpu.holds(tensor) for tensor in tensors]
        first = any(held[:1])
        if func is Tensor.pin_memory:
            return gpu.put(args[0].clone(), pinned=True)
        if first and func in (Tensor.numpy, Tensor.__array__):
            raise TypeError("can't convert cuda:0 device type tensor to numpy")
        if first and func in (Tensor.tolist, Tensor.new_tensor):
            gpu.wait(func.__name__)
        asked, args, kwargs = _on_cpu(func, args, kwargs)
        before = gpu.inside, gpu.unlike
        gpu.inside = gpu.inside or any(held)
        gpu.unlike = gpu.unlike or func is torch.nn.functional.one_hot
        try:
            result = func(*args, **kwargs)
        finally:
            gpu.inside, gpu.unlike = before
        if first and func in (Tensor.__deepcopy__, Tensor.new_tensor):
            return gpu.put(result)
        if asked is None or not isinstance(result, Tensor):
            return result
        return self._arrived(func, asked.type == "cuda", tensors, result, args, kwargs)

    def _arrived(
        self,
        func: Any,
        there: bool,
        tensors: list[Tensor],
        result: Tensor,
        args: Any,
        kwargs: Any,
    ) -> Tensor:
        if func in MOVES and tensors:
            non_blocking = kwargs.get("non_blocking", False) or (
                len(args) > 3 and args[3] is True
            )
            return self._gpu.move(
                tensors[0], result, there=there, non_blocking=non_blocking
            )
        if there and func in (torch.tensor, torch.as_tensor):
            self._gpu.wait("upload")
        return self._gpu.put(result) if there else result


def _on_cpu(
    func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[torch.device | None, Any, Any]:
    """The device in a call's arguments, and the arguments with the CPU in its place."""
    if func is Tensor.cpu:
        return CPU, args, kwargs
    if func is Tensor.cuda:
        return GPU, args[:1], {}
    if kwargs.get("device") is not None and func is not torch._C._nn._parse_to:
        return torch.device(kwargs["device"]), args, kwargs | {"device": CPU}
    if func is Tensor.to and len(args) > 1 and isinstance(args[1], str | torch.device):
        return torch.device(args[1]), (args[0], CPU, *args[2:]), kwargs
    if func is Tensor.to and len(args) > 1 and isinstance(args[1], Tensor):
        return args[1].device, (args[0], CPU, args[1].dtype), kwargs
    return None, args, kwargs


class _Operators(TorchDispatchMode):
    """Intercepts every operator, including those of the backward pass."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing is compiled here, and torch's guard costs time at every operator."""
        return False

    def __init__(self, gpu: PretendedGPU) -> None:
        super().__init__()
        self._gpu = gpu

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        gpu, kwargs = self._gpu, kwargs or {}
        tensors = _tensors_in(args, kwargs)
        keys = [_key(tensor) for tensor in tensors]
        keyed = list(zip(tensors, keys, strict=True))
        there = [tensor for tensor, key in keyed if gpu.has(key)]
        here = [
            tensor for tensor, key in keyed if tensor.ndim and key and not gpu.has(key)
        ]
        name = func.overloadpacket.__name__
        if there:
            self._check(func, name, args, there, here)
        given = None
        if gpu.graph is not None:
            given = aliases((args, kwargs))
            gpu.graph.before(func, args)
        result = func(*args, **kwargs)
        if (there and not (name == "copy_" and not gpu.holds(args[0]))) or (
            gpu.inside and not tensors
        ):
            for leaf in _tensors_in(result):
                if _key(leaf):
                    gpu.put(leaf)
        if gpu.graph is not None:
            gpu.graph.record(func, given, result, set(keys))
        return result

    def _check(
        self, func: Any, name: str, args: Any, there: list[Tensor], here: list[Tensor]
    ) -> None:
        gpu = self._gpu
        masks = any(leaf.dtype == torch.bool for leaf in _tensors_in(args[1:2]))
        indexes = name in INDEXING and gpu.holds(
            args[0]
        )  # If the indices are on the host, the host waits.
        if name == "copy_" and here:
            if not (gpu.is_pinned(args[1]) and len(args) > 2 and args[2]):
                gpu.wait("copy")
        elif here and not indexes:
            shapes = [
                (tuple(tensor.shape), gpu.holds(tensor)) for tensor in (*there, *here)
            ]
            raise Mixed(f"{func} mixes devices: shapes and whether on the GPU {shapes}")
        elif (
            name in WAIT
            or (indexes and (masks or here))
            or (name == "repeat_interleave" and len(args) < 2)
        ):
            gpu.wait(name)
        if func.name().partition(".")[0] not in STAND_INS and not _has_kernel(
            func.name()
        ):
            raise Mixed(f"{func} has no CUDA kernel")


@cache
def _has_kernel(name: str) -> bool:
    return any(
        torch._C._dispatch_has_kernel_for_dispatch_key(name, key) for key in COMPOSITE
    )


class PretendedGraph:
    """A captured sequence of operators.

    As on a GPU, capturing changes no tensors.
    """

    def __init__(self) -> None:
        self._calls: list[tuple[Any, Any, list[tuple[int, Tensor]]]] = []
        self._before: dict[int, tuple[Tensor, Tensor]] = {}
        self._made: set[int] = set()

    def before(self, func: Any, args: Any) -> None:
        """Save the tensors that predate the capture and are about to be overwritten."""
        written = [
            given
            for argument, given in zip(func._schema.arguments, args, strict=False)
            if (argument.alias_info is not None and argument.alias_info.is_write)
            or argument.name in UNDECLARED
        ]
        for tensor in _tensors_in(written):
            if (key := _key(tensor)) not in self._made and key not in self._before:
                whole = torch.empty(0, dtype=tensor.dtype).set_(
                    tensor.untyped_storage()
                )
                self._before[key] = (whole, whole.clone())

    def record(self, func: Any, given: Any, result: Any, old: set[int]) -> None:
        new = [
            (number, leaf.detach())
            for number, leaf in enumerate(tree_leaves(result))
            if isinstance(leaf, Tensor) and _key(leaf) not in old
        ]
        self._made |= {_key(leaf) for _, leaf in new}
        self._calls.append((func, given, new))

    def end(self) -> None:
        for tensor, value in self._before.values():
            tensor.copy_(value)
        self._before.clear()

    def replay(self) -> None:
        with (
            torch.utils._python_dispatch._disable_current_modes(),
            torch._C.DisableTorchFunction(),
            torch.no_grad(),
        ):
            for func, given, new in self._calls:
                args, kwargs = aliases(given)
                result = tree_leaves(func(*args, **kwargs))
                for number, leaf in new:
                    leaf.copy_(result[number])


def _tensors_in(*trees: Any) -> list[Tensor]:
    """Find the tensors in nested containers, ten times as fast as torch does."""
    found: list[Tensor] = []
    _add_tensors(trees, found)
    return found


def _add_tensors(trees: Iterable[Any], found: list[Tensor]) -> None:
    for tree in trees:
        if isinstance(tree, Tensor):
            found.append(tree)
        elif isinstance(tree, (tuple, list)):  # Faster than `tuple | list`.
            _add_tensors(tree, found)
        elif isinstance(tree, dict):
            _add_tensors(tree.values(), found)


def aliases(tree: Any) -> Any:
    """New tensors on the same memory, which in-place operators may reshape."""
    return tree_map(
        lambda leaf: leaf.detach() if isinstance(leaf, Tensor) else leaf, tree
    )


@contextmanager
def pretended_gpu() -> Iterator[PretendedGPU]:
    """Give torch a simulated GPU until the end of the block."""
    gpu = PretendedGPU()
    layers.channels.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            Tensor,
            "device",
            property(lambda self: GPU if gpu.holds(self) else _device(self)),
            raising=False,
        )
        patch.setattr(Tensor, "is_cuda", property(gpu.holds), raising=False)
        for owner, name, value in _replaced(gpu):
            patch.setattr(owner, name, value)
        with _Operators(gpu), _Functions(gpu):
            yield gpu
    layers.channels.cache_clear()


def _replaced(gpu: PretendedGPU) -> Iterator[tuple[Any, str, Any]]:
    """Yield replacements for torch's queries of the driver and its device checks."""
    autocast, group = (
        torch.autocast,
        torch.utils._foreach_utils._group_tensors_by_device_and_dtype,
    )

    def grouped(lists: Any, *more: Any, **options: Any) -> Any:
        on_gpu = any(map(gpu.holds, _tensors_in(lists)))
        found = group(lists, *more, **options)
        return {
            (GPU if on_gpu else device, dtype): rest
            for (device, dtype), rest in found.items()
        }

    def capturable(optimizer: torch.optim.Optimizer) -> None:
        assert gpu.graph is None or all(
            group["capturable"] for group in optimizer.param_groups
        )

    @contextmanager
    def capture(graph: PretendedGraph) -> Iterator[None]:
        state, gpu.graph = torch.get_rng_state(), graph
        try:
            yield
        finally:
            gpu.graph = None
            with torch.utils._python_dispatch._disable_current_modes(), torch.no_grad():
                graph.end()
            torch.set_rng_state(state)

    yield (
        torch,
        "autocast",
        lambda _, *rest, **options: autocast("cpu", *rest, **options),
    )
    yield torch.optim.Optimizer, "_accelerator_graph_capture_health_check", capturable
    yield torch.backends.cudnn, "is_acceptable", lambda _: False
    for module in ("torch.optim.optimizer", "torch.nn.utils.clip_grad"):
        yield sys.modules[module], "_group_tensors_by_device_and_dtype", grouped
    for name, value in {
        "is_available": lambda: True,
        "is_bf16_supported": lambda **_: True,
        "get_rng_state": lambda *_: torch.empty(0),
        "set_rng_state": lambda *_: None,
        "mem_get_info": lambda *_: (2**26, 2**27),
        "CUDAGraph": PretendedGraph,
        "graph": capture,
        "Stream": _Stream,
        "current_stream": _Stream,
        "stream": nullcontext,
    }.items():
        yield torch.cuda, name, value


class _Stream:
    def wait_stream(self, other: _Stream) -> None:
        """Do nothing: the host computes everything in order."""


def _device(tensor: Tensor) -> torch.device:
    with torch._C.DisableTorchFunction():
        found: torch.device = torch._C.TensorBase.device.__get__(tensor)
    return found
