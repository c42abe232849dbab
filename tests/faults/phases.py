"""Where in its run a stage of `work.py` was when it was killed."""

from __future__ import annotations

from pathlib import Path

from tests.faults import work
from tests.faults.victims import Victim, progress

START = "before any step"
WITHIN = "within"
BETWEEN = "between two cells"
END = "after the last step"


def phase(folder: Path, stage: str, victim: Victim) -> str:
    """The phase in which a victim that is gone has left its project.

    Returns:
        START: no cell of this run did a step. WITHIN, and the cells' names. BETWEEN. END: cells that did all their
        steps are sealed, results are published, the program ends.
    """
    fresh = progress(folder, since=victim.began)
    at_work = {place: done for place, done in fresh.items() if not (place / "result").exists()}
    if not fresh:
        return START
    if within := [place for place, done in at_work.items() if done < work.STEPS_OF_A_CELL[stage]]:
        return f"{WITHIN} {' and '.join(sorted(place.parent.name for place in within))}"
    return END if steps(folder) == work.CELLS * work.STEPS_OF_A_CELL[stage] else BETWEEN


def steps(folder: Path) -> int:
    """How many steps all cells have behind them."""
    return sum(progress(folder).values())
