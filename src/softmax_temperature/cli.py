"""The command `softmax-temperature`: profiles, verification, scorecard, calibration of saved logits."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from softmax_temperature.errors import InputError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    help="Four papers on the temperature of the softmax, rebuilt by one pipeline.",
)
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@app.command()
def profile(
    name: Annotated[str, typer.Argument(help="A profile: the name of a file in profiles/ without its ending.")],
    as_json: Json = False,
) -> None:
    """Write params.yaml from a profile.

    Example: softmax-temperature profile mini
    """
    from softmax_temperature.profiles import apply_profile

    params = apply_profile(name)
    if as_json:
        print(params.model_dump_json(indent=1))
    else:
        print(f"params.yaml now says profile {name}. Next: dvc repro")


@app.command()
def verify(as_json: Json = False) -> None:
    """Compare every artifact below data/ with its manifest; exit 1 when one is damaged.

    Example: softmax-temperature verify
    """
    from softmax_temperature.artifacts import ArtifactError, find_artifacts, open_artifact

    folders, problems = find_artifacts(Path("data")), []
    for folder in folders:
        try:
            problems += open_artifact(folder).problems()
        except ArtifactError as error:
            problems.append(f"{error.where}: {error.what}")
    if as_json:
        print(json.dumps({"artifacts": len(folders), "problems": problems}, indent=1))
    else:
        print("\n".join([*problems, f"{len(folders)} artifacts, {len(problems)} problems"]))
    if problems:
        raise typer.Exit(1)


@app.command()
def scorecard(
    write: Annotated[Path | None, typer.Option(help="A Markdown file whose scorecard is replaced.")] = None,
) -> None:
    """Print the verdict on every claim over all profiles with results, or write it into a file.

    Example: softmax-temperature scorecard --write README.md
    """
    from softmax_temperature import scorecard as cards

    if write is None:
        print(cards.scorecard())
    else:
        cards.write_scorecard(write)


@app.command()
def calibrate(
    logits: Annotated[
        Path, typer.Argument(metavar="LOGITS.npz", help="Arrays logits (n, classes) and labels (n,), by numpy.savez.")
    ],
    name: Annotated[
        str | None, typer.Option(help="The network, if logits is (networks, n, classes) and there are names.")
    ] = None,
    fit_on: Annotated[
        str | None,
        typer.Option(
            metavar="validation|half|all",
            help="Rows the temperature is fitted on: the arrays validation_logits and validation_labels; a random half "
            "of every class, reporting on the other half; or all, reporting on the same rows, which flatters. "
            "By default validation if the file has it, else half.",
        ),
    ] = None,
    bins: Annotated[int, typer.Option(help="Bins of the calibration errors and of the diagram.")] = 15,
    bootstrap: Annotated[int, typer.Option(help="Resamples for the 90 % intervals; 0 for none.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the half, the resamples and the noise floor.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(help="Folder to write, by default LOGITS-calibration or LOGITS-NAME-calibration beside the file."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Report how well saved logits are calibrated, before and after temperature scaling, and draw the diagram.

    Writes report.json, reliability.png and reliability.svg.

    Example: softmax-temperature calibrate logits.npz
    """
    from softmax_temperature import calibrate as calibration

    report, folder = calibration.calibrate(
        logits, name=name, fit_on=fit_on, bins=bins, bootstrap=bootstrap, seed=seed, output=output
    )
    if as_json:
        print(json.dumps(report | {"folder": str(folder)}, indent=1))
    else:
        print(f"{calibration.summary(report)}\n\nWritten to {folder}: report.json, reliability.png, reliability.svg")


def main() -> None:
    """Entry point: the user's errors are printed on one line and exit with 2."""
    try:
        app()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
