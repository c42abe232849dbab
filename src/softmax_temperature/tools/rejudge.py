"""Writing the tables and verdicts of results anew from their records, where no data is at hand."""

from collections.abc import Sequence
from typing import NamedTuple

from softmax_temperature.papers.shared.records import write_derived
from softmax_temperature.papers.shared.results import CLAIMS, PAPERS, RESULTS, read_json
from softmax_temperature.runner.errors import InputError, nearest


class Change(NamedTuple):
    """A claim whose verdict changed; `before` or `after` is None where the claim was not there."""

    profile: str
    paper: str
    claim: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        return f"{self.profile}/{self.paper}, {self.claim}: {self.before or 'no claim'} -> {self.after or 'no claim'}"


def rejudge(profiles: Sequence[str] = ()) -> list[Change]:
    """Write tables, claims and metrics below results/ anew, of some profiles or of all; returns the changed verdicts.

    The deviations of a study stay as they are: they are those of the code that ran.
    """
    folders = sorted(path.parent for path in RESULTS.glob("*/*/" + CLAIMS) if path.parent.name in PAPERS)
    known = {folder.parent.name for folder in folders}
    if not known:
        raise InputError("holds no results", where=str(RESULTS), remedy="Run this in the project's root folder.")
    for profile in profiles:
        if profile not in known:
            raise InputError(f"no results of {profile!r}", where=str(RESULTS), remedy=nearest(profile, known))
    changes: list[Change] = []
    for folder in folders:
        profile, paper = folder.parent.name, folder.name
        if profiles and profile not in profiles:
            continue
        before = {row["id"]: row["verdict"] for row in read_json(folder / CLAIMS)}
        after = {row["id"]: row["verdict"] for row in write_derived(folder, paper, profile)}
        found = [Change(profile, paper, claim, before.get(claim), after.get(claim)) for claim in {**after, **before}]
        changes += [change for change in found if change.before != change.after]
    return changes
