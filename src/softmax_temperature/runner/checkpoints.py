"""Checkpoints: the state of unfinished work, in one file that is either whole or absent.

The file is the sha256 of the rest, followed by what `torch.save` writes. It is loaded with `weights_only=True`:
tensors, numbers, text, lists and dicts, never code.
"""

import hashlib
import io
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from softmax_temperature.runner.artifacts import atomic_file, set_aside
from softmax_temperature.runner.distributed import agreed
from softmax_temperature.runner.errors import InputError

_DIGEST_BYTES = 32
_REMOVE = "Remove it: the work then starts again from its beginning."
_LEAST_RATIO = 20
"""At most a twentieth of the time goes into saving."""


def save_checkpoint(path: Path, state: dict[str, Any]) -> None:
    """Replace the checkpoint atomically; the state consists of tensors, numbers, strings, None, lists and dicts."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    with atomic_file(path) as file:
        file.write(hashlib.sha256(buffer.getbuffer()).digest())
        file.write(buffer.getbuffer())


def load_checkpoint(path: Path) -> dict[str, Any] | None:
    """Read a checkpoint back, onto the CPU; None if there is none, or a damaged one, which is set aside."""
    if not path.is_file() or not is_whole(path):
        return None
    try:
        content = io.BytesIO(path.read_bytes()[_DIGEST_BYTES:])
        state = torch.load(content, weights_only=True, map_location="cpu")
    except Exception as error:  # Foreign pickles make torch raise anything.
        raise InputError(f"is no checkpoint ({type(error).__name__})", where=str(path), remedy=_REMOVE) from error
    if not isinstance(state, dict):
        raise InputError("does not hold values by name", where=str(path), remedy=_REMOVE)
    return state


def is_whole(path: Path) -> bool:
    """Whether a checkpoint is as it was saved; a damaged one is set aside."""
    content = path.read_bytes()
    whole = hashlib.sha256(content[_DIGEST_BYTES:]).digest() == content[:_DIGEST_BYTES]
    if not whole:
        set_aside(path)
    return whole


class Checkpointer:
    """Saves the state of a cell at most every `seconds`, and less often if saving takes long; 0 saves every state."""

    def __init__(self, path: Path, seconds: float) -> None:
        self.path, self.seconds = path, seconds
        self._due = time.monotonic() + seconds

    def load(self) -> dict[str, Any] | None:
        """The last saved state, or None; that of process 0, if several train together."""
        state: dict[str, Any] | None = agreed(load_checkpoint(self.path))
        return state

    def save_if_due(self, state: Callable[[], dict[str, Any]]) -> None:
        """Save what `state()` returns when enough time has passed; otherwise do not even call it."""
        began = time.monotonic()
        if began >= self._due:
            save_checkpoint(self.path, state())
            now = time.monotonic()
            self._due = now + max(self.seconds, _LEAST_RATIO * (now - began)) if self.seconds else now
