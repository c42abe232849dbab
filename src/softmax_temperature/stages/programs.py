"""What the programs in `pipeline/` share: arguments, exit codes, and the call of a stage's cells.

Exit codes: 0 done, 1 some cells failed (the others are kept), 2 something that the user supplied is wrong; 130 and 143
stopped by SIGINT and SIGTERM.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FrameType
from typing import Protocol

from softmax_temperature.params import Params, read_params
from softmax_temperature.runner.cells import Cell, CellsFailed, run_cells
from softmax_temperature.runner.errors import InputError, disk_faults, nearest


class Stage(Protocol):
    """A module of `softmax_temperature.stages` whose stage is one command."""

    OUTPUT: Path

    def cells(self, params: Params) -> list[Cell]:
        """All cells of the stage."""


class DatasetStage(Protocol):
    """The same for a stage that runs for each data set on its own: one missing data set does not block the others."""

    OUTPUT: Path

    def cells(self, params: Params, dataset: str) -> list[Cell]:
        """All cells of the stage for one data set."""


def parser(description: str | None) -> argparse.ArgumentParser:
    """The arguments that every stage program takes."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--params", type=Path, default=Path("params.yaml"), help="parameter file (params.yaml)")
    return arguments


def stage_program(stage: Stage, description: str | None, arguments: Sequence[str] | None = None) -> int:
    """Run a stage that is one command; returns the exit code."""
    options = parser(description).parse_args(arguments)

    def work() -> None:
        params = read_params(options.params)
        run_cells(stage.cells(params), output=stage.OUTPUT, compute=params.compute, seed=params.seed)

    return exit_code(work)


def dataset_program(stage: DatasetStage, description: str | None, arguments: Sequence[str] | None = None) -> int:
    """Run a stage for each data set, one after the other, or for those on the command line; returns the exit code.

    One that fails does not stop the others. Results of data sets that the parameters no longer name are removed.
    """
    reader = parser(description)
    what = "a name from the section `datasets` of the parameter file, by default each; may be given several times"
    reader.add_argument("--dataset", action="append", help=what)
    options = reader.parse_args(arguments)

    def work() -> None:
        params = read_params(options.params)
        for name in options.dataset or []:
            require_known(name, params.datasets, where="--dataset")
        planned = {name: stage.cells(params, name) for name in options.dataset or params.datasets}
        failures: dict[str, str] = {}
        for name, cells in planned.items():
            try:
                run_cells(cells, output=stage.OUTPUT / name, compute=params.compute, seed=params.seed)
            except CellsFailed as error:
                failures[name] = "; ".join(error.failures.values())
        if failures:
            raise CellsFailed(stage.OUTPUT.name, failures, len(planned))
        if not options.dataset:
            _remove_all_but(params.datasets, stage.OUTPUT)

    return exit_code(work)


def _remove_all_but(names: Iterable[str], folder: Path) -> None:
    """Remove everything else, but hidden files: somebody may be writing them."""
    for path in set(folder.glob("[!.]*")) - {folder / name for name in names}:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def require_known(name: str, valid: Iterable[str], *, where: str) -> None:
    """Refuse a name that does not exist, with the nearest one that does."""
    names = list(valid)
    if name not in names:
        raise InputError(f"unknown name {name!r}", where=where, remedy=nearest(name, names))


def exit_code(work: Callable[[], None]) -> int:
    """Do the work; print the user's errors on one line, and failed cells on a line each."""
    received = [signal.SIGINT]

    def interrupt(number: int, _: FrameType | None) -> None:
        signal.signal(number, signal.SIG_IGN)  # Another one must not interrupt the cleaning up.
        received.append(signal.Signals(number))
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        with disk_faults():
            work()
    except KeyboardInterrupt:
        name = received[-1].name
        print(f"stopped by {name}: what is finished is kept, and the next run continues there", file=sys.stderr)
        return 128 + received[-1]
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except CellsFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0
