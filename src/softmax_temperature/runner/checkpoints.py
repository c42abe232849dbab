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

from softmax_temperature.runner.artifacts import atomic_file, set_aside
from softmax_temperature.runner.errors import InputError

_DIGEST_BYTES = 32
_REMOVE = "Remove it: the work then starts again from its beginning."


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

    A damaged one is set aside and counts as absent: the work then starts again from its beginning, which costs time and
    nothing else.

    Returns:
        The state, on the CPU, or None when there is no usable checkpoint.

    Raises:
        InputError: the file is as it was written, but not by `save_checkpoint`, or not so that it can be read here.
    """
    if not path.is_file():
        return None
    content = path.read_bytes()
    if not _is_whole(content):
        set_aside(path)
        return None
    try:
        state = torch.load(io.BytesIO(content[_DIGEST_BYTES:]), weights_only=True, map_location="cpu")
    except Exception as error:  # A strange pickle can make torch stumble over anything.
        raise InputError(f"is no checkpoint ({type(error).__name__})", where=str(path), remedy=_REMOVE) from error
    if not isinstance(state, dict):
        raise InputError("does not hold values by name", where=str(path), remedy=_REMOVE)
    return state


def is_whole(path: Path) -> bool:
    """Whether a checkpoint is as it was saved."""
    return _is_whole(path.read_bytes())


def _is_whole(content: bytes) -> bool:
    return hashlib.sha256(content[_DIGEST_BYTES:]).digest() == content[:_DIGEST_BYTES]


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
