"""A fitted heuristic and the study that it rests on: what `suggest` asks, shipped with the package.

The shipped one is made from the committed results of the profile `collection`, by

    softmax-temperature fit-heuristic results/collection --output src/softmax_temperature/tools/suggest/heuristic.json
"""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from softmax_temperature.dataset_statistics import STATISTICS
from softmax_temperature.heuristic import Heuristic, fit
from softmax_temperature.papers.shared.tables import read_csv
from softmax_temperature.params.classifier_temperature import HeuristicSection, Search
from softmax_temperature.runner.artifacts import digest_of_file, write_text
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.reading import read_yaml
from softmax_temperature.stages.heuristic_tables import identified_pairs

PAPER = "classifier_temperature"
LARGEST = 2**20  # Bytes; a study has 4,000.
_ELSEWHERE = "Choose another place."
_REMEDY = "Give a heuristic.json of results/, or one that `softmax-temperature fit-heuristic` wrote."


class Study(BaseModel):
    """A heuristic, and what a user should know of the pairs that it was fitted on; None and empty where not known.

    Attributes:
        profile: whose results they are, or the file that the heuristic alone came from.
        pairs_sha256: of the table of pairs.
        median_inverse_temperature: of the best ones of all pairs.
        ranges: of each statistic, over all pairs.
        accuracy_lost: by rule, the mean over all pairs of what following it costs, each data set left out in turn.
        search: how the best ones were searched.
        heuristic: the fit.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    profile: str
    pairs_sha256: str | None = None
    median_inverse_temperature: Annotated[float, Field(gt=0)] | None = None
    ranges: dict[str, tuple[float, float]] = {}
    accuracy_lost: dict[str, float] = {}
    search: Search
    heuristic: Heuristic

    def outside(self, statistics: dict[str, float]) -> list[str]:
        """The statistics that lie outside the range of the study's pairs."""
        return [name for name, (low, high) in self.ranges.items() if not low <= statistics[name] <= high]


def shipped_study() -> Study:
    """The study that comes with the package."""
    return Study.model_validate_json((files(__package__) / "heuristic.json").read_text(encoding="utf-8"))


def fit_study(results: Path) -> Study:
    """Fit the heuristic on the pairs of a profile's results, as the pipeline's stage does.

    Args:
        results: the profile's folder, with `params.yaml` and the paper's tables.

    Raises:
        InputError: it has no such results, or they are damaged.
    """
    tables = results / PAPER / "tables"
    pairs, costs = read_csv(tables / "pairs.csv"), read_csv(tables / "cost_of_rules.csv")
    search, rules = _sections(results / "params.yaml")
    try:
        clear = identified_pairs(pairs, search.inverse_temperatures, rules.max_plateau)
        return Study(
            profile=results.resolve().name,
            pairs_sha256=digest_of_file(tables / "pairs.csv"),
            median_inverse_temperature=float(pairs["inverse_temperature"].median()),
            ranges={name: (float(pairs[name].min()), float(pairs[name].max())) for name in STATISTICS},
            accuracy_lost=dict(zip(costs["rule"], costs["mean"].round(6).tolist(), strict=True)),
            search=search,
            heuristic=fit(clear, statistics=rules.selected),
        )
    except (ValueError, KeyError, TypeError) as error:
        what = f"pairs.csv and cost_of_rules.csv are no tables of a study ({str(error)[:120]})"
        raise InputError(what, where=str(tables), remedy="Take them from Git, or run `dvc repro`.") from error


def _sections(path: Path) -> tuple[Search, HeuristicSection]:
    """How the study searched and fitted, by a parameter file, of which nothing else is looked at."""
    content = read_yaml(path, kind="safe")
    try:
        section = content[PAPER]
        return Search.model_validate(section["search"]), HeuristicSection.model_validate(section["heuristic"])
    except (ValueError, KeyError, TypeError) as error:
        what = f"says not how the study searched and fitted ({str(error)[:120]})"
        raise InputError(what, where=f"{path}: {PAPER}", remedy="Take the file from Git.") from error


def read_study(path: Path) -> Study:
    """Read what `fit-heuristic` wrote; or a heuristic alone, which is then checked as the shipped study was searched.

    Raises:
        InputError: the file is neither, or too large for either.
    """
    if not path.is_file():
        raise InputError("no such file", where=str(path), remedy=_REMEDY)
    if (size := path.stat().st_size) > LARGEST:
        raise InputError(f"is {size:,} bytes long, too long for a heuristic", where=str(path), remedy=_REMEDY)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(content, dict) and "profile" not in content:
            fitted = Heuristic.from_json(json.dumps(content))
            return Study(profile=str(path), search=shipped_study().search, heuristic=fitted)
        return Study.model_validate_json(json.dumps(content))
    except (ValueError, RecursionError) as error:  # pydantic's are ValueErrors too
        what = f"is no heuristic ({str(error)[:120]})"
        raise InputError(what, where=str(path), remedy=_REMEDY) from error


def write_study(results: Path, output: Path) -> str:
    """Fit the heuristic on a profile's results and write it; returns the text that was written.

    Args:
        results: the profile's folder.
        output: the file.

    Raises:
        InputError: there are no such results, or the file cannot stand there; nothing has been written.
    """
    if output.is_dir():
        raise InputError("is a folder, not a file", where=str(output), remedy=_ELSEWHERE)
    if not output.parent.is_dir():
        raise InputError(f"there is no folder {output.parent}", where=str(output), remedy=_ELSEWHERE)
    text = fit_study(results).model_dump_json(indent=1) + "\n"
    write_text(output, text)
    return text
