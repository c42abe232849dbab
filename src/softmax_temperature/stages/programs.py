"""What the programs in `pipeline/` share: arguments, exit codes, and the call of a stage's cells."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Protocol

from softmax_temperature.params import Params, read_params
from softmax_temperature.runner.errors import CellsFailed, InputError, disk_faults

if TYPE_CHECKING:
    from softmax_temperature.runner.cells import Cell  # Imports torch.

PACKAGE = "softmax_temperature.stages"


class Stage(Protocol):
    """A module of `softmax_temperature.stages` that consists of cells."""

    PAPER: str | None
    OUTPUT: Path

    def cells(self, params: Params) -> list[Cell]:
        """All cells of the stage, if its paper is to be rebuilt."""


def parser(description: str | None) -> argparse.ArgumentParser:
    """The arguments that every stage program takes."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--params", type=Path, default=Path("params.yaml"), help="parameter file (params.yaml)")
    return arguments


def stage_program(name: str, description: str | None, arguments: Sequence[str] | None = None) -> int:
    """Run the cells of the stage that is the module `name`; returns the exit code."""
    options = parser(description).parse_args(arguments)

    def work() -> None:
        from softmax_temperature.runner.cells import run_cells  # Imports torch, which `--help` must not wait for.

        params, stage = read_params(options.params), load(name)
        run_cells(declared(stage, params), output=stage.OUTPUT, compute=params.compute, seed=params.seed)

    return exit_code(work)


def load(name: str) -> Stage:
    """The module of a stage, imported when it is run: the papers' stages need different libraries."""
    stage: Stage = import_module(f"{PACKAGE}.{name}")
    return stage


def declared(stage: Stage, params: Params) -> list[Cell]:
    """The cells that the parameters declare: none if the stage's paper is not among `papers`."""
    return stage.cells(params) if stage.PAPER is None or stage.PAPER in params.papers else []


def exit_code(work: Callable[[], None]) -> int:
    """Do the work, and say what stopped it.

    Exit codes: 0 done, 1 some cells failed (the others are kept), 2 something that the user supplied is wrong; 130 and
    143 stopped by SIGINT and SIGTERM.
    """
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
    except (InputError, CellsFailed) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0
