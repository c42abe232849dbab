"""Every metric that a claim or a table reads is in the results of a study."""

import functools
import pkgutil
import types
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from softmax_temperature import papers
from softmax_temperature.papers.shared.contrasts import Difference, Parts
from softmax_temperature.papers.shared.factors import where
from softmax_temperature.papers.shared.files import read_csv
from softmax_temperature.papers.shared.metrics import Average, Metric
from softmax_temperature.papers.shared.results import PAPERS
from softmax_temperature.papers.shared.runs import VALUES_FILE, long_form

RESULTS = Path(__file__).parents[2] / "results"


class Column(NamedTuple):
    """The rows of `values.csv` that a metric reads."""

    metric: str
    split: str
    scaled: bool


NEVER_MEASURED = {
    # The bootstrap over test samples does not change the temperature, which is fitted
    # on validation data.
    "focal": {
        Column("temperature_low", "test", True),
        Column("temperature_high", "test", True),
        # The split is replaced by each out-of-distribution set.
        Column("auroc", "test", False),
    },
}
"""The columns that no study has, by paper. A metric of claims that were never run
belongs here, too.
"""


def metrics_in(value: Any, seen: dict[int, Any] | None = None) -> Iterator[Metric]:
    """Find the metrics in `value`, at any depth.

    The parts of a function are the values in its closure.
    """
    seen = {} if seen is None else seen
    if id(value) in seen:
        return
    seen[id(value)] = value
    if isinstance(value, Metric):
        yield value
    for part in parts_of(value):
        yield from metrics_in(part, seen)


def parts_of(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, functools.partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, types.FunctionType):
        return [cell.cell_contents for cell in value.__closure__ or ()]
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in fields(value)]
    return []


def modules_of(paper: str) -> list[types.ModuleType]:
    package = import_module(f"{papers.__name__}.{paper}")
    names = [module.name for module in pkgutil.iter_modules(package.__path__)]
    return [import_module(f"{package.__name__}.{name}") for name in names]


def measured_columns(paper: str) -> set[Column]:
    columns: set[Column] = set()
    for path in RESULTS.glob(f"*/{paper}/{VALUES_FILE}"):
        values = long_form(read_csv(path))
        rows = values[["metric", "split", "scaled"]].drop_duplicates()
        columns.update(map(Column._make, rows.itertuples(index=False, name=None)))
    return columns


@pytest.mark.parametrize("paper", PAPERS)
def test_a_study_has_every_metric_that_claims_and_tables_read(paper: str) -> None:
    # `vars` includes `CLAIMS` and `TABLES`.
    declared = {
        Column(metric.name, metric.split, metric.scaled)
        for module in modules_of(paper)
        for metric in metrics_in(vars(module))
    }
    assert declared
    exceptions = NEVER_MEASURED.get(paper, set())
    unknown = declared - measured_columns(paper) - exceptions
    assert not unknown, (
        f"no study of {paper} has these values: misspelt, or never run, and then to "
        f"be listed in NEVER_MEASURED"
    )
    assert exceptions <= declared


def test_metrics_are_found_in_contrasts_averages_and_closures() -> None:
    misspelt = Metric("brier_scor")
    difference = Difference(of=Average([misspelt]), first=where(), second=where())
    assert set(metrics_in(Parts({"all": difference}))) == {misspelt}
    assert set(metrics_in({"table": lambda _: misspelt})) == {misspelt}
    assert set(metrics_in(functools.partial(print, misspelt))) == {misspelt}
