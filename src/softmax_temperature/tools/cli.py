"""The command `softmax-temperature`: the pipeline's profiles, plan and verification, and tools for one's own data."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from softmax_temperature.runner.errors import InputError, disk_faults

EXIT_CODES = (
    "Exit codes: 0 done; 1 something is damaged; 2 wrong input, and one line that says what, where and what to do."
)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    epilog=EXIT_CODES,
    help="Four papers on the temperature of the softmax, rebuilt by one pipeline.",
)
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@app.command(epilog=EXIT_CODES)
def profile(
    name: Annotated[str, typer.Argument(help="A profile: the name of a file in profiles/ without its ending.")],
    as_json: Json = False,
) -> None:
    """Write params.yaml from a profile.

    Example: softmax-temperature profile mini
    """
    from softmax_temperature.tools.profiles import apply_profile

    params = apply_profile(name)
    if as_json:
        print(params.model_dump_json(indent=1))
    else:
        print(f"params.yaml now says profile {name}. Next: softmax-temperature plan, dvc repro")


@app.command(epilog=EXIT_CODES)
def plan(
    params: Annotated[Path, typer.Option(help="The parameter file.")] = Path("params.yaml"),
    as_json: Json = False,
) -> None:
    """Say what dvc repro would do: stages, cells that stand or have to run, minutes and disk; changes nothing.

    Minutes are those of the profile's recorded run, on the machine in results/<profile>/environment.json; where there
    is none, shapes foretell them, and what a GPU needs, on one machine and on several (docs/scaling.md).

    Example: softmax-temperature plan
    """
    from softmax_temperature.params import read_params
    from softmax_temperature.tools import plan as planning
    from softmax_temperature.tools import plan_text

    known = read_params(params)
    plans = planning.plan(known)
    print(json.dumps(plan_text.as_json(plans, known), indent=1) if as_json else plan_text.summary(plans, known))


@app.command(epilog=EXIT_CODES)
def verify(as_json: Json = False) -> None:
    """Compare all artifacts with their manifests, results with dvc.lock, and the files in DVC's cache with their names.

    Exit code 1 when one is missing or damaged. What is damaged is set aside as *.damaged (results stay where they are),
    and dvc repro makes it again.

    Example: softmax-temperature verify
    """
    from softmax_temperature.tools import verification

    if not Path("dvc.yaml").is_file():  # Where there is nothing to find, nothing damaged would be found either.
        raise InputError("no such file", where="dvc.yaml", remedy="Run this in the project's root folder.")
    found = verification.verify()
    if as_json:
        print(json.dumps(asdict(found), indent=1))
    else:
        counts = f"{found.artifacts} artifacts, {found.results} results and {found.objects} objects in DVC's cache"
        counts += f": {len(found.problems)} problems"
        print("\n".join([*found.problems, counts]))
    if found.problems:
        raise typer.Exit(1)


@app.command(epilog=EXIT_CODES)
def scorecard(
    write: Annotated[Path | None, typer.Option(help="A Markdown file whose scorecard is replaced.")] = None,
    as_json: Json = False,
) -> None:
    """Print the verdict on every claim over all profiles with results, or write it into a file.

    Example: softmax-temperature scorecard --write README.md
    """
    from softmax_temperature.papers.shared import scorecard as cards

    if write is not None:
        cards.write_scorecard(write)
    elif as_json:
        print(json.dumps(cards.all_claims(), indent=1))
    else:
        print(cards.scorecard())


@app.command(epilog=EXIT_CODES)
def calibrate(
    logits: Annotated[
        Path,
        typer.Argument(
            metavar="LOGITS",
            help="A file with logits (n, classes) and labels (n,): npz, npy, safetensors, csv or parquet. A table has "
            "a column label, and a column for each class.",
        ),
    ],
    labels: Annotated[Path | None, typer.Option(help="A file with the labels, if they lie apart, as with npy.")] = None,
    validation: Annotated[
        Path | None, typer.Option(help="A second file of logits and labels, to fit the temperature on.")
    ] = None,
    validation_labels: Annotated[Path | None, typer.Option(help="Its labels, if they lie apart.")] = None,
    name: Annotated[
        str | None, typer.Option(help="The network, if logits is (networks, n, classes) and there are names.")
    ] = None,
    fit_on: Annotated[
        str | None,
        typer.Option(
            metavar="validation|half|all",
            help="Rows the temperature is fitted on: those of --validation, or the arrays validation_logits and "
            "validation_labels; a random half of every class, reporting on the other half; or all, reporting on the "
            "same rows, which flatters. By default validation if there is, else half.",
        ),
    ] = None,
    bins: Annotated[int, typer.Option(help="Bins of the calibration errors and of the diagram.")] = 15,
    bootstrap: Annotated[int, typer.Option(help="Resamples for the 90 % intervals; 0 for none.")] = 1000,
    seed: Annotated[int, typer.Option(help="Of the half, the resamples and the noise floor.")] = 0,
    output: Annotated[
        Path | None,
        typer.Option(help="Folder to write, by default LOGITS-calibration or LOGITS-NAME-calibration beside the file."),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write a page too, which needs no other file.")] = None,
    as_json: Json = False,
) -> None:
    """Report how well saved logits are calibrated, before and after temperature scaling, and draw the diagram.

    Writes report.json, reliability.png and reliability.svg.

    Example: softmax-temperature calibrate logits.npz --html report.html
    """
    from softmax_temperature.tools import calibrate as calibration
    from softmax_temperature.tools.calibration_summary import summary

    report, folder = calibration.calibrate(
        logits,
        labels=labels,
        validation=validation,
        validation_labels=validation_labels,
        name=name,
        fit_on=fit_on,
        bins=bins,
        bootstrap=bootstrap,
        seed=seed,
        output=output,
        html=html,
    )
    if as_json:
        print(json.dumps(report | {"folder": str(folder)}, indent=1))
        return
    print(f"{summary(report)}\n\nWritten to {folder}: report.json, reliability.png, reliability.svg")
    if html is not None:
        print(f"Written to {html}")


@app.command(epilog=EXIT_CODES)
def embed(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE",
            help="A folder of tar files in the form of WebDataset, in which 0007.jpg and 0007.cls are an image and its "
            "class; one such file; or a folder with a folder of images for each class.",
        ),
    ],
    backbone: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="A backbone of the parameter file; or a network of timm or torchvision, as in resnet18, "
            "timm/resnet18.a1_in1k, torchvision/resnet18.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FOLDER", help="The folder to write, or to go on with.")],
    weights: Annotated[
        Path | None, typer.Option(help="A safetensors file for a network of timm or torchvision.")
    ] = None,
    download: Annotated[bool, typer.Option(help="Let the library fetch its own weights if they are not here.")] = False,
    params: Annotated[
        Path, typer.Option(help="The parameter file; its section compute says how to run, unless options do.")
    ] = Path("params.yaml"),
    workers: Annotated[int | None, typer.Option(help="Shards at a time.")] = None,
    engine: Annotated[str | None, typer.Option(metavar="serial|processes|ray", help="Where the workers are.")] = None,
    device: Annotated[str | None, typer.Option(metavar="auto|cpu|cuda", help="Where to compute.")] = None,
    batch_size: Annotated[int, typer.Option(help="The most images that a worker holds at a time.")] = 64,
    images_per_shard: Annotated[int, typer.Option(help="Of class folders; a tar file is one shard.")] = 10_000,
    as_json: Json = False,
) -> None:
    """Embed a data set that need not fit in memory, shard by shard; started again, it makes those that are missing.

    Example: softmax-temperature embed images --backbone untrained-64 --out embedded --workers 2
    """
    from softmax_temperature.shards import command
    from softmax_temperature.shards.embedding import Extraction
    from softmax_temperature.stages.programs import exit_code
    from softmax_temperature.tools.suggest.choice import Wish

    def work() -> None:
        found = command.embed_for_user(
            source,
            Wish(backbone, weights, download, params),
            out,
            options={"workers": workers, "engine": engine, "device": device},
            extraction=Extraction(batch_size, images_per_shard),
        )
        print(json.dumps(found, indent=1) if as_json else command.summary(found))

    if code := exit_code(work):  # A signal ends it too, and its workers.
        raise typer.Exit(code)


@app.command(epilog=EXIT_CODES)
def suggest(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="EMBEDDINGS|IMAGE_FOLDER|SHARDS",
            help="A file with embeddings (n, dim) and labels (n,): npz, npy, safetensors, csv or parquet; perhaps "
            "test_embeddings and test_labels. Or a folder with a folder of images for each class, or with train/ and "
            "test/ that hold these. Or a folder that embed has written.",
        ),
    ],
    labels: Annotated[Path | None, typer.Option(help="A file with the labels, if they lie apart, as with npy.")] = None,
    test: Annotated[Path | None, typer.Option(help="A second file of embeddings and labels, for --verify.")] = None,
    test_labels: Annotated[Path | None, typer.Option(help="Its labels, if they lie apart.")] = None,
    backbone: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="For images: a backbone of the parameter file; or a network of timm or torchvision, as in resnet18, "
            "timm/resnet18.a1_in1k, torchvision/resnet18.",
        ),
    ] = None,
    weights: Annotated[
        Path | None, typer.Option(help="A safetensors file for a network of timm or torchvision.")
    ] = None,
    download: Annotated[bool, typer.Option(help="Let the library fetch its own weights if they are not here.")] = False,
    params: Annotated[Path, typer.Option(help="The parameter file.")] = Path("params.yaml"),
    limit: Annotated[
        int | None, typer.Option(help="At most so many images of each part, balanced over classes.")
    ] = None,
    save_embeddings: Annotated[
        Path | None, typer.Option(metavar="NAME.npz", help="Keep the images' embeddings for the next time.")
    ] = None,
    heuristic: Annotated[
        Path | None, typer.Option(help="Another heuristic.json than the one that comes with the package.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Search the best inverse temperature too, and say what each rule loses.")
    ] = False,
    epochs: Annotated[int | None, typer.Option(help="Of the search; by default as many as the study's.")] = None,
    lr: Annotated[float | None, typer.Option(help="Of the search; by default the study's.")] = None,
    seed: Annotated[int, typer.Option(help="Of drawn rows and of the search.")] = 0,
    device: Annotated[str, typer.Option(metavar="auto|cpu|cuda", help="Where to compute.")] = "auto",
    as_json: Json = False,
) -> None:
    """Suggest the inverse temperature of a cosine classifier from statistics of the embeddings.

    Prints the 23 statistics, the prediction with its 90 % interval, whether the data lie in the range that the
    heuristic was fitted on, and rules of thumb beside it.

    Example: softmax-temperature suggest embeddings.npz --verify --epochs 50
    """
    from softmax_temperature.tools import suggest as suggesting

    options = suggesting.Options(heuristic, verify, epochs, lr, seed, device)
    of_images = {"--backbone": backbone, "--weights": weights, "--limit": limit, "--save-embeddings": save_embeddings}
    if suggesting.is_sharded(data):
        _refuse_beside("embeddings in shards", of_images | {"--labels": labels, "--test": test})
        found = suggesting.suggest_for_shards(data, options)
    elif data.is_dir():
        _refuse_beside("an image folder", {"--labels": labels, "--test": test, "--test-labels": test_labels})
        if backbone is None:
            raise InputError(
                "is missing", where="--backbone", remedy="Name the network that turns images to embeddings."
            )
        wish = suggesting.Wish(backbone, weights, download, params)
        found = suggesting.suggest_for_images(data, wish, options, limit=limit, save=save_embeddings)
    else:
        _refuse_beside("a file of embeddings", of_images)
        found = suggesting.suggest_for_files(suggesting.EmbeddingFiles(data, labels, test, test_labels), options)
    print(json.dumps(found, indent=1) if as_json else suggesting.summary(found))


@app.command(name="fit-heuristic", epilog=EXIT_CODES)
def fit_heuristic(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="A profile's results, as results/collection.")],
    output: Annotated[Path, typer.Option(help="The file to write, for suggest --heuristic.")],
    as_json: Json = False,
) -> None:
    """Fit the heuristic that `suggest` asks on the pairs of a profile's results.

    Example: softmax-temperature fit-heuristic results/collection --output heuristic.json
    """
    from softmax_temperature.tools.suggest.study import write_study

    text = write_study(results, output)
    print(text if as_json else f"Written to {output}. Next: softmax-temperature suggest --heuristic {output} ...")


def _refuse_beside(data: str, options: Mapping[str, object]) -> None:
    """Refuse options that say nothing about such data."""
    for option, value in options.items():
        if value is not None:
            raise InputError(f"says nothing about {data}", where=option, remedy="Leave it out.")


def main() -> None:
    """Entry point: the user's errors are printed on one line and exit with 2."""
    try:
        with disk_faults():
            app()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
