"""The register of claims, and checks that the claims still match it.

`data/registered_claims.csv` has one row per claim and study, and one more for each
later change: rows are added, never edited. A row holds the digest of the design
(statement, criterion, contrast, study, looks and n) and the result that the design gave
when the row was added. A change in an estimator's code does not change the digest, but
it can change the result. Every row needs a line in docs/protocol_history.md that names
the claim and the digest, with two exceptions: the first row of a claim and study, and
the row that adds the first result of a registered design.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from softmax_temperature.papers.shared.factors import Condition, Where
from softmax_temperature.runner.artifacts import canonical_json, digest_of_text

if TYPE_CHECKING:
    from softmax_temperature.papers.shared.claims import Claim

REGISTERED = Path("data/registered_claims.csv")
COLUMNS = ("paper", "claim", "study", "n", "looks", "digest", "result")
KEY = ["paper", "claim", "study"]
Row = Mapping[str, Any]
WITHDRAWN = "withdrawn"
"""The digest entry of a claim that was withdrawn, or is no longer judged in a study."""
REGISTERED_AS = "registered_as"
"""Metadata key for the name that a field has in digests.

If a field is renamed after claims were registered, the value is its original name, so
that the digests of these claims do not change.
"""
_DIGITS = 12


def design_digest(claim: Claim, study: str) -> str:
    """One digest over everything that must not change after registration.

    The number of values that a study has is not part of the digest: the register has a
    column for it. Only the planned number, the claim's `n`, is part of the digest.
    """
    design = {
        "claim": claim.id,
        "statement": claim.statement,
        "compares": claim.compares,
        "criterion": described(claim.criterion),
        "contrast": described(claim.contrast),
        "study": study,
        "primary": claim.primary == study,
        "looks": claim.looks_at(study),
        "n": claim.n.get(study),
    }
    # Few claims have the field `looks_of_parts`. An empty entry would change the
    # digests of the other claims.
    if study in claim.looks_of_parts:
        design["looks_of_parts"] = described(claim.looks_of_parts[study])
    return digest_of_text(canonical_json(design))[:_DIGITS]


def counts_text(counts: Sequence[int]) -> str:
    """Join the numbers in `counts`; if all are equal, return one of them as text."""
    distinct = list(dict.fromkeys(counts))
    return ", ".join(map(str, counts if len(distinct) > 1 else distinct))


@functools.singledispatch
def described(value: Any) -> Any:
    """Describe a value as JSON that depends only on the value's content.

    A function is represented by its name and the values in its closure, a predicate by
    the function that selects its rows, and a condition by its words. Fields with their
    default value are left out, so that adding a field to a class changes no digest. A
    renamed field appears under its `REGISTERED_AS` name.

    Raises:
        TypeError: If a value of this type has no description.
    """
    if not is_dataclass(value) or isinstance(value, type):
        raise TypeError(f"cannot describe a {type(value).__name__}: {value!r}")
    described_fields = {
        field.metadata.get(REGISTERED_AS, field.name): described(
            getattr(value, field.name)
        )
        for field in fields(value)
        if not _is_default(field, getattr(value, field.name))
    }
    return {"kind": type(value).__name__, **described_fields}


@described.register(bool)
@described.register(int)
@described.register(str)
@described.register(types.NoneType)
def _(value: Any) -> Any:
    return value


@described.register
def _(value: float) -> str:
    return f"{value:.9g}"


@described.register(list)
@described.register(tuple)
def _(value: Sequence[Any]) -> list[Any]:
    return [described(item) for item in value]


@described.register(Mapping)
def _(value: Mapping[Any, Any]) -> list[Any]:
    return [[str(key), described(item)] for key, item in value.items()]


@described.register
def _(value: types.FunctionType) -> list[Any]:
    cells = [cell.cell_contents for cell in value.__closure__ or ()]
    return [value.__qualname__, *map(described, cells)]


@described.register
def _(value: Where) -> Any:
    # Leave out the words of a predicate, which may be changed without changing the
    # selection.
    return described(value.mask)


@described.register
def _(value: Condition) -> str:
    return value.text


def _is_default(field: Field[Any], value: Any) -> bool:
    if field.default is not MISSING:
        return bool(value == field.default)
    if field.default_factory is not MISSING:
        return bool(value == field.default_factory())
    return False


def result_text(row: Mapping[str, Any]) -> str:
    """The verdict and the numbers of a row of `claims.json`; "" if it has none."""
    if row["value"] is None:
        return ""
    numbers = [row["value"], row["low"], row["high"]]
    value, *ends = [f"{number:.4g}" for number in numbers if number is not None]
    interval = f" [{', '.join(ends)}]" if ends else ""
    return f"{row['verdict']} {value}{interval}"


def current_row(claim: Claim, paper: str, study: str, row: Row | None) -> Row:
    """The current state of a claim in a study, in the columns of the register.

    Args:
        claim: The claim.
        paper: The claim's paper.
        study: The study.
        row: The row of `claims.json`; None if the study has not run.
    """
    planned = claim.n.get(study)
    n = "" if planned is None else str(planned)
    return {
        "paper": paper,
        "claim": claim.id,
        "study": study,
        "n": (counts_text(row["counts"]) if row else "") or n,
        "looks": _looks_text(claim, study),
        "digest": design_digest(claim, study),
        "result": result_text(row) if row else "",
    }


def _looks_text(claim: Claim, study: str) -> str:
    """Describe the number of looks at `study`, and at each part with more looks."""
    more = claim.looks_of_parts.get(study, {})
    texts = [f"{name}: {count}" for name, count in more.items()]
    return "; ".join([str(claim.looks_at(study)), *texts])


def registered(root: Path = Path()) -> pd.DataFrame:
    """All rows of the register in the file's order; empty if there is no register."""
    path = root / REGISTERED
    if not path.is_file():
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.read_csv(path, dtype=str, keep_default_na=False)


def changed(register: pd.DataFrame, now: pd.DataFrame) -> pd.DataFrame:
    """The rows to add to the register, for new, changed and withdrawn claims.

    Args:
        register: The rows of the register.
        now: The current rows from `current_row`, one per claim and study.
    """
    last = register.drop_duplicates(KEY, keep="last").set_index(KEY)
    missing: list[dict[Any, Any]] = []
    for row in now.to_dict("records"):
        key = tuple(row[name] for name in KEY)
        latest = last.loc[key] if key in last.index else None
        if latest is None or any(latest[name] != row[name] for name in last.columns):
            missing.append(row)
    present = set(map(tuple, now[KEY].to_numpy().tolist()))
    for gone in last.reset_index().to_dict("records"):
        key = tuple(gone[name] for name in KEY)
        if key not in present and gone["digest"] != WITHDRAWN:
            named: dict[Any, Any] = dict(zip(KEY, key, strict=True))
            missing.append({**named, "digest": WITHDRAWN})
    table = pd.DataFrame(missing, columns=list(COLUMNS), dtype=object)
    return table.fillna("")


def needing_history(register: pd.DataFrame) -> pd.DataFrame:
    """The rows that need a line in docs/protocol_history.md.

    All rows need one, with two exceptions: the first row of a claim and study, and the
    row that adds the first result of a registered design.
    """
    needing = []
    for _, rows in register.groupby(KEY, sort=False):
        before = rows.shift()
        is_later = before["digest"].notna()
        is_first_result = (
            (before["result"] == "")
            & ((before["n"] == rows["n"]) | (before["n"] == ""))
            & (before["digest"] == rows["digest"])
        )
        needing.append(rows[is_later & ~is_first_result])
    return pd.concat(needing) if needing else register
