"""Arguments, exit codes and stages of the programs in `pipeline/`."""

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

# The stages that each program in `pipeline/` runs, in this order, by module and name. A
# program that is missing here has no stages that consist of cells.
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
    stage_names = [path.rpartition(".")[2] for path in PROGRAMS[program]]
    reader = parser(description)
    reader.add_argument(
        "--only",
        choices=stage_names,
        help="run this stage alone, after the stages whose outputs it reads",
    )
    options = reader.parse_args(arguments)

    def work() -> None:
        # Imported here because it imports torch, which `--help` must not wait for.
        from softmax_temperature.runner.cells import run_cells

        params = read_params(options.params)
        for stage in stages_of(program):
            if options.only in (None, stage.name):
                run_cells(
                    stage.cells(params),
                    output=stage.output,
                    compute=params.compute,
                    seed=params.seed,
                )

    return exit_code(work)


def stages_of(program: str) -> list[Stage]:
    """The stages of a program that consist of cells; an empty list if none do.

    Their modules are imported here, because the papers' stages need different
    libraries.
    """
    stages = []
    for path in PROGRAMS.get(program, ()):
        module_name, _, stage_name = path.partition(".")
        module = import_module(f"softmax_temperature.stages.{module_name}")
        stages.append(getattr(module, stage_name))
    return stages


def exit_code(work: Callable[[], None]) -> int:
    """Do the work, print the reason if it stops early, and return the exit code.

    0 if the work is done, 1 if some cells failed (the others are kept), 2 if an input
    of the user is wrong, 130 after SIGINT and 143 after SIGTERM.
    """
    received = [signal.SIGINT]

    def interrupt(number: int, _: FrameType | None) -> None:
        # A second signal must not interrupt the cleaning up.
        signal.signal(number, signal.SIG_IGN)
        received.append(signal.Signals(number))
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        with disk_faults():
            work()
    except KeyboardInterrupt:
        last = received[-1]
        print(
            f"stopped by {last.name}: finished work is kept, and the next run "
            "continues there",
            file=sys.stderr,
        )
        return 128 + last
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except CellsFailed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0
