"""The command `softmax-temperature`: the pipeline's profiles, plan and verification,
and tools for one's own data.
"""

# A command's module is imported when it is called: `--help` must not wait for torch.
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from softmax_temperature import __version__
from softmax_temperature.runner.errors import InputError
from softmax_temperature.tools.options import (
    checked_device,
    checked_lr,
    names,
    refuse_unused,
)

EXIT_CODES = "Exit codes: 0 done; 1 something is damaged; 2 wrong input, one line saying what, where and what to do."
TABLE = (
    "npz, npy, safetensors, pt, csv or parquet; a table has a column label, and "
    "columns numbered from 0: 0, 1, ... or logit_0, logit_1, ..."
)
COLUMNS = (
    "Columns of tables to take for the classes or dimensions, in this order; "
    "'logit_*' takes all of this name in the order of their numbers."
)
LOGITS = f"Logits (n, classes) and labels. {TABLE}"
BACKBONE = "For images: of params.yaml, or of timm or torchvision (timm/resnet18)."
FIT_ON = "Without validation rows: fit on a random half of every class, report on the other; or all, which flatters."
DATA = f"Embeddings (n, dim) and labels, perhaps test_embeddings and test_labels. {TABLE} Or a folder of class folders."
NO_VALIDATION = "there are no validation rows, --validation"
EPOCHS = 300
LR = 3.0
UsageError: Any = typer.BadParameter.__base__  # Typer does not export it.
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=EXIT_CODES,
    help="Four papers on the temperature of the softmax, rebuilt by one pipeline; and its tools for your own data.",
)
command = app.command(epilog=EXIT_CODES)
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Seed = Annotated[int, typer.Option(min=0, help="Of everything that is drawn.")]
Labels = Annotated[
    Path | None, typer.Option(help="A file with the labels, if they lie apart.")
]
Columns = Annotated[str, typer.Option(metavar="NAME,...", help=COLUMNS)]
OtherLabels = Annotated[
    Path | None, typer.Option(help="Its labels, if they lie apart.")
]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"softmax-temperature {__version__}")
        raise typer.Exit


def _profiles() -> str:
    names = sorted(
        path.stem for path in Path("profiles").glob("*.yaml") if path.stem != "defaults"
    )
    return (
        f"One of: {', '.join(names)}."
        if names
        else "The name of a file in profiles/ without its ending."
    )


def _show(as_json: bool, data: object, text: object) -> None:
    print(json.dumps(data, indent=1) if as_json else text)


@app.callback()
def options(
    _: Annotated[
        bool,
        typer.Option(
            "--version", callback=_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Options of the whole command."""


@command
def profile(name: Annotated[str, typer.Argument(help=_profiles())]) -> None:
    """Write params.yaml from a profile."""
    from softmax_temperature.runner.artifacts import write_text
    from softmax_temperature.tools.profiles import render_profile

    write_text(
        Path("params.yaml"), render_profile(name)[0]
    )  # Nothing is written unless all of it is valid.
    print(
        f"params.yaml now says profile {name}. Next: softmax-temperature plan, dvc repro"
    )


@command
def plan(
    params: Annotated[Path, typer.Option(help="The parameter file.")] = Path(
        "params.yaml"
    ),
    as_json: Json = False,
) -> None:
    """List what dvc repro would run, and the minutes of the last run."""
    from softmax_temperature.params import read_params
    from softmax_temperature.tools import project

    plans = project.plan(known := read_params(params))
    _show(as_json, [asdict(stage) for stage in plans], project.summary(plans, known))


@command
def verify(as_json: Json = False) -> None:
    """Compare artifacts with their manifests."""
    from softmax_temperature.tools import project

    if (
        not Path("dvc.yaml").is_file()
    ):  # Where there is nothing to find, nothing damaged would be found either.
        raise InputError(
            "no such file",
            where="dvc.yaml",
            remedy="Run this in the project's root folder.",
        )
    found = project.verify()
    counts = f"{found.artifacts} artifacts and {found.checkpoints} checkpoints: {len(found.problems)} problems"
    _show(as_json, found._asdict(), "\n".join([*found.problems, counts]))
    if found.problems:
        raise typer.Exit(1)


@command
def scorecard(
    write: Annotated[
        Path | None,
        typer.Option(
            exists=True, help="The Markdown file to write, as docs/scorecard.md."
        ),
    ] = None,
) -> None:
    """Print the verdict on every claim, decided ones first."""
    from softmax_temperature.tools import verdicts

    if write is not None:
        verdicts.write_scorecard(write)
    else:
        print(verdicts.scorecard())


@command
def rejudge(
    profiles: Annotated[
        list[str] | None, typer.Argument(metavar="PROFILE", help="Default: all.")
    ] = None,
) -> None:
    """Write tables and verdicts anew from the records in results/.

    After a change of a paper's tables or claims: writes the tables, claims.json and
    metrics.json in results/PROFILE/PAPER, without data/, and prints each verdict that
    changed. Deviations stay those of the run.
    """
    from softmax_temperature.tools import verdicts

    changes = verdicts.rejudge(profiles or ())
    print("\n".join([*changes, f"{len(changes)} verdicts changed"]))


@command
def calibrate(
    logits: Annotated[
        Path | None, typer.Argument(metavar="LOGITS", help=LOGITS)
    ] = None,
    labels: Labels = None,
    validation: Annotated[
        Path | None, typer.Option(help="Logits and labels to fit the temperature on.")
    ] = None,
    validation_labels: OtherLabels = None,
    probs: Annotated[
        bool, typer.Option("--probs", help="The file holds probabilities, not logits.")
    ] = False,
    sample: Annotated[
        bool,
        typer.Option(
            "--sample", help="Try it on the sample that comes with the package."
        ),
    ] = False,
    columns: Columns = "",
    fit_on: Annotated[
        Literal["half", "all"] | None,
        typer.Option(metavar="half|all", help=FIT_ON, show_default="half"),
    ] = None,
    bins: Annotated[
        int,
        typer.Option(min=1, help="Bins of the calibration errors and of the diagram."),
    ] = 15,
    bootstrap: Annotated[
        int, typer.Option(min=0, help="Resamples for the 90 % intervals; 0 for none.")
    ] = 1000,
    seed: Seed = 0,
    output: Annotated[
        Path | None, typer.Option(help="Folder to write; default: LOGITS-calibration.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Write a page too, which needs no other file.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Report calibration before and after temperature scaling.

    Example: softmax-temperature calibrate logits.npz --html report.html
    """
    if (logits is None) is not sample:
        raise InputError(
            "needs a file or --sample, one of them",
            where="LOGITS",
            remedy="Give your logits' path.",
        )
    if sample:
        unused = {"--labels": labels, "--columns": columns, "--probs": probs}
        refuse_unused(unused, "the sample has logits and labels of its own")
    if validation is not None:
        refuse_unused({"--fit-on": fit_on}, "--validation says what to fit on")
    else:
        refuse_unused({"--validation-labels": validation_labels}, NO_VALIDATION)
    if html is not None and html.is_dir():
        raise InputError(
            "is a folder", where=f"--html {html}", remedy="Give the page's path."
        )
    from softmax_temperature.tools.arrays import SAMPLE
    from softmax_temperature.tools.calibrate import calibrate_files

    given: dict[str, Any] = {
        "kind": "probs" if probs else "logits",
        "columns": names(columns),
        "fit_on": fit_on or "half",
        "bins": bins,
        "seed": seed,
        "validation": validation,
        "validation_labels": validation_labels,
        "bootstrap": bootstrap,
        "html": html,
    }
    stem = Path("sample") if logits is None else logits.parent / logits.stem
    folder = output or Path(f"{stem}-calibration")
    report = calibrate_files(logits or SAMPLE, labels, output=folder, **given)
    written = f"Written to {folder}: report.json, reliability.png, reliability.svg{f'; and {html}' if html else ''}"
    _show(as_json, report.data | {"folder": str(folder)}, f"{report}\n\n{written}")


@command
def suggest(
    data: Annotated[Path, typer.Argument(metavar="EMBEDDINGS|IMAGE_FOLDER", help=DATA)],
    labels: Labels = None,
    test: Annotated[
        Path | None,
        typer.Option(help="Embeddings and labels to test on, for --verify."),
    ] = None,
    test_labels: OtherLabels = None,
    backbone: Annotated[str | None, typer.Option(metavar="NAME", help=BACKBONE)] = None,
    download: Annotated[
        bool, typer.Option("--download", help="Let the library fetch its own weights.")
    ] = False,
    heuristic: Annotated[
        Path | None, typer.Option(help="Another heuristic.json than the package's.")
    ] = None,
    columns: Columns = "",
    verify: Annotated[
        bool, typer.Option("--verify", help="Search the best one too, and compare.")
    ] = False,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Of that search.", show_default=str(EPOCHS)),
    ] = None,
    lr: Annotated[
        float | None, typer.Option(help="Of that search.", show_default=str(LR))
    ] = None,
    seed: Seed = 0,
    device: Annotated[
        str | None,
        typer.Option(
            metavar="cpu|cuda", help="Where to embed and search.", show_default="cpu"
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Suggest the inverse temperature of a cosine classifier.

    Example: softmax-temperature suggest embeddings.npz --verify --epochs 50
    """
    from softmax_temperature.tools import suggest as suggesting
    from softmax_temperature.tools.arrays import read_rows, user_data

    options = {
        "--labels": labels,
        "--test": test,
        "--test-labels": test_labels,
        "--columns": columns,
        "--backbone": backbone,
        "--download": download,
        "--epochs": epochs,
        "--lr": lr,
        "--device": device,
    }
    _refuse_unused_by_suggest(data, options, verify=verify)
    device = checked_device(device or "cpu")
    lr = checked_lr(LR if lr is None else lr)
    if data.is_dir():
        arrays = _rows_of_images(data, backbone, download=download, device=device)
    else:
        arrays = read_rows(
            "embeddings",
            data,
            labels,
            "test",
            test,
            test_labels,
            columns=names(columns),
        )
    ridge = _read_heuristic(heuristic)
    paths = (data, labels, test, test_labels)
    where = ", ".join(str(path) for path in paths if path)
    with user_data(where, "Correct it."):
        train, held = suggesting.checked_parts(*arrays)
        found = suggesting.suggest_temperature(*train, heuristic=ridge, seed=seed)
    if verify:
        with user_data("--verify", f"Give more rows, or a --lr below {lr}."):
            found = suggesting.searched(
                found,
                train,
                held,
                epochs=epochs or EPOCHS,
                lr=lr,
                seed=seed,
                device=device,
            )
    _show(as_json, asdict(found), found)


def _refuse_unused_by_suggest(
    data: Path, options: dict[str, Any], *, verify: bool
) -> None:
    """Refuse options that `suggest` would not read for these data."""
    if not data.exists():
        raise InputError(
            "no such file or folder", where=str(data), remedy="Correct the path."
        )
    of_files = ["--labels", "--test", "--test-labels", "--columns"]
    of_images = ["--backbone", "--download"]
    of_search = ["--test", "--epochs", "--lr"]
    if data.is_dir():
        reason = f"{data} is a folder of images, whose labels are in it"
        refuse_unused({name: options[name] for name in of_files}, reason)
    else:
        reason = f"{data} is no folder of images"
        refuse_unused({name: options[name] for name in of_images}, reason)
        of_search.append("--device")
    if not verify:
        reason = "nothing is searched without --verify"
        refuse_unused({name: options[name] for name in of_search}, reason)


def _read_heuristic(path: Path | None) -> Any:
    """The heuristic of a file, or None."""
    from softmax_temperature.heuristic.ridge import RidgeHeuristic
    from softmax_temperature.tools.arrays import user_data

    if path is None:
        return None
    remedy = "Give results/PROFILE/classifier_temperature/heuristic.json."
    with user_data(path, remedy):
        return RidgeHeuristic.model_validate_json(path.read_text(encoding="utf-8"))


def _rows_of_images(folder: Path, backbone: str | None, **options: Any) -> Any:
    """The embeddings of an image folder, through the backbone that embeds them."""
    if backbone is None:
        raise InputError(
            "is missing",
            where="--backbone",
            remedy="Name the network that embeds the images.",
        )
    from softmax_temperature.tools.images import rows_of_images

    return rows_of_images(folder, backbone, **options)


def main() -> None:
    """Entry point: the user's errors are printed on one line and exit with 2."""
    try:
        sys.exit(app(standalone_mode=False))
    except InputError as error:
        line = str(error)
    except ModuleNotFoundError as error:
        line = f"needs the package {error.name}. Run: pip install '.[pipeline]'"
    except UsageError as error:
        line = error.format_message()
        if "\n" in line:  # The help, where there are no arguments.
            error.show()
            sys.exit(error.exit_code)
        line = line.replace("Value error, ", "")
        end = "" if line.endswith((".", "?")) else "."
        inside = error.ctx is not None and error.ctx.parent is not None
        subcommand = f" {error.ctx.info_name}" if inside else ""
        line = f"{line}{end} See: softmax-temperature{subcommand} --help"
    print(f"error: {line}", file=sys.stderr)
    sys.exit(2)
