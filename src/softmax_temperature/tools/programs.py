"""Code that the programs in `pipeline/` share: options, exit codes, running cells."""

import signal
import sys
from collections.abc import Callable, Collection, Sequence
from functools import wraps
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from softmax_temperature.params import read_params, read_yaml
from softmax_temperature.runner.console import (
    CLOSED,
    OutputClosed,
    checked_output,
    print_any_text,
    print_error,
)
from softmax_temperature.runner.errors import (
    CellsFailed,
    InputError,
    disk_faults,
    nearest,
)
from softmax_temperature.runner.implementations import module_of
from softmax_temperature.runner.loading import uncollected
from softmax_temperature.runner.progress import say
from softmax_temperature.stages import REGISTRY, stages_of

if TYPE_CHECKING:
    from softmax_temperature.runner.cells import Cell

PARAMS = Path("params.yaml")
ParamsFile = Annotated[Path, typer.Option(help="The parameter file.")]
Paper = Annotated[str, typer.Option(help="A paper's slug.")]
Only = Annotated[
    str | None, typer.Option(help="Run one stage; those that it reads must have run.")
]


def stage_program(
    program: str, description: str | None, arguments: Sequence[str] | None = None
) -> int:
    """Run the cells of the stages of `program`, and return the exit code.

    The option `--only` names a single stage to run.
    """
    names = [entry.name for entry in REGISTRY if entry.program == program]

    def work(params: ParamsFile = PARAMS, only: Only = None) -> None:
        # Imported here because torch takes seconds to import, and `--help` must not
        # wait for it.
        with uncollected():
            from softmax_temperature.runner.cells import run_cells
            from softmax_temperature.stages.inputs import (
                download_missing,
                without_missing,
            )

            stages = stages_of(program)
        if only is not None:
            require_choice("--only", only, names)
        parameters = read_params(params)
        # If the program runs without DVC, no earlier stage has downloaded the files.
        for line in download_missing(parameters, program):
            say(f"not run: data missing: {line}")
        parameters = without_missing(parameters)
        for stage in stages:
            if only in (None, stage.name):
                cells = stage.cells(parameters)
                require_dependencies(program, cells)
                run_cells(
                    cells,
                    output=stage.output,
                    compute=parameters.compute,
                    seed=parameters.seed,
                )

    return run_program(work, description, arguments)


def run_program(
    work: Callable[..., None],
    description: str | None,
    arguments: Sequence[str] | None = None,
) -> int:
    """Call `work` with the command line's options, and return the exit code.

    The annotations of `work` declare the options. If `arguments` are given, they
    replace the command line.
    """

    @wraps(work)
    def command(**options: Any) -> None:
        raise typer.Exit(exit_code(lambda: work(**options)))

    # Do not use rich, because its import takes a fifth of a second.
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(help=description)(command)
    try:
        with checked_output():
            app(args=arguments)
    except SystemExit as end:
        return int(end.code or 0)
    except OutputClosed:
        return CLOSED
    except InputError as error:
        print_error(str(error))
        return 2
    return 0


def require_choice(option: str, choice: str, choices: Collection[str]) -> None:
    """Raise InputError unless `choice`, the value of `option`, is in `choices`."""
    if choice not in choices:
        raise InputError(f"unknown name {choice!r}", option, nearest(choice, choices))


def require_dependencies(program: str, cells: "Sequence[Cell]") -> None:
    """Raise InputError if dvc.yaml does not list a project module that cells use.

    `dvc repro` does not notice a change in a module that dvc.yaml does not list.
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
            if not any(file.resolve().is_relative_to(path) for path in listed):
                shown = file.resolve().relative_to(Path.cwd().resolve())
                raise InputError(
                    f"does not depend on {shown.as_posix()}, which its cells use",
                    where=f"dvc.yaml: stage {name}",
                    remedy=f"Add `- {shown.as_posix()}` to its `deps`.",
                )


def exit_code(work: Callable[[], None]) -> int:
    """Do the work, report what stopped it (if anything), and return the exit code.

    The exit code is 0 if the work is done, 1 if some cells failed (the results of the
    others are kept), 2 if the user made an error, and 130 or 143 if SIGINT or SIGTERM
    stopped the program.
    """
    print_any_text()
    received = [signal.SIGINT]

    def interrupt(number: int, _: FrameType | None) -> None:
        # A second signal must not interrupt the clean-up.
        signal.signal(number, signal.SIG_IGN)
        received.append(signal.Signals(number))
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        with disk_faults():
            work()
    except KeyboardInterrupt:
        name = received[-1].name
        print(
            f"stopped by {name}: finished cells are kept, and the next run continues",
            file=sys.stderr,
        )
        return 128 + received[-1]
    except InputError as error:
        print_error(str(error))
        return 2
    except CellsFailed as error:
        print_error(str(error))
        return 1
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0
