"""`python -m benchmarks` measures what is promised about speed and memory.

It writes benchmarks/results.json, which has one section for each kind of machine, "cpu"
or "gpu", with the result of each benchmark. A result names the machine and the library
versions that produced it, because the results of a section need not come from one
machine. It has no date, because Git records that. A benchmark that compares two sides
runs both on the same machine. `--quick` measures small sizes, for which nothing is
promised, and prints the results instead of writing them.
"""

import importlib
import json
import multiprocessing
import sys
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from softmax_temperature.runner.artifacts import canonical_json, write_json
from softmax_temperature.runner.machine import machine, versions
from softmax_temperature.tools.programs import require_choice, run_program

RESULTS = Path(__file__).resolve().parent / "results.json"
LIBRARIES = (
    "torch",
    "torchvision",
    "numpy",
    "scipy",
    "scikit-learn",
    "torchmetrics",
    "netcal",
    "dvc",
)
BENCHMARKS = (
    # The overhead is measured first, because it needs an up-to-date pipeline: the other
    # benchmarks write RESULTS, on which `collect` depends.
    "overhead",
    "temperature_grid",
    "statistics",
    "calibration",
    "calibration_memory",
    "training",
    "cooling_step",
    "side_by_side",
    "tree_lstm",
    "embedding_memory",
)
Section = Literal["cpu", "gpu"]


@dataclass(frozen=True)
class Promise:
    """A bound on one number of a benchmark's result.

    Attributes:
        number: Key of the number in the result of `measure`.
        bound: The bound.
        at_least: Whether the bound is a lower bound, as for ratios and fractions;
            otherwise it is an upper bound, as for seconds and bytes.
        section: The kind of machine for which the promise is made.
    """

    number: str
    bound: float
    at_least: bool
    section: Section = "cpu"

    def judge(self, result: dict[str, Any]) -> dict[str, Any]:
        """The promise as text, the measured number, and whether the promise is met."""
        measured = result[self.number]
        if self.at_least:
            sign = ">="
            met = measured >= self.bound
        else:
            sign = "<="
            met = measured <= self.bound
        return {
            "promise": f"{self.number} {sign} {self.bound:g}",
            "measured": measured,
            "met": bool(met),
        }


PROMISES: dict[str, tuple[Promise, ...]] = {
    "temperature_grid": (
        Promise("ratio", 2.5, at_least=True),
        Promise("peak_fraction", 0.75, at_least=True),
        Promise("ratio", 20.0, at_least=True, section="gpu"),
        Promise("peak_fraction", 0.50, at_least=True, section="gpu"),
    ),
    "statistics": (Promise("ratio", 10.0, at_least=True),),
    "calibration": (
        Promise("loop_ratio", 30.0, at_least=True),
        Promise("library_ratio", 5.0, at_least=True),
    ),
    "calibration_memory": (
        Promise("over_gibibytes", 1.0, at_least=False),
        Promise("cpu_seconds", 60.0, at_least=False),
    ),
    "training": (
        Promise("vgg_ratio", 1.5, at_least=True),
        Promise("resnet50_ratio", 1.5, at_least=True),
        Promise("vgg_ratio", 10.0, at_least=True, section="gpu"),
        Promise("resnet50_ratio", 3.0, at_least=True, section="gpu"),
    ),
    "cooling_step": (
        Promise("share", 0.019, at_least=False),
        Promise("share", 0.019, at_least=False, section="gpu"),
    ),
    # No speed is promised here: the result shows whether sweeps should be batched.
    "side_by_side": (),
    "tree_lstm": (
        Promise("ratio", 5.0, at_least=True),
        Promise("ratio", 5.0, at_least=True, section="gpu"),
    ),
    "embedding_memory": (Promise("gibibytes", 2.0, at_least=False),),
    "overhead": (
        Promise("help_seconds", 1.0, at_least=False),
        Promise("repro_seconds", 5.0, at_least=False),
        Promise("plan_seconds", 5.0, at_least=False),
    ),
}


def main(
    only: Annotated[
        list[str] | None,
        typer.Option(help="A benchmark; may be repeated. By default, all run."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure small sizes, and write nothing.")
    ] = False,
) -> None:
    """Run the benchmarks, and exit with code 1 if a promise is not met."""
    names = only or BENCHMARKS
    for name in names:
        require_choice("--only", name, BENCHMARKS)
    run = show if quick else record
    met = [run(name) for name in names]
    if not all(met):
        raise typer.Exit(1)


def show(name: str) -> bool:
    """Measure one benchmark at small sizes, print the result and return True."""
    print(canonical_json({name: measured(name, quick=True)}), end="")
    return True


def record(name: str) -> bool:
    """Measure, judge and write one benchmark; return whether every promise is met.

    The result is written at once, so that a later benchmark's failure loses nothing.
    """
    result = measured(name, quick=False)
    section = section_here()
    verdicts = [
        promise.judge(result)
        for promise in PROMISES[name]
        if promise.section == section
    ]
    origin = {"machine": machine(), "versions": versions(LIBRARIES)}
    new = {name: {**result, "promises": verdicts, **origin}}
    write_json(RESULTS, merged(read(RESULTS), section, new))
    for verdict in verdicts:
        word = "met" if verdict["met"] else "NOT met"
        print(
            f"{name}: {verdict['promise']}: {verdict['measured']:.3g}, {word}",
            flush=True,
        )
    return all(verdict["met"] for verdict in verdicts)


def measured(name: str, *, quick: bool) -> dict[str, Any]:
    """Measure one benchmark in a new process and return its result.

    A new process shares no memory or caches with the other benchmarks.
    """
    print(f"{name} ...", file=sys.stderr, flush=True)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as process:
        module = importlib.import_module(f"benchmarks.{name}")
        measure: Callable[..., dict[str, Any]] = module.measure
        return process.submit(measure, quick=quick).result()


def section_here() -> Section:
    """The section for this kind of machine."""
    import torch

    return "gpu" if torch.cuda.is_available() else "cpu"


def merged(
    old: dict[str, Any], section: Section, new: dict[str, Any]
) -> dict[str, Any]:
    """The file's content with new results, which replace results of the same name."""
    results = old.get(section, {"results": {}})["results"]
    return {**old, section: {"results": {**results, **new}}}


def read(path: Path) -> dict[str, Any]:
    """The current content of the results file; empty if there is no file."""
    if not path.is_file():
        return {}
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return content


if __name__ == "__main__":
    sys.exit(run_program(main, __doc__))
