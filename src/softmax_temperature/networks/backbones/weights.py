"""Weights: read them without running code, and load them only into the network that they belong to.

Weights are safetensors; nothing is unpickled. (Torchvision's own weights come as `.pth`; their sha256 is compared with
the one in their name, and they are read with `weights_only=True`, which constructs tensors and nothing else.)
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from safetensors.torch import load_file

from softmax_temperature.networks.backbones.sources import whole_safetensors
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor, nn

_NAMES_SHOWN = 3
_REMOVE = "Delete the file, and let it be fetched again."


def read_weights(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file.

    Raises:
        InputError: it is a pickle, truncated, or otherwise not whole.
    """
    return load_file(whole_safetensors(path))


def read_torchvision_weights(path: Path) -> dict[str, Tensor]:
    """Read a file that `locate_weights` found in torchvision's cache.

    Raises:
        InputError: it is damaged, or holds something else than tensors by name.
    """
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # A damaged pickle can make torch stumble over anything.
        raise InputError(f"is no file of weights ({type(error).__name__})", where=str(path), remedy=_REMOVE) from error
    if not isinstance(state, dict) or not all(isinstance(value, torch.Tensor) for value in state.values()):
        raise InputError("does not hold tensors by name", where=str(path), remedy=_REMOVE)
    return {str(name): value for name, value in state.items()}


def load_exactly(network: nn.Module, weights: dict[str, Tensor], *, unused: tuple[str, ...], where: str) -> None:
    """Load weights that must cover the network exactly, apart from parts that it does not use.

    Args:
        network: takes them.
        weights: by name.
        unused: prefixes of names that are passed over.
        where: the file, for the error.

    Raises:
        InputError: names or shapes differ, or a number is not finite.
    """
    own = network.state_dict()
    given = {name: value for name, value in weights.items() if name in own or not name.startswith(unused)}
    # Old files lack the counters of batch normalisation, which evaluation does not read.
    missing = [name for name in own if name not in given and not name.endswith("num_batches_tracked")]
    faults = {
        "missing": missing,
        "not in the network": [name for name in given if name not in own],
        "of another shape": [name for name in own if name in given and own[name].shape != given[name].shape],
        "not finite": [name for name, value in given.items() if not value.isfinite().all()],
    }
    described = [f"{len(names)} {fault} ({_some(names)})" for fault, names in faults.items() if names]
    if described:
        what = f"does not fit {type(network).__name__}: {'; '.join(described)}"
        raise InputError(what, where=where, remedy="Give the architecture and arguments that it was made for.")
    network.load_state_dict(own | given)


def digest_of_weights(network: nn.Module) -> str:
    """The sha256 over names and bytes of all parameters and buffers."""
    digest = hashlib.sha256()
    for name, value in sorted(network.state_dict().items()):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.contiguous().numpy().tobytes())
    return digest.hexdigest()


def _some(names: list[str]) -> str:
    return ", ".join(sorted(names)[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
