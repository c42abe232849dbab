"""Writing one paper's folder below results/: what its notebook, the report and a reader without data start from."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from softmax_temperature.papers.shared.claims import Claim, judge_all
from softmax_temperature.papers.shared.records import read_records, table_path
from softmax_temperature.papers.shared.results import CLAIMS
from softmax_temperature.papers.shared.tables import write_csv
from softmax_temperature.runner.artifacts import write_json
from softmax_temperature.runner.fingerprint import import_closure, source_path

Records = TypeVar("Records")
_START = re.compile(r"^\s*#+\s*Deviation:\s*(?P<text>.*)$")
_MORE = re.compile(r"^\s*#\s?(?P<text>.*)$")


def write_results(
    folder: Path,
    paper: str,
    profile: str,
    *,
    made: Mapping[str, pd.DataFrame],
    form: type[Records],
    tables: Mapping[str, Callable[[Records], pd.DataFrame]],
    claims: Sequence[Claim[Records]],
    code: Iterable[str],
) -> None:
    """Write records, tables, deviations, claims and metrics.

    Args:
        folder: `results/<profile>/<paper>`.
        paper: its slug.
        profile: the name of the parameters in force.
        made: the paper's records, by the names of the fields of `form`.
        form: the dataclass of the records. They are read back before tables and claims are made from them, so that a
            reader of results/ gets the same.
        tables: what makes each table of the paper, by the name of its file.
        claims: judged on the records.
        code: the modules that the results come from.
    """
    for name, table in made.items():
        write_csv(table_path(folder, name), table)
    records = read_records(form, folder)
    for name, make in tables.items():
        write_csv(table_path(folder, name), make(records))
    write_csv(table_path(folder, "deviations"), deviations(code))
    rows = judge_all(paper, claims, records, profile=profile)
    write_json(folder / CLAIMS, rows)
    write_json(folder / "metrics.json", {row["id"]: {"value": row["value"], "verdict": row["verdict"]} for row in rows})


def named_rows(
    cells: Iterable[tuple[dict[str, Any], Iterable[dict[str, Any]]]], columns: Sequence[str]
) -> pd.DataFrame:
    """The rows of some cells, each row with what names its cell before it; `columns` also where there are no rows."""
    return pd.DataFrame([{**names, **row} for names, rows in cells for row in rows], columns=list(columns))


def deviations(modules: Iterable[str]) -> pd.DataFrame:
    """Every `# Deviation:` comment of some modules and of what they import: columns where (module) and what."""
    names = sorted({name for module in modules for name in import_closure(module, excluded=frozenset({"runner"}))})
    rows = [(name.split(".", 1)[-1], text) for name in names for text in comments(source_path(name).read_text("utf-8"))]
    return pd.DataFrame(rows, columns=["where", "what"])


def comments(source: str) -> list[str]:
    """The texts of the comments in a file, each joined over its following comment lines."""
    found: list[str] = []
    inside = False
    for line in source.splitlines():
        if start := _START.match(line):
            found.append(start["text"])
            inside = True
        elif inside and (more := _MORE.match(line)):
            found[-1] += " " + more["text"]
        else:
            inside = False
    return found
