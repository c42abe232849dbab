"""Checkpoints: the state of unfinished work in a file that is complete or absent.

The file holds a sha256, followed by the bytes that it covers, which are the output of
`torch.save`. The file is loaded with `weights_only=True`, which admits tensors,
numbers, text, lists and dicts, but never runs code.
"""

import hashlib
import io
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from softmax_temperature.runner.artifacts import ArtifactError, atomic_file, set_aside
from softmax_temperature.runner.distributed import agreed
from softmax_temperature.runner.errors import is_out_of_memory

_DIGEST_BYTES = 32
# The minimum ratio of the time between two saves to the time that a save takes, so that
# saving takes at most about a twentieth of the run's time.
_LEAST_RATIO = 20


class UnusableCheckpoint(ArtifactError):
    """Raised if a cell cannot use its checkpoint, although the file is complete.

    The checkpoint has then been set aside.
    """


class Checkpointer:
    """Saves the state of a cell at most once every `seconds` seconds.

    The state is saved less often if saving takes long. If `seconds` is 0, every state
    is saved.
    """

    def __init__(self, path: Path, seconds: float) -> None:
        self.path = path
        self.seconds = seconds
        self._due = time.monotonic() + seconds

    def load(self) -> dict[str, Any] | None:
        """Load the last state that process 0 saved, on the CPU; None if there is none.

        A damaged file is set aside, and None is returned. An undamaged file that cannot
        be loaded, for instance in another version of torch, is also set aside, but
        raises UnusableCheckpoint.
        """
        if self.path.is_file():
            content = self.path.read_bytes()
            digest = content[:_DIGEST_BYTES]
            saved = content[_DIGEST_BYTES:]
            if hashlib.sha256(saved).digest() == digest:
                with self._usable():
                    state = torch.load(
                        io.BytesIO(saved), weights_only=True, map_location="cpu"
                    )
                return dict(agreed(state))
            set_aside(self.path)
        return agreed(None)

    def resume(self, restore: Callable[[dict[str, Any]], None]) -> None:
        """Call `restore` with the last saved state, if there is one.

        If `restore` fails, the file is set aside and UnusableCheckpoint is raised.
        """
        state = self.load()
        if state is not None:
            with self._usable():
                restore(state)

    @contextmanager
    def _usable(self) -> Iterator[None]:
        try:
            yield
        # If the saved state does not fit, torch and the callbacks can raise any
        # exception.
        except Exception as error:
            if is_out_of_memory(error):
                raise
            set_aside(self.path)
            raise UnusableCheckpoint(
                f"cannot be restored ({type(error).__name__}: {error})",
                self.path,
                remedy="The file was set aside, and its cell starts over.",
            ) from error

    def save_if_due(self, state: Callable[[], dict[str, Any]]) -> None:
        """Save the tensors and plain values of `state()`, if enough time has passed."""
        began = time.monotonic()
        if began < self._due:
            return
        buffer = io.BytesIO()
        torch.save(state(), buffer)
        with atomic_file(self.path) as file:
            file.write(hashlib.sha256(buffer.getbuffer()).digest())
            file.write(buffer.getbuffer())
        now = time.monotonic()
        self._due = now
        if self.seconds:
            self._due += max(self.seconds, _LEAST_RATIO * (now - began))
