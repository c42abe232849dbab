"""The command line of a single benchmark."""

import json
from collections.abc import Callable
from typing import Annotated, Any

import typer

from softmax_temperature.tools.programs import run_program

Quick = Annotated[bool, typer.Option("--quick", help="Small sizes, in seconds.")]


def print_result(
    measure: Callable[..., dict[str, Any]], description: str | None
) -> int:
    """Run `measure`, at small sizes with `--quick`, and print its result as JSON.

    Returns:
        The exit code.
    """

    def work(quick: Quick = False) -> None:
        print(json.dumps(measure(quick=quick), indent=1))

    return run_program(work, description)
