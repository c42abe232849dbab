"""Replacements for characters, such as arrows, that a stream's encoding lacks."""

import codecs
import io
import sys

PLAIN = "softmax-temperature-plain"  # The name under which `_plain` is registered.
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

    Standard output and standard error write a plain replacement, or an escape if there
    is none; by default `print` would raise an error.
    """
    codecs.register_error(PLAIN, _plain)
    for stream in (sys.stdout, sys.stderr):
        # A notebook's streams, and some test runners' streams, accept all text.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PLAIN)


def _plain(error: UnicodeError) -> tuple[str | bytes, int]:
    """The replacement for characters that cannot be encoded, and the next position."""
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
