"""Replacements for characters, such as arrows, that a stream's encoding lacks."""

import codecs
import io
import sys

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
    character, or an escape if there is no replacement. Otherwise `print` would raise an
    error.
    """
    codecs.register_error(PLAIN, _plain)
    for stream in (sys.stdout, sys.stderr):
        # The streams of notebooks and of some test runners are of other classes, and
        # accept all text.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=PLAIN)


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
