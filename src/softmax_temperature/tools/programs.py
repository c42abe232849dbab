"""What the programs in `pipeline/` share: arguments, exit codes, and the call of a
stage's cells.
"""

import argparse
import signal
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from types import FrameType

from softmax_temperature.params import read_params
from softmax_temperature.runner.console import print_any_text
from softmax_temperature.runner.errors import CellsFailed, InputError, disk_faults
from softmax_temperature.stages import Stage

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
                run_cells(
                    stage.cells(params),
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


def exit_code(work: Callable[[], None]) -> int:
    """Do the work, and say what stopped it.

    Exit codes: 0 done, 1 some cells failed (the others are kept), 2 something that the
    user supplied is wrong; 130 and 143 stopped by SIGINT and SIGTERM.
    """
    print_any_text()
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
