"""Checkpoints: the state of unfinished work, in one file that is either whole or not there.

The file is the sha256 of the rest, then what `torch.save` writes. It loads with `weights_only=True`: tensors, numbers,
text, lists and dicts, never code.
"""

from __future__ import annotations

import hashlib
import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from softmax_temperature.artifacts import atomic_file

_DIGEST_BYTES = 32


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Replace the checkpoint atomically.

    Args:
        path: the file.
        state: tensors, ints, floats, strings, None, lists and dicts of these.
    """
    buffer = io.BytesIO()
    torch.save(state, buffer)
    content = buffer.getbuffer()
    with atomic_file(path) as file:
        file.write(hashlib.sha256(content).digest())
        file.write(content)


def load_checkpoint(path: Path) -> dict[str, Any] | None:
    """Read a checkpoint back.

    A damaged one is moved aside as `*.damaged` and counts as absent: the work then starts again from its beginning,
    which costs time and nothing else.

    Returns:
        The state, on the CPU, or None when there is no usable checkpoint.
    """
    if not path.is_file():
        return None
    content = path.read_bytes()
    if hashlib.sha256(content[_DIGEST_BYTES:]).digest() != content[:_DIGEST_BYTES]:
        path.replace(path.with_suffix(path.suffix + ".damaged"))
        return None
    state: dict[str, Any] = torch.load(io.BytesIO(content[_DIGEST_BYTES:]), weights_only=True, map_location="cpu")
    return state


class Checkpointer:
    """Saves the state of one piece of work, but no more often than is worth the writing.

    Epochs of the small networks here last milliseconds, and a checkpoint about as long; a state is therefore saved only
    when `seconds` have passed since the last one. With `seconds` = 0 every epoch is saved.

    Args:
        path: the file.
        seconds: the least time between two saves.
    """

    def __init__(self, path: Path, seconds: float) -> None:
        self.path, self.seconds = path, seconds
        self._saved = time.monotonic()

    def load(self) -> dict[str, Any] | None:
        """The last saved state, or None."""
        return load_checkpoint(self.path)

    def save_if_due(self, state: Callable[[], dict[str, Any]]) -> None:
        """Save what `state()` returns when enough time has passed; otherwise do not even call it."""
        if time.monotonic() - self._saved >= self.seconds:
            save_checkpoint(self.path, state())
            self._saved = time.monotonic()
