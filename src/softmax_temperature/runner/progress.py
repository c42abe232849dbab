"""Progress of a long piece of work, in lines on standard error, because standard output
is for results.
"""

import sys
import time

SECONDS_BETWEEN_LINES = 5.0


def say(line: str) -> None:
    """Print a line on standard error."""
    print(line, file=sys.stderr, flush=True)


class Progress:
    """Says one line in `SECONDS_BETWEEN_LINES` at most, the first after as long a time."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, line: str) -> None:
        """Say a line, unless it is too early."""
        if (now := time.monotonic()) - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            say(line)
