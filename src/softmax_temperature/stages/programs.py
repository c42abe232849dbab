"""What the programs in `pipeline/` share: arguments, exit codes, and the call of a stage's cells."""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import FrameType

from softmax_temperature.params import read_params
from softmax_temperature.runner.errors import CellsFailed, InputError, disk_faults
from softmax_temperature.stages import Stage

MODULES: dict[str, tuple[str, ...]] = {
    "fetch": ("fetch",),
    "backbones": ("pretrain", "embed"),
    "classifier_temperature": ("describe", "search", "rescaling"),
    "heuristic": ("heuristic",),
    "focal": ("train_focal",),
    "focal_evaluation": ("evaluate_focal",),
    "focal_appendices": ("focal_linear", "train_translation"),
    "cooling": ("train_cooling", "train_segmentation"),
    "temperature_check": ("train_temperature_check", "confirm_temperature_check"),
    "early_learning": ("early_learning",),
}
"""The stages that consist of cells, by the module that declares them."""


def parser(description: str | None) -> argparse.ArgumentParser:
    """The arguments that every stage program takes."""
    arguments = argparse.ArgumentParser(description=description)
    arguments.add_argument("--params", type=Path, default=Path("params.yaml"), help="parameter file (params.yaml)")
    return arguments


def stage_program(name: str, description: str | None, arguments: Sequence[str] | None = None) -> int:
    """Run the cells of a stage; returns the exit code."""
    options = parser(description).parse_args(arguments)

    def work() -> None:
        from softmax_temperature.runner.cells import run_cells  # Imports torch, which `--help` must not wait for.

        params, stage = read_params(options.params), find_stage(name)
        assert stage is not None, name
        run_cells(stage.cells(params), output=stage.output, compute=params.compute, seed=params.seed)

    return exit_code(work)


def find_stage(name: str) -> Stage | None:
    """The stage of a name, or None; its module is imported now, because the papers' stages need different libraries."""
    modules = [import_module(f"softmax_temperature.stages.{module}") for module in MODULES if name in MODULES[module]]
    return getattr(modules[0], name) if modules else None


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
