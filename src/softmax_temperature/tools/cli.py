"""The command `softmax-temperature`: the pipeline's profiles, plan and verification, and tools for one's own data."""

from __future__ import annotations

# A command's module is imported when it is called: `--help` must not wait for torch.
import json
import sys
from dataclasses import asdict, replace
from importlib.metadata import version as installed
from pathlib import Path
from typing import Annotated

import typer

from softmax_temperature.runner.errors import InputError

EXIT_CODES = (
    "Exit codes: 0 done; 1 something is damaged; 2 wrong input, and one line that says what, where and what to do."
)

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=EXIT_CODES,
    help="Four papers on the temperature of the softmax, rebuilt by one pipeline; and its tools for your own data.",
)
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Seed = Annotated[int, typer.Option(min=0, help="Of everything that is drawn.")]
Params = Annotated[Path, typer.Option(help="The parameter file.")]
PARAMS = Path("params.yaml")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"softmax-temperature {installed('softmax-temperature')}")
        raise typer.Exit


def _profiles() -> str:
    names = sorted(path.stem for path in Path("profiles").glob("*.yaml") if path.stem != "defaults")
    return f"One of: {', '.join(names)}." if names else "The name of a file in profiles/ without its ending."


@app.callback()
def options(
    _: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    """Options of the whole command."""


@app.command(epilog=EXIT_CODES)
def profile(name: Annotated[str, typer.Argument(help=_profiles())], as_json: Json = False) -> None:
    """Write params.yaml from a profile."""
    from softmax_temperature.tools.profiles import apply_profile

    params = apply_profile(name)
    if as_json:
        print(params.model_dump_json(indent=1))
    else:
        print(f"params.yaml now says profile {name}. Next: softmax-temperature plan, dvc repro")


@app.command(epilog=EXIT_CODES)
def plan(params: Params = PARAMS, as_json: Json = False) -> None:
    """List what dvc repro would run, and the minutes of the last run."""
    from softmax_temperature.params import read_params
    from softmax_temperature.tools import plan as planning

    known = read_params(params)
    plans = planning.plan(known)
    print(json.dumps(planning.as_json(plans), indent=1) if as_json else planning.summary(plans, known))


@app.command(epilog=EXIT_CODES)
def verify(as_json: Json = False) -> None:
    """Compare artifacts with their manifests."""
    from softmax_temperature.tools import verify as verification

    if not Path("dvc.yaml").is_file():  # Where there is nothing to find, nothing damaged would be found either.
        raise InputError("no such file", where="dvc.yaml", remedy="Run this in the project's root folder.")
    found = verification.verify()
    if as_json:
        print(json.dumps(asdict(found), indent=1))
    else:
        counts = f"{found.artifacts} artifacts and {found.checkpoints} checkpoints: {len(found.problems)} problems"
        print("\n".join([*found.problems, counts]))
    if found.problems:
        raise typer.Exit(1)


@app.command(epilog=EXIT_CODES)
def scorecard(
    write: Annotated[Path | None, typer.Option(help="The Markdown file to write, as docs/scorecard.md.")] = None,
    as_json: Json = False,
) -> None:
    """Print the verdict on every claim, best evidence first."""
    from softmax_temperature.papers.shared import scorecard as cards

    if as_json:
        print(json.dumps(cards.all_claims(), indent=1))
    elif write is not None:
        cards.write_scorecard(write)
    else:
        print(cards.scorecard())


@app.command(epilog=EXIT_CODES)
def calibrate(
    logits: Annotated[
        Path,
        typer.Argument(
            metavar="LOGITS",
            help="Logits (n, classes) and labels (n,): npz, npy, safetensors, pt, csv or parquet. A table has a column "
            "label, and a column for each class.",
        ),
    ],
    labels: Annotated[Path | None, typer.Option(help="A file with the labels, if they lie apart.")] = None,
    validation: Annotated[Path | None, typer.Option(help="Logits and labels to fit the temperature on.")] = None,
    validation_labels: Annotated[Path | None, typer.Option(help="Its labels, if they lie apart.")] = None,
    probs: Annotated[bool, typer.Option("--probs", help="The file holds probabilities, not logits.")] = False,
    name: Annotated[str | None, typer.Option(help="The network, if logits is (networks, n, classes).")] = None,
    fit_on: Annotated[
        str | None,
        typer.Option(
            metavar="validation|half|all",
            help="Rows the temperature is fitted on: validation; a random half of every class, reporting on the other; "
            "or all, reporting on the same rows, which flatters. By default validation if there is, else half.",
        ),
    ] = None,
    bins: Annotated[int, typer.Option(help="Bins of the calibration errors and of the diagram.")] = 15,
    bootstrap: Annotated[int, typer.Option(help="Resamples for the 90 % intervals; 0 for none.")] = 1000,
    seed: Seed = 0,
    output: Annotated[Path | None, typer.Option(help="Folder to write; default: LOGITS-calibration.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page too, which needs no other file.")] = None,
    as_json: Json = False,
) -> None:
    """Report calibration before and after temperature scaling.

    Example: softmax-temperature calibrate logits.npz --html report.html
    """
    from softmax_temperature.tools.calibrate_files import LogitsFiles, calibrate_files

    files = LogitsFiles(logits, labels, validation, validation_labels)
    report, folder = calibrate_files(
        files,
        kind="probs" if probs else "logits",
        name=name,
        fit_on=fit_on,
        bins=bins,
        bootstrap=bootstrap,
        seed=seed,
        output=output,
        html=html,
    )
    if as_json:
        print(json.dumps(report.data | {"folder": str(folder)}, indent=1))
        return
    print(f"{report}\n\nWritten to {folder}: report.json, reliability.png, reliability.svg")
    if html is not None:
        print(f"Written to {html}")


@app.command(epilog=EXIT_CODES)
def suggest(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="EMBEDDINGS|IMAGE_FOLDER",
            help="Embeddings (n, dim) and labels (n,): npz, npy, safetensors, pt, csv or parquet; perhaps "
            "test_embeddings and test_labels. Or a folder with one folder of images per class.",
        ),
    ],
    labels: Annotated[Path | None, typer.Option(help="A file with the labels, if they lie apart.")] = None,
    test: Annotated[Path | None, typer.Option(help="Embeddings and labels to test on, for --verify.")] = None,
    test_labels: Annotated[Path | None, typer.Option(help="Its labels, if they lie apart.")] = None,
    backbone: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="For images: of params.yaml, or of timm or torchvision (timm/resnet18)."),
    ] = None,
    weights: Annotated[Path | None, typer.Option(help="A file of weights for a library's network.")] = None,
    download: Annotated[bool, typer.Option(help="Let the library fetch its own weights.")] = False,
    params: Params = PARAMS,
    limit: Annotated[int | None, typer.Option(min=1, help="At most this many images of each part.")] = None,
    heuristic: Annotated[Path | None, typer.Option(help="Another heuristic.json than the package's.")] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Search the best one too, and compare.")] = False,
    epochs: Annotated[int, typer.Option(min=1, help="Of that search.")] = 300,
    lr: Annotated[float, typer.Option(help="Of that search.")] = 3.0,
    seed: Seed = 0,
    device: Annotated[str, typer.Option(metavar="cpu|cuda", help="Where to compute.")] = "cpu",
    as_json: Json = False,
) -> None:
    """Suggest the inverse temperature of a cosine classifier.

    Example: softmax-temperature suggest embeddings.npz --verify --epochs 50
    """
    from softmax_temperature.heuristic.ridge import shipped
    from softmax_temperature.tools import suggest as suggesting
    from softmax_temperature.tools import suggest_data as reading

    known = suggesting.read_heuristic(heuristic) if heuristic else shipped()
    if data.is_dir():
        if backbone is None:
            raise InputError("is missing", where="--backbone", remedy="Name the network that embeds the images.")
        choice = reading.BackboneChoice(backbone, weights, download, params)
        train, held = reading.rows_of_images(data, choice, limit=limit, seed=seed, device=device)
    else:
        train, held = reading.rows_of_files(data, labels, test, test_labels)
    found = suggesting.suggestion(train, known, seed=seed)
    if verify:
        try:
            search = suggesting.search_best(train, held, found.rules, epochs=epochs, lr=lr, seed=seed, device=device)
        except ValueError as error:
            raise InputError(str(error), where="--verify", remedy=f"Give more rows, or a --lr below {lr}.") from error
        found = replace(found, search=search)
    print(json.dumps(found.as_json(), indent=1) if as_json else found)


def main() -> None:
    """Entry point: the user's errors are printed on one line and exit with 2."""
    try:
        app()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
