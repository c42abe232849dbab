"""Progress of long work, on standard error: standard output is for results."""

import sys
import time

SECONDS_BETWEEN_LINES = 5.0


def say(line: str) -> None:
    """Print a line on standard error."""
    print(line, file=sys.stderr, flush=True)


class Progress:
    """Prints at most one line in `SECONDS_BETWEEN_LINES`, the first after that time."""

    def __init__(self) -> None:
        self._last = time.monotonic()

    def __call__(self, line: str) -> None:
        """Print a line, unless it is too early."""
        now = time.monotonic()
        if now - self._last >= SECONDS_BETWEEN_LINES:
            self._last = now
            say(line)
