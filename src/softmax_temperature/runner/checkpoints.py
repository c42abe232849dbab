"""Checkpoints: the state of unfinished work, in one file that is either whole or
absent.

The file is the sha256 of the rest, followed by what `torch.save` writes. It is loaded
with `weights_only=True`: tensors, numbers, text, lists and dicts, never code.
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

_DIGEST_BYTES = 32
_LEAST_RATIO = 20  # At most a twentieth of the time goes into saving.


class Checkpointer:
    """Saves the state of a cell at most every `seconds`, and less often if saving takes
    long; 0 saves every state.
    """

    def __init__(self, path: Path, seconds: float) -> None:
        self.path, self.seconds = path, seconds
        self._due = time.monotonic() + seconds

    def load(self) -> dict[str, Any] | None:
        """The last saved state (of process 0), on the CPU, or None; a file that was
        damaged since is set aside.
        """
        if self.path.is_file():
            content = self.path.read_bytes()
            if (
                hashlib.sha256(content[_DIGEST_BYTES:]).digest()
                == content[:_DIGEST_BYTES]
            ):
                state = torch.load(
                    io.BytesIO(content[_DIGEST_BYTES:]),
                    weights_only=True,
                    map_location="cpu",
                )
                return dict(agreed(state))
            set_aside(self.path)
        return agreed(None)

    def save_if_due(self, state: Callable[[], dict[str, Any]]) -> None:
        """Save what `state()` returns, tensors and plain values, when enough time has
        passed; else do not call it.
        """
        began, buffer = time.monotonic(), io.BytesIO()
        if began < self._due:
            return
        torch.save(state(), buffer)
        with atomic_file(self.path) as file:
            file.write(hashlib.sha256(buffer.getbuffer()).digest())
            file.write(buffer.getbuffer())
        now = time.monotonic()
        self._due = (
            now + max(self.seconds, _LEAST_RATIO * (now - began))
            if self.seconds
            else now
        )
