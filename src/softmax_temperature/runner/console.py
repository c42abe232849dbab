"""Text that programs print on standard output and standard error.

A stream's encoding may lack characters such as arrows. Standard output may be full, or
closed by a program that reads only the first lines, such as `head`.
"""

import codecs
import errno
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from softmax_temperature.runner.errors import InputError

# The exit code of a program whose reader has closed its output. Shells report the same
# code for a program that SIGPIPE ended.
CLOSED = 141
PLAIN = "softmax-temperature-plain"  # Python's codecs know `_plain` by this name.
PLAIN_TEXTS = {
    "→": "->",
    "−": "-",
    "–": "-",
    "±": "+/-",
    "×": "x",
    "…": "...",
    "≤": "<=",
    "≥": ">=",
}


def print_any_text() -> None:
    """Let `print` replace characters that the encoding of a stream lacks.

    Standard output and standard error then write a plain replacement for such a
    character, or an escape if there is no replacement. Without this, `print` would
    raise an error.
    """
    codecs.register_error(PLAIN, _plain)
    for stream in (sys.stdout, sys.stderr):
        # The streams of notebooks and of some test runners are of other classes, and
        # accept all text.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PLAIN)


class OutputClosed(Exception):
    """Raised if the program that reads standard output has closed it."""


class _Output:
    """Standard output, wrapped to tell its errors apart from those of files."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        with _output_errors():
            return self._stream.write(text)

    def flush(self) -> None:
        with _output_errors():
            self._stream.flush()


@contextmanager
def _output_errors() -> Iterator[None]:
    """Raise OutputClosed or InputError if standard output cannot be written."""
    try:
        yield
    except BrokenPipeError as error:
        raise OutputClosed from error
    except OSError as error:
        # Windows reports a closed pipe as an invalid argument.
        if os.name == "nt" and error.errno == errno.EINVAL:
            raise OutputClosed from error
        raise InputError(
            f"cannot be written ({error.strerror})",
            where="standard output",
            remedy="Free space, or send it elsewhere. Written files are complete.",
        ) from error


@contextmanager
def checked_output() -> Iterator[None]:
    """Raise one of our errors if standard output is full or closed.

    Output is flushed at the end of the block, because Python does not raise errors when
    it flushes at exit.

    Raises:
        InputError: If standard output cannot be written.
        OutputClosed: If it has been closed by its reader.
    """
    stream = sys.stdout
    if stream is None:  # The program was started without standard output.
        yield
        return
    sys.stdout = _Output(stream)
    try:
        yield
        sys.stdout.flush()
    except (InputError, OutputClosed):
        _discard_if_unwritable(stream)
        raise
    finally:
        sys.stdout = stream


def _discard_if_unwritable(stream: TextIO) -> None:
    """Discard the output buffered in `stream` if it cannot be written.

    Otherwise Python would try to write it at exit, and complain.
    """
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())


def print_error(message: str) -> None:
    """Print `message` on standard error; it is lost if that cannot be written."""
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(f"error: {message}\n")
        sys.stderr.flush()
    except OSError:
        _discard_if_unwritable(sys.stderr)


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return a replacement for the characters in `error`, and the next position."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    characters = error.object[error.start : error.end]
    texts = [
        PLAIN_TEXTS.get(
            character, character.encode("ascii", "backslashreplace").decode()
        )
        for character in characters
    ]
    return "".join(texts), error.end
