"""What has to be read with a number: what was lost on the way to it, and where Cooling did nothing or nothing new."""

from __future__ import annotations

from typing import TYPE_CHECKING

from softmax_temperature.papers.cooling.outcomes import lost_in
from softmax_temperature.papers.cooling.selection import MODES, RUN

if TYPE_CHECKING:
    import pandas as pd

    from softmax_temperature.papers.cooling.records import Records


def joined(*notes: str) -> str:
    """The notes that say something, in one line."""
    return "; ".join(filter(None, notes))


def lost_by_mode(rows: pd.DataFrame, *modes: str) -> str:
    """How many trainings of some modes are lost, for instance "Last layer 1 of 3 diverged"; nothing if none is."""
    parts = []
    for mode in modes:
        some = rows[rows["mode"] == mode]
        if lost := lost_in(some):
            parts.append(f"{MODES[mode]} {lost}")
    return ", ".join(parts)


def guessing_note(rows: pd.DataFrame, *modes: str, counted: str = "guessing") -> str:
    """The same, for a number in which they count as guessing, or as what is said."""
    lost = lost_by_mode(rows, *modes)
    return f"counted as {counted}: {lost}" if lost else ""


def bound_note(records: Records, rows: pd.DataFrame) -> str:
    """In how many Coolings of some trainings there was no best temperature; nothing if there always was one."""
    at_bound = rows[RUN].merge(records.temperatures, on=RUN)["at_bound"]
    count = int(at_bound.sum())
    return f"Cooling did nothing, for want of a best temperature, {count} of {len(at_bound)} times" if count else ""
