"""Views of a study: what a notebook shows, checked before the notebook is executed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from softmax_temperature.papers.shared.factors import Where
from softmax_temperature.papers.shared.files import read_csv
from softmax_temperature.papers.shared.results import CLAIMS, RESULTS
from softmax_temperature.papers.shared.runs import FACTORS, RUNS_FILE
from softmax_temperature.papers.shared.statistics import LEVEL
from softmax_temperature.params import Params
from softmax_temperature.runner.errors import InputError, nearest

SECTION = "notebooks"

Arm = Mapping[str, Any]
"""The value of each factor, as in `params.notebooks.Arm`."""


@dataclass(frozen=True)
class View:
    """The parameters of a paper's notebook, which determine what the notebook shows.

    Attributes:
        study: The name of the study, and of its folder in `results/`.
        level: The level of the intervals of claims whose data were looked at once.
        arms: The factors of the runs to show; all runs if empty.
        beside: A second study whose claims and tables are shown too, or None.
    """

    study: str
    level: float = LEVEL
    arms: Sequence[Arm] = ()
    beside: str | None = None

    def parameters(self) -> dict[str, Any]:
        """The parameters that papermill passes to the notebook."""
        return {**asdict(self), "arms": [dict(arm) for arm in self.arms]}


def view_of(params: Params, paper: str, *, results: Path = RESULTS) -> View:
    """The view that the parameters ask for.

    If the second study has no results of `paper`, the first study is shown alone.

    Raises:
        InputError: If a study is unknown, the first study has no results of the paper,
            or an arm names an unknown factor or selects no run.
    """
    section = params.notebooks
    _require_known(params, results)
    folder = results / section.study / paper
    if not (folder / CLAIMS).is_file():
        raise _lacks(section.study, paper, results)
    arms = section.arms.get(paper, ())
    _require_runs(arms, folder / RUNS_FILE, paper)
    beside = section.beside
    if beside is not None and not (results / beside / paper / CLAIMS).is_file():
        beside = None
    return View(section.study, section.level, arms, beside)


def require_studies(params: Params, *, results: Path = RESULTS) -> None:
    """Check the studies of the section `notebooks`, without reading their runs.

    The profile's own results need not exist yet.

    Raises:
        InputError: If a study has no results at all, or the first study has no results
            of a paper in `papers`.
    """
    section = params.notebooks
    _require_known(params, results)
    if section.study == params.profile:
        return
    for paper in params.papers:
        if not (results / section.study / paper / CLAIMS).is_file():
            raise _lacks(section.study, paper, results)


def _require_known(params: Params, results: Path) -> None:
    """Raise an `InputError` if a study other than the profile's own has no results."""
    section = params.notebooks
    studies = sorted({path.parts[-3] for path in results.glob(f"*/*/{CLAIMS}")})
    for key, study in (("study", section.study), ("beside", section.beside)):
        if study is not None and study not in {*studies, params.profile}:
            raise InputError(
                f"unknown study {study!r}",
                where=f"params.yaml: {SECTION}.{key}",
                remedy=nearest(study, studies),
            )


def _lacks(study: str, paper: str, results: Path) -> InputError:
    having = sorted(path.parts[-3] for path in results.glob(f"*/{paper}/{CLAIMS}"))
    return InputError(
        f"study {study!r} has no results of {paper}",
        where=f"params.yaml: {SECTION}.study",
        remedy=(
            f"These have: {', '.join(having) or 'none yet'}. To show one paper of a "
            "study, run `dvc repro -s notebook@PAPER`."
        ),
    )


def _require_runs(arms: Sequence[Arm], path: Path, paper: str) -> None:
    """Raise an `InputError` if an arm selects no run or names an unknown factor.

    Args:
        arms: The arms.
        path: The file of runs.
        paper: The paper's slug, for the message.
    """
    if not arms:
        return
    table = read_csv(path)
    factors = [name for name in FACTORS if name in table]
    for place, arm in enumerate(arms):
        where = f"params.yaml: {SECTION}.arms.{paper}.{place}"
        for name in arm:
            if name not in factors:
                raise InputError(
                    f"unknown factor {name!r}",
                    where=where,
                    remedy=nearest(name, factors),
                )
        if not of_arms([arm]).mask(table).any():
            raise InputError(
                f"no run has {_words(arm)}",
                where=where,
                remedy=_values(table, arm),
            )


def _words(arm: Arm) -> str:
    return ", ".join(f"{name} {value}" for name, value in arm.items())


def _values(table: pd.DataFrame, arm: Arm) -> str:
    """Say which values the runs in `table` have for each factor of `arm`.

    At most 12 values of a factor are listed.
    """
    texts = []
    for name in arm:
        values = list(dict.fromkeys(map(str, table[name].dropna())))
        texts.append(f"{name} is {', '.join(values[:12])}")
    return f"In the runs of this study {'; '.join(texts)}."


def of_arms(arms: Sequence[Arm]) -> Where:
    """A predicate that selects the runs that match all factors of at least one arm.

    Numbers are compared as numbers, regardless of the column's type: `gamma` is text,
    and 3, 3.0 and "3" all select gamma 3.
    """

    def mask(runs: pd.DataFrame) -> pd.Series[bool]:
        chosen = pd.Series(False, index=runs.index)
        for arm in arms:
            has_all = pd.Series(True, index=runs.index)
            for name, asked in arm.items():
                has_all &= _equals(runs[name], asked)
            chosen |= has_all
        return chosen

    return Where(" or ".join(map(_words, arms)), mask)


def _equals(column: pd.Series[Any], asked: Any) -> pd.Series[bool]:
    if isinstance(asked, list):
        equal = pd.Series(False, index=column.index)
        for value in asked:
            equal |= _equals(column, value)
        return equal
    if asked is None:
        return column.isna()
    if isinstance(asked, bool) or not isinstance(asked, int | float):
        return column.astype(str) == str(asked)
    numbers = pd.to_numeric(column, errors="coerce")
    return pd.Series(np.isclose(numbers, asked), index=column.index)
