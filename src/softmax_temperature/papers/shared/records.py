"""Write and read one paper's folder in results/: its runs, tables and claims.

The paper's notebook, the report, and readers without data start from this folder.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from safetensors.numpy import save

from softmax_temperature.papers.shared import results
from softmax_temperature.papers.shared.claims import (
    CONTRADICTED,
    HOLDS,
    INCONCLUSIVE,
    Claim,
    judge_all,
    untested_row,
)
from softmax_temperature.papers.shared.files import write_csv, write_results
from softmax_temperature.papers.shared.runs import (
    DATA_MISSING,
    KEYS,
    NOT_RUN,
    RUNS_FILE,
    VALUES_FILE,
    Runs,
    write_runs,
)
from softmax_temperature.params.implementations import REGISTRIES
from softmax_temperature.runner.artifacts import atomic_file
from softmax_temperature.runner.fingerprint import import_closure, source_path
from softmax_temperature.runner.implementations import module_of

RUNS = "runs"
"""The only table at the top level of the folder; the other tables are in `tables/`."""
DERIVED = ("tables", "claims")
"""The modules of a paper that define `TABLES` and `CLAIMS`."""
_PART = "softmax_temperature.papers.{}.{}"
_DEVIATION = re.compile(
    r"^ *#+ *Deviation: *(.*(?:\n *#(?! *Deviation:).*)*)", re.MULTILINE
)


def table_path(folder: Path, name: str) -> Path:
    """The path of the table `name` in a paper's folder."""
    if name == RUNS:
        return folder / f"{name}.csv"
    return folder / "tables" / f"{name}.csv"


def write_study(
    folder: Path,
    paper: str,
    profile: str,
    *,
    runs: Runs,
    tables: Mapping[str, pd.DataFrame],
    code: Iterable[str],
) -> None:
    """Write a paper's runs, and the tables and claims derived from them.

    Tables that are no longer made are deleted from the folder.

    Args:
        folder: The paper's folder.
        paper: The paper's slug.
        profile: The profile that declares the runs.
        runs: The runs.
        tables: Tables of measurements that belong to no run, keyed by file name.
        code: The modules whose deviations are listed, besides the paper's own.
    """
    write_runs(folder, runs)
    for name, table in tables.items():
        write_csv(table_path(folder, name), table)
    parts = ("study", *DERIVED)
    modules = [*code, *(_PART.format(paper, part) for part in parts)]
    write_csv(table_path(folder, "deviations"), deviations(modules))
    write_derived(folder, paper, profile)
    derived = [name for name, _ in makers_of_tables(paper)]
    _remove_others(folder, {"values", "deviations", *tables, *runs.tables, *derived})


def write_nothing(folder: Path, paper: str, profile: str, runs: Runs) -> None:
    """Write a paper's folder if nothing could run because all its data are missing.

    The folder lists the experiments that were not run; all claims are "not tested".
    """
    write_csv(folder / RUNS_FILE, runs.table)
    write_csv(folder / VALUES_FILE, pd.DataFrame(columns=KEYS))
    write_csv(table_path(folder, NOT_RUN), runs.tables[NOT_RUN])
    _remove_others(folder, {"values", NOT_RUN})
    rows = [
        untested_row(claim, paper, profile, DATA_MISSING) for claim in claims_of(paper)
    ]
    _write_claims(folder, rows)


def _remove_others(folder: Path, names: Set[str]) -> None:
    """Delete the tables in `folder` that are not named in `names`."""
    for path in (folder / "tables").glob("*.csv"):
        if path.stem not in names:
            path.unlink()


def write_derived(folder: Path, paper: str, profile: str) -> list[dict[str, Any]]:
    """Derive tables, claims and metrics from the runs in a paper's folder.

    All of them are written into the same folder.

    Returns:
        The rows of `claims.json`.
    """
    runs = read_study(folder, paper)
    for name, make in makers_of_tables(paper):
        write_csv(table_path(folder, name), make(runs))
    rows = judge_all(paper, claims_of(paper), runs, profile=profile)
    _write_claims(folder, rows)
    return rows


def _write_claims(folder: Path, rows: list[dict[str, Any]]) -> None:
    write_results(folder / results.CLAIMS, rows)
    write_results(folder / "metrics.json", metrics_of(rows))


def metrics_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Count the claims that hold, are contradicted or are inconclusive.

    The keys of the counts are "holds", "fails" and "open".

    `dvc metrics show` prints one column for every name in the papers' `metrics.json`.
    With one name per claim, its output would be wider than any screen. The value of
    each claim is in `claims.json`.
    """
    verdicts = [row["verdict"] for row in rows]
    return {
        "holds": verdicts.count(HOLDS),
        "fails": verdicts.count(CONTRADICTED),
        "open": verdicts.count(INCONCLUSIVE),
    }


def claims_of(paper: str) -> Sequence[Claim]:
    """The claims that the paper's module `claims` declares."""
    claims: Sequence[Claim] = import_module(_PART.format(paper, "claims")).CLAIMS
    return claims


def read_study(folder: Path, paper: str) -> Any:
    """Read the runs in a paper's folder with the paper's function `study.read`."""
    return import_module(_PART.format(paper, "study")).read(folder)


def makers_of_tables(paper: str) -> list[tuple[str, Callable[[Any], pd.DataFrame]]]:
    """The name of each derived table, with the function that makes it from the runs."""
    tables = import_module(_PART.format(paper, "tables")).TABLES
    return [(table.name, table.make) for table in tables]


def deviations(modules: Iterable[str]) -> pd.DataFrame:
    """List every `# Deviation:` comment in `modules` and in the modules they import.

    The folder `runner` is left out, and the modules of registered classes are included.

    Returns:
        A table with the module in the column `where` and the comment in `what`.
    """
    excluded = frozenset({"runner"})
    names = {
        name for module in modules for name in import_closure(module, excluded=excluded)
    }
    # Include the modules of all registered classes, because a registry imports a class
    # only when a cell names it.
    for registry, table in REGISTRIES.items():
        if registry in names:
            for reference in table.values():
                names.update(import_closure(module_of(reference), excluded=excluded))
    rows = []
    for name in sorted(names):
        module = name.partition(".")[-1]
        for text in _DEVIATION.findall(source_path(name).read_text("utf-8")):
            comment = re.sub(r"\n *# ?", " ", text)
            rows.append({"where": module, "what": comment})
    return pd.DataFrame(rows, columns=["where", "what"])


def write_pixels(path: Path, arrays: Mapping[str, NDArray[np.uint8]]) -> None:
    """Write named pictures into one safetensors file.

    Equal pictures give equal bytes. If there are no pictures, no file is written.
    """
    if not arrays:
        return
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with atomic_file(path) as file:
        file.write(save(contiguous))
