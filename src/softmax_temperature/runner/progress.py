"""Progress of a long piece of work, in lines on standard error."""

import sys
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

SECONDS_BETWEEN_LINES = 5.0


def say(line: str) -> None:
    """Print a line on standard error, because standard output is for results."""
    print(line, file=sys.stderr, flush=True)


@contextmanager
def watching(title: str, folders: Mapping[str, Path], finished: Collection[str]) -> Iterator[None]:
    """Show how many cells have finished, and how far the others are, until the block ends.

    `folders` are the cells' own, where a file `progress` says "done/total"; the block adds to `finished` the names of
    cells that have ended.
    """
    stop = threading.Event()

    def watch() -> None:
        said, ended = "", False
        while not ended:
            ended = stop.wait(SECONDS_BETWEEN_LINES)
            if (line := _status(title, folders, finished)) != said:
                said = line
                say(line)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _status(title: str, folders: Mapping[str, Path], finished: Collection[str]) -> str:
    running = []
    for name, path in ((name, folder / "progress") for name, folder in folders.items() if name not in finished):
        if path.is_file() and time.time() - path.stat().st_mtime < 60:  # This run wrote it, not an earlier one.
            running.append(f"{name} {path.read_text()}")
    return f"{title}: {len(finished)}/{len(folders)} cells" + (f" ({', '.join(running)})" if running else "")
