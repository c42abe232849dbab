"""The folder `results/`: files of each profile and paper, and the claims in them."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from softmax_temperature.papers.shared.claims import (
    CONTRADICTED,
    DIRECTIONS_ONLY,
    HOLDS,
    INCONCLUSIVE,
    NOT_TESTED,
    Judged,
    texts,
)
from softmax_temperature.papers.shared.display import in_sentence
from softmax_temperature.params import Paper
from softmax_temperature.runner.errors import InputError

PAPERS: tuple[str, ...] = get_args(Paper)
RESULTS = Path("results")
PARAMETERS = "params.yaml"
CLAIMS = "claims.json"
ENVIRONMENT = "environment.json"
# The name of a folder next to the papers' folders. It holds one list per paper: the
# files that the report shows.
SHOWN = "shown"
ARCHIVED = ("cifar10_cpu_cooling",)
"""Studies that no profile declares any more. We keep them as evidence."""
PILOTS = ("focal_pilot",)
"""Profiles that only help to choose a network for a study. Their verdicts do not count
for any claim.
"""
STUDIES = {
    "cifar10_cpu_cooling": "Cooling on CIFAR-10, 10,000 images, the whole width; "
    "no profile runs it any more",
    "collection": "inverse temperatures of a cosine classifier, 21 data sets",
    "cooling_ablations": "Cooling with other optimizers and weight decay, CIFAR-10, "
    "10,000 images, half of the network's width",
    "cooling_cifar10": "Cooling on CIFAR-10, 10,000 images, half of the network's "
    "width; segmentation of CamVid",
    "cooling_full": "Cooling on all of CIFAR-10, as printed, without a schedule",
    "focal_cifar10": "focal loss on CIFAR-10, 10,000 images",
    "focal_cifar100": "focal loss on CIFAR-100, 16,000 images",
    "focal_full": "focal loss on all of CIFAR-10",
    "temperature_check": "inverse temperatures and logit norms, CIFAR-10, 10,000 "
    "images, and IMDb, 9,000 texts",
    "text": "focal loss on 20 Newsgroups, SST and IMDb, 9,000 texts",
    "translation_multi30k": "focal loss for a Transformer, Multi30k",
}
"""A description of each study in words."""
TITLES = {
    "classifier_temperature": "Fine-tune your classifier",
    "focal": "Calibrating deep neural networks using focal loss",
    "cooling": "How to keep cool while training",
    "temperature_check": "Temperature check",
}
"""The papers' names, without their subtitles."""
STAND_IN = "on stand-in data"
_OPPOSITE = {HOLDS: CONTRADICTED, CONTRADICTED: HOLDS}

Row = dict[str, Any]


@dataclass(frozen=True)
class Evidence:
    """The result of one study for one claim, and the results of the other studies.

    For the scorecard, the one study is the claim's primary study. For a page about a
    study or a profile (see `in_study` and `alone`), it is the study or the profile
    itself.

    Attributes:
        primary: The one study's row of `claims.json`.
        others: The rows of the other studies.
    """

    primary: Row
    others: tuple[Row, ...]

    @property
    def disputed_by(self) -> list[str]:
        """The names of the other studies whose verdict is the opposite of `primary`'s.

        "holds" and "contradicted" are opposites; the other verdicts have no opposite.
        """
        opposite = _OPPOSITE.get(self.primary["verdict"])
        return [row["profile"] for row in self.others if row["verdict"] == opposite]

    @property
    def sides(self) -> list[Row]:
        """The rows of the studies that tested the claim, the primary study first."""
        rows = [self.primary, *self.others]
        tested = [row for row in rows if row["verdict"] != NOT_TESTED]
        return sorted(tested, key=lambda row: row["profile"] != row["primary"])

    @property
    def is_tested(self) -> bool:
        """Whether any study tested the claim."""
        return bool(self.sides)

    @property
    def counted_as(self) -> str:
        """The category in which a tally counts the claim."""
        verdict = str(self.primary["verdict"])
        if self.primary["stand_in"] and verdict != NOT_TESTED:
            return STAND_IN
        if verdict not in _OPPOSITE:
            return verdict
        if self.disputed_by:
            return "disputed"
        return "hold" if verdict == HOLDS else verdict


def study_label(study: str) -> str:
    """The name of a study, marked if it is archived."""
    return f"{study} (archived)" if study in ARCHIVED else study


def study_in_words(study: str) -> str:
    """The name of a study and, if it has one, its description, for a sentence."""
    return f"{study}: {STUDIES[study]}" if study in STUDIES else study


def paper_folder(profile: str, paper: str) -> Path:
    """The folder of one paper's results in one profile."""
    return RESULTS / profile / paper


def read_json(path: Path) -> Any:
    """The content of a JSON file, or None if there is no such file."""
    if not path.is_file():
        return None
    return json.loads(path.read_text(encoding="utf-8"))


def profiles_with_results(results: Path = RESULTS) -> list[str]:
    """Sorted names of the profiles that have claims of at least one paper.

    Raises:
        InputError: If there are none.
    """
    profiles = sorted({path.parts[-3] for path in results.glob(f"*/*/{CLAIMS}")})
    if not profiles:
        raise InputError(
            "no results of any paper",
            where=str(results),
            remedy="Run `dvc repro` in the root folder.",
        )
    return profiles


def studies_with_results(results: Path = RESULTS) -> list[str]:
    """Sorted names of the studies that have results.

    The profiles in `DIRECTIONS_ONLY` are not studies, and neither are pilots.
    """
    excluded = (*DIRECTIONS_ONLY, *PILOTS)
    profiles = profiles_with_results(results)
    return [profile for profile in profiles if profile not in excluded]


def evidence(results: Path = RESULTS) -> dict[str, list[Evidence]]:
    """Read the claims of each paper, with their rows in all studies.

    Each paper's claims are sorted as in `ranked`.
    """
    studies = studies_with_results(results)
    by_paper: dict[str, list[Evidence]] = {}
    for paper in PAPERS:
        claims: dict[str, list[Row]] = {}
        for study in studies:
            for row in read_json(results / study / paper / CLAIMS) or []:
                claims.setdefault(row["id"], []).append(row)
        by_paper[paper] = ranked(map(of_claim, claims.values()))
    return by_paper


def of_claim(rows: Sequence[Row]) -> Evidence:
    """Split the rows of one claim into the primary study's row and the others.

    If the primary study has not run, a row for it is made from another study's row.
    """
    primaries = [row for row in rows if row["profile"] == row["primary"]]
    others = [row for row in rows if row["profile"] != row["primary"]]
    primary = primaries[0] if primaries else _not_run(rows[0])
    return Evidence(primary, tuple(others))


def in_study(rows: Sequence[Row], claims: Iterable[Evidence]) -> list[Evidence]:
    """The claims as one study judges them, with the rows of all other studies.

    Args:
        rows: The study's rows of `claims.json`.
        claims: The same claims in all studies, from `evidence`.
    """
    rows_of_claim: dict[str, list[Row]] = {}
    for claim in claims:
        rows_of_claim[claim.primary["id"]] = [claim.primary, *claim.others]
    return [
        Evidence(
            row,
            tuple(
                other
                for other in rows_of_claim.get(row["id"], ())
                if other["profile"] != row["profile"]
            ),
        )
        for row in rows
    ]


def alone(row: Row) -> Evidence:
    """The evidence of one study alone: its `row`, without rows of other studies."""
    return Evidence(row, ())


def texts_in_words(row: Row) -> dict[str, str]:
    """The texts of a row, with words for names of data sets, networks and the like.

    The names are replaced in the texts "ours" and "note". `claims.json` itself has the
    names that the parameters use.
    """
    row_texts = texts(row)
    return {
        **row_texts,
        **{part: in_sentence(row_texts[part]) for part in ("ours", "note")},
    }


def _not_run(row: Row) -> Row:
    """Make the row of a primary study that has not run from another study's `row`."""
    study = row["primary"]
    empty = Judged(note=f"its primary study, {study}, has not been run").row()
    stands = {"profile": study, "stand_in": None, "looks": 1}
    return {**row, **empty, **stands}


def ranked(claims: Iterable[Evidence]) -> list[Evidence]:
    """The `claims`, sorted: decided ones first, then inconclusive, then untested ones.

    Claims of the same rank keep their order.
    """
    order = {HOLDS: 0, CONTRADICTED: 0, INCONCLUSIVE: 1, NOT_TESTED: 2}
    return sorted(claims, key=lambda claim: order[claim.primary["verdict"]])


def tally(claims: Iterable[Evidence]) -> str:
    """Count the claims with each verdict, as in "5 hold, 2 inconclusive".

    Disputed verdicts, verdicts on stand-in data and claims of our own derivation are
    counted separately, because none of them decides a claim of the paper.
    """
    of_paper: Counter[str] = Counter()
    derived: Counter[str] = Counter()
    for claim in claims:
        counts = derived if claim.primary["derived"] else of_paper
        counts[claim.counted_as] += 1
    texts = [_counts(of_paper)]
    if derived:
        texts.append(f"of our own derivations: {_counts(derived)}")
    return "; ".join(filter(None, texts))


_COUNTED = ("hold", CONTRADICTED, "disputed", INCONCLUSIVE, STAND_IN, NOT_TESTED)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{counts[name]} {name}" for name in _COUNTED if name in counts)
