"""The JSON files below results/, read back: people merge and edit them, so they are checked for what they must hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, model_validator

from softmax_temperature.papers.shared.sources import RECORDS
from softmax_temperature.runner.reading import Form, read_json

CLAIMS, ENVIRONMENT = "claims.json", "environment.json"
_REMEDY = "Take the file from Git, or run `dvc repro`."


class _Claim(Form):
    """A row of `claims.json`, as `claims.judge_all` makes it."""

    paper: str
    id: str
    where: str
    statement: str
    criterion: str
    published: float | None
    profile: str
    value: float | None
    sd: float | None
    low: float | None
    high: float | None
    bounds: list[float] | None = None
    n: int | None
    unit: str | None
    verdict: str
    note: str

    @model_validator(mode="after")
    def _interval_is_whole(self) -> _Claim:
        if (self.low is None) != (self.high is None):
            raise ValueError("an interval has two ends, or none")
        return self


class Place(Form):
    """What the cells of a stage ran on."""

    machine: dict[str, Any]
    versions: dict[str, str]


class _Environment(Form):
    """A paper's part of `environment.json`; minutes by stage, None where they are not known."""

    machines: list[Place]
    cell_minutes: dict[str, float | None]


class _Cell(Form):
    """A row of `records.json`, as `provenance` makes it."""

    stage: str
    cell: str
    project_seed: int
    seed: int
    parameters: str
    inputs: dict[str, str]
    code: str | None
    fingerprint: str
    result: str


class _Records(Form):
    """All of `records.json`."""

    cells: list[_Cell]
    parameters: dict[str, Any]
    code: dict[str, dict[str, str]]


_CLAIMS = TypeAdapter(list[_Claim])
_ENVIRONMENTS = TypeAdapter(dict[str, _Environment])
_RECORDS = TypeAdapter(_Records)


def read_claims(folder: Path) -> list[dict[str, Any]]:
    """The rows of a paper's `claims.json`, none where there is no such file.

    Args:
        folder: of the paper's results.

    Raises:
        InputError: the file is damaged; so below.
    """
    return _read(folder / CLAIMS, _CLAIMS) or []


def read_environments(folder: Path) -> dict[str, Any]:
    """By paper, the machines and minutes in a profile's `environment.json`; nothing where there is no such file.

    Args:
        folder: of the profile's results.
    """
    return _read(folder / ENVIRONMENT, _ENVIRONMENTS) or {}


def read_provenance(folder: Path) -> dict[str, Any] | None:
    """What a paper's `records.json` holds, as `provenance` made it; None where there is no such file.

    Args:
        folder: of the paper's results.
    """
    found: dict[str, Any] | None = _read(folder / RECORDS, _RECORDS)
    return found


def _read(path: Path, form: TypeAdapter[Any]) -> Any:
    return read_json(path, form, remedy=_REMEDY) if path.is_file() else None
