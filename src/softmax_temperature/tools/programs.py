"""What the programs in `pipeline/` share: arguments, exit codes, and the call of a
stage's cells.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from softmax_temperature.params import read_params, read_yaml
from softmax_temperature.runner.errors import CellsFailed, InputError, disk_faults
from softmax_temperature.runner.implementations import module_of
from softmax_temperature.stages import Stage

if TYPE_CHECKING:
    from softmax_temperature.runner.cells import Cell

PROGRAMS: dict[str, tuple[str, ...]] = {
    "fetch": ("fetch.fetch",),
    "embed": ("pretraining.pretrain", "embeddings.embed"),
    "search": (
        "classifier_temperature.describe",
        "classifier_temperature.search",
        "classifier_temperature.rescaling",
        "heuristic.heuristic",
    ),
    "train_focal": (
        "focal.train_focal",
        "focal_evaluation.evaluate_focal",
        "focal_appendices.focal_linear",
        "focal_appendices.train_translation",
    ),
    "train_cooling": ("cooling.train_cooling", "cooling.train_segmentation"),
    "train_temperature_check": (
        "temperature_check.train_temperature_check",
        "temperature_check.confirm_temperature_check",
        "early_learning.early_learning",
    ),
}
"""What a program in `pipeline/` runs, in this order: stages that consist of cells, by
module and name.
"""


def parser(description: str | None) -> argparse.ArgumentParser:
    """The arguments that every stage program takes."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument(
        "--params",
        type=Path,
        default=Path("params.yaml"),
        help="parameter file (params.yaml)",
    )
    return arguments


def stage_program(
    program: str, description: str | None, arguments: Sequence[str] | None = None
) -> int:
    """Run the cells of a program's stages; returns the exit code."""
    names = [place.rpartition(".")[2] for place in PROGRAMS[program]]
    reader = parser(description)
    reader.add_argument(
        "--only", choices=names, help="one stage, where those that it reads have run"
    )
    options = reader.parse_args(arguments)

    def work() -> None:
        from softmax_temperature.runner.cells import (
            run_cells,
        )  # Imports torch, which `--help` must not wait for.

        params = read_params(options.params)
        for stage in stages_of(program):
            if options.only in (None, stage.name):
                cells = stage.cells(params)
                require_dependencies(program, cells)
                run_cells(
                    cells,
                    output=stage.output,
                    compute=params.compute,
                    seed=params.seed,
                )

    return exit_code(work)


def stages_of(program: str) -> list[Stage]:
    """The stages of a program: none if they do not consist of cells.

    Their modules are imported now, because the papers' stages need different libraries.
    """
    places = [place.split(".") for place in PROGRAMS.get(program, ())]
    return [
        getattr(import_module(f"softmax_temperature.stages.{module}"), name)
        for module, name in places
    ]


def require_dependencies(program: str, cells: Sequence[Cell]) -> None:
    """Raise InputError if dvc.yaml does not list the project's own modules that cells
    use: `dvc repro` would not notice that one has changed.
    """
    from softmax_temperature.runner.fingerprint import project_files

    graph = Path("dvc.yaml")
    files = {
        file
        for cell in cells
        for reference in cell.implementations()
        for file in project_files(module_of(reference))
    }
    if not files or not graph.is_file():
        return
    for name, stage in read_yaml(graph)["stages"].items():
        if Path(stage["cmd"].split()[1]).stem != program:
            continue
        listed = [Path(dependency).resolve() for dependency in stage["deps"]]
        for file in sorted(files):
            if not any(file.resolve().is_relative_to(each) for each in listed):
                shown = file.resolve().relative_to(Path.cwd().resolve())
                raise InputError(
                    f"does not depend on {shown.as_posix()}, which its cells use",
                    where=f"dvc.yaml: stage {name}",
                    remedy=f"Add `- {shown.as_posix()}` to its `deps`.",
                )


def exit_code(work: Callable[[], None]) -> int:
    """Do the work, and say what stopped it.

    Exit codes: 0 done, 1 some cells failed (the others are kept), 2 something that the
    user supplied is wrong; 130 and 143 stopped by SIGINT and SIGTERM.
    """
    received = [signal.SIGINT]

    def interrupt(number: int, _: FrameType | None) -> None:
        signal.signal(
            number, signal.SIG_IGN
        )  # Another one must not interrupt the cleaning up.
        received.append(signal.Signals(number))
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        with disk_faults():
            work()
    except KeyboardInterrupt:
        name = received[-1].name
        print(
            f"stopped by {name}: what is finished is kept, and the next run continues there",
            file=sys.stderr,
        )
        return 128 + received[-1]
    except (InputError, CellsFailed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0
