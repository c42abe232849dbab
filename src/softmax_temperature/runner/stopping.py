"""Stopping on SIGINT or SIGTERM: a program stops at once, but a cell that it runs comes to a checkpoint first.

A program raises `Stopped` where it is. While a cell runs in the process that gets the signal, the signal is put off:
the next time the cell offers a state to save, it is saved and the cell ends. It has `PATIENCE` seconds to come to that:
an epoch that lasts longer began with a checkpoint.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
PATIENCE = 10.0  # As long as others wait between SIGTERM and SIGKILL.
_SOON = 0.001
_AGAIN = 1.0
"""Seconds. An exception that is raised while an object is being deleted is lost, so it is raised again."""


class Stopped(BaseException):
    """A signal asked this program to end.

    Attributes:
        number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Let SIGINT and SIGTERM raise `Stopped` in this block.

    SIGINT does so each time, for who cannot wait; a second SIGTERM may come from whoever saw the first, as when all
    processes of a group are sent one.
    """

    def stop(number: int, _: FrameType | None) -> None:
        if number == signal.SIGTERM:
            signal.signal(number, signal.SIG_IGN)
        raise Stopped(number)

    with _handlers(stop):
        yield


class Stop(BaseException):
    """What a cell knows of a signal that was put off; raised to end the cell.

    Attributes:
        number: of the signal, or None.
        waits: whether the cell saves checkpoints, so that there is something to wait for.
    """

    def __init__(self) -> None:
        super().__init__()
        self.number: int | None = None
        self.waits = False


@contextmanager
def put_off(patience: float) -> Iterator[Stop]:
    """Put SIGINT and SIGTERM off while a cell runs; the one that came takes its effect at the end of the block.

    A signal that this process ignores stays ignored.

    Args:
        patience: seconds that a cell has from the signal to its next checkpoint.

    Yields:
        What the cell raises when it has saved one.
    """
    stop, alarm_before = Stop(), signal.getsignal(signal.SIGALRM)

    def note(number: int, _: FrameType | None) -> None:
        if stop.number is None:
            stop.number = number
            signal.signal(signal.SIGALRM, give_up)
            signal.setitimer(signal.ITIMER_REAL, max(_SOON, patience * stop.waits), _AGAIN)
        elif number == signal.SIGINT:
            raise stop

    def give_up(*_: object) -> None:
        raise stop

    try:
        with _handlers(note):
            try:
                yield stop
            finally:
                if stop.number is not None:
                    signal.setitimer(signal.ITIMER_REAL, 0)
    except Stop:
        pass
    finally:
        if stop.number is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)  # It may have come when the cell had just ended.
            signal.signal(signal.SIGALRM, alarm_before)
            signal.raise_signal(stop.number)


@contextmanager
def held_back() -> Iterator[None]:
    """Let a signal take its effect at the end of this block: for libraries through which no exception passes."""
    came: list[int] = []
    try:
        with _handlers(lambda number, _: came.append(number)):
            yield
    finally:  # Also where the block fails, perhaps because others were sent that signal too.
        if came:
            signal.raise_signal(came[0])


@contextmanager
def _handlers(handler: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Handle the signals in this block, unless this process ignores them; only a main thread can."""
    here = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in SIGNALS if here}
    replaced = {number: old for number, old in before.items() if old not in (None, signal.SIG_IGN)}
    for number in replaced:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, old in replaced.items():
            signal.signal(number, old)
