"""What the programs in `pipeline/` share: arguments, exit codes, and the call of a stage's cells.

Exit codes: 0 done, 1 some cells failed (the others are kept), 2 something that the user supplied is wrong; 130 and 143
stopped by SIGINT and SIGTERM, after a checkpoint.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from softmax_temperature.params import Params, read_params
from softmax_temperature.runner.cells import CellsFailed, run_cells
from softmax_temperature.runner.disk_faults import disk_faults
from softmax_temperature.runner.errors import InputError, nearest
from softmax_temperature.runner.lifeline import end_with_starter
from softmax_temperature.runner.stopping import Stopped, stopped_by_signals
from softmax_temperature.runner.torchrun import end_with_torchrun

if TYPE_CHECKING:
    from collections.abc import Iterable

    from softmax_temperature.runner.jobs import Cell

DVC_MARK = "DVC_STAGE"
"""A variable that DVC sets for the commands of a stage."""


class Stage(Protocol):
    """A module of `softmax_temperature.stages` whose stage is one command."""

    OUTPUT: Path

    def cells(self, params: Params) -> list[Cell]:
        """All cells of the stage."""


class DatasetStage(Protocol):
    """The same for a stage whose data sets stand for themselves: what one of them lacks does not keep another."""

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

    One that fails stops no other. Of data sets that the parameters no longer name, the results are removed from the
    stage's output, as those of cells are.
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
    """Remove what has another name; what is hidden belongs to somebody who is writing."""
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


def _require_utf8(arguments: Iterable[str]) -> None:
    """Refuse a name that no record could hold."""
    for given in arguments:
        try:
            given.encode()
        except UnicodeEncodeError as error:
            raise InputError("is no name in UTF-8", where=ascii(given), remedy="Rename the file or folder.") from error


def exit_code(work: Callable[[], None]) -> int:
    """Do the work; print the user's errors on one line, and failed cells on a line each."""
    try:
        with stopped_by_signals(), disk_faults():
            if DVC_MARK in os.environ:  # Of a `dvc repro` that is killed, nobody would tell its stage.
                end_with_starter(signal.SIGTERM, mark=DVC_MARK)
            end_with_torchrun()
            _require_utf8(sys.argv[1:])
            work()
    except Stopped as stop:
        name = signal.Signals(stop.number).name
        print(f"stopped by {name}: what is finished is kept, and the next run goes on from there", file=sys.stderr)
        return 128 + stop.number
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except CellsFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
