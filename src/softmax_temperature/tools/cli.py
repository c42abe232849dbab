"""The command `softmax-temperature`: tools for users' own data and for the pipeline.

Commands are in the order in which they are used, which is also their order in `--help`.
A command imports its modules when it is called, so that `--help` does not wait for
torch.
"""

import atexit
import gc
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from softmax_temperature import __version__
from softmax_temperature.runner.console import (
    CLOSED,
    OutputClosed,
    checked_output,
    print_any_text,
    print_error,
)
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.loading import uncollected
from softmax_temperature.tools.options import (
    checked_bootstrap,
    checked_device,
    checked_lr,
    in_options,
    names,
    refuse_unused,
)

EXIT_CODES = (
    "Exit codes: 0, done; 1, damaged or not reproduced; 2, wrong input: one line names "
    "what is wrong, where, and the remedy."
)
TABLE = (
    "npz, npy, safetensors, pt, csv or parquet. A table has a column label, and "
    "columns numbered from 0: 0, 1, ... or logit_0, logit_1, ..."
)
COLUMNS = (
    "Columns of a table that hold the classes or dimensions, in this order; "
    "'logit_*' takes all columns of this name in the order of their numbers."
)
LOGITS = f"Logits (n, classes) and labels: {TABLE}"
BACKBONE = (
    "The network that embeds images: a name in params.yaml, or of timm or torchvision "
    "(timm/resnet18)."
)
FIT_ON = (
    "Without --validation: half fits the temperature on a random half of the rows and "
    "reports on the other; all uses all rows for both, which is optimistic."
)
DATA = (
    "Embeddings (n, dim) and labels, optionally test_embeddings and test_labels: "
    f"{TABLE} Or a folder with one folder of images per class."
)
NO_VALIDATION = "it needs validation rows (--validation)"
EPOCHS = 300
LR = 3.0
# The base class of Typer's usage errors, which Typer does not export.
UsageError: Any = typer.BadParameter.__base__
app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=EXIT_CODES,
    help=(
        "Calibrate classifiers by temperature, and reproduce four papers on the "
        "temperature of the softmax."
    ),
)
command = app.command(epilog=EXIT_CODES)
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of all random draws.")]
Labels = Annotated[
    Path | None,
    typer.Option(help="File of the labels, if they are in a separate file."),
]
Columns = Annotated[str, typer.Option(metavar="NAME,...", help=COLUMNS)]
OtherLabels = Annotated[
    Path | None,
    typer.Option(help="File of their labels, if they are in a separate file."),
]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"softmax-temperature {__version__}")
        raise typer.Exit


def _profiles() -> str:
    """The help text for the argument of `profile`, which lists the profiles."""
    stems = {path.stem for path in Path("profiles").glob("*.yaml")}
    profiles = sorted(stems - {"defaults"})
    if not profiles:
        return "The name of a file in profiles/ without its ending."
    return f"One of: {', '.join(profiles)}."


def _show(as_json: bool, data: object, text: object) -> None:
    if as_json:
        print(json.dumps(data, indent=1))
    else:
        print(text)


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
        typer.Option("--sample", help="Use the sample that comes with the package."),
    ] = False,
    columns: Columns = "",
    fit_on: Annotated[
        Literal["half", "all"] | None,
        typer.Option(metavar="half|all", help=FIT_ON, show_default="half"),
    ] = None,
    bins: Annotated[
        int,
        typer.Option(min=1, help="Bins of the calibration errors and the diagram."),
    ] = 15,
    ignore_index: Annotated[
        int, typer.Option(help="Leave out rows and pixels with this label.")
    ] = -100,
    bootstrap: Annotated[
        int,
        typer.Option(
            min=0, help="Resamples for the 90 % intervals, at least 19; 0 for none."
        ),
    ] = 1000,
    seed: Seed = 0,
    output: Annotated[
        Path | None, typer.Option(help="Folder to write; default: LOGITS-calibration.")
    ] = None,
    html: Annotated[
        Path | None, typer.Option(help="Also write a self-contained page here.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Report calibration before and after temperature scaling.

    Example: softmax-temperature calibrate logits.npz --html report.html
    """
    if (logits is None) is not sample:
        raise InputError(
            "give either a file or --sample",
            where="LOGITS",
            remedy="Give your logits' path.",
        )
    if sample:
        unused = {"--labels": labels, "--columns": columns, "--probs": probs}
        refuse_unused(unused, "--sample provides logits, labels and columns")
    if validation is not None:
        refuse_unused({"--fit-on": fit_on}, "--validation provides the rows to fit on")
    else:
        refuse_unused({"--validation-labels": validation_labels}, NO_VALIDATION)
    if html is not None and html.is_dir():
        raise InputError(
            "is a folder", where=f"--html {html}", remedy="Give the page's path."
        )
    with uncollected():
        from softmax_temperature.tools.arrays import SAMPLE
        from softmax_temperature.tools.calibrate import calibrate_files
    # On exit Python collects garbage once more, which takes a third as long as
    # importing torch. This command skips that collection. The other commands do not,
    # because some of them use libraries that complain about objects left at exit.
    atexit.register(gc.freeze)

    settings: dict[str, Any] = {
        "kind": "probs" if probs else "logits",
        "columns": names(columns),
        "bins": bins,
        "ignore_index": ignore_index,
        "seed": seed,
        "validation": validation,
        "validation_labels": validation_labels,
        "bootstrap": checked_bootstrap(bootstrap),
        "html": html,
    }
    if fit_on:
        settings["fit_on"] = fit_on
    stem = Path("sample") if logits is None else logits.parent / logits.stem
    folder = output or Path(f"{stem}-calibration")
    report = calibrate_files(logits or SAMPLE, labels, output=folder, **settings)
    written = f"Written to {folder}: report.json, reliability.png, reliability.svg"
    if html:
        written += f"; and {html}"
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
        bool, typer.Option("--download", help="Let the library download its weights.")
    ] = False,
    heuristic: Annotated[
        Path | None, typer.Option(help="A heuristic.json to use instead of ours.")
    ] = None,
    columns: Columns = "",
    verify: Annotated[
        bool, typer.Option("--verify", help="Also search for the best value.")
    ] = False,
    epochs: Annotated[
        int | None,
        typer.Option(min=1, help="Epochs of the search.", show_default=str(EPOCHS)),
    ] = None,
    lr: Annotated[
        float | None,
        typer.Option(help="Learning rate of the search.", show_default=str(LR)),
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
    with uncollected():
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
        train, test_rows = suggesting.checked_parts(*arrays)
        suggestion = suggesting.suggest_temperature(*train, heuristic=ridge, seed=seed)
    if verify:
        with user_data("--verify", f"Give more rows, or a --lr below {lr}."):
            suggestion = suggesting.searched(
                suggestion,
                train,
                test_rows,
                epochs=epochs or EPOCHS,
                lr=lr,
                seed=seed,
                device=device,
            )
    _show(as_json, asdict(suggestion), in_options(str(suggestion)))


def _refuse_unused_by_suggest(
    data: Path, options: dict[str, Any], *, verify: bool
) -> None:
    """Refuse options that `suggest` does not use for this kind of data."""
    if not data.exists():
        raise InputError(
            "no such file or folder", where=str(data), remedy="Correct the path."
        )
    of_files = ["--labels", "--test", "--test-labels", "--columns"]
    of_images = ["--backbone", "--download"]
    of_search = ["--test", "--epochs", "--lr"]
    if data.is_dir():
        reason = f"{data} is a folder of images, whose subfolders are the labels"
        refuse_unused({name: options[name] for name in of_files}, reason)
    else:
        reason = f"{data} is not a folder of images"
        refuse_unused({name: options[name] for name in of_images}, reason)
        of_search.append("--device")
    if not verify:
        reason = "only --verify searches"
        refuse_unused({name: options[name] for name in of_search}, reason)


def _read_heuristic(path: Path | None) -> Any:
    """Read the heuristic from the file `path`; None if `path` is None."""
    from pydantic import ValidationError

    from softmax_temperature.heuristic.ridge import RidgeHeuristic
    from softmax_temperature.tools.arrays import user_data

    if path is None:
        return None
    remedy = "Give results/PROFILE/classifier_temperature/heuristic.json."
    with user_data(path, remedy):
        text = path.read_text(encoding="utf-8")
        try:
            return RidgeHeuristic.model_validate_json(text)
        except ValidationError as error:
            fault = error.errors()[0]["msg"]
            raise ValueError(f"holds no heuristic ({fault})") from error


def _rows_of_images(folder: Path, backbone: str | None, **options: Any) -> Any:
    """Embed the images in `folder` for `suggest`, and read their labels."""
    if backbone is None:
        raise InputError(
            "is missing",
            where="--backbone",
            remedy="Name the network that embeds the images.",
        )
    from softmax_temperature.tools.images import rows_of_images

    return rows_of_images(folder, backbone, **options)


@command
def scorecard(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME",
            help="classifier_temperature, focal, cooling, temperature_check, or a "
            "claim such as cooling-calibrates. Default: all four papers.",
        ),
    ] = None,
    write: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            help="Write the verdicts into this Markdown file, docs/scorecard.md, and "
            "a page for each paper into the folder beside it.",
        ),
    ] = None,
) -> None:
    """Print the verdict on each claim, and what each study measured.

    Example: softmax-temperature scorecard focal
    """
    from softmax_temperature.tools import verdicts

    if write is None:
        print(verdicts.scorecard_text(names=names or ()))
        return
    refuse_unused({"NAME": names or None}, "--write always writes all papers")
    verdicts.write_scorecard(write)


@command
def profile(
    name: Annotated[str, typer.Argument(help=_profiles())],
    force: Annotated[
        bool, typer.Option("--force", help="Discard edits in params.yaml.")
    ] = False,
) -> None:
    """Write params.yaml from a profile.

    If params.yaml has values that are neither in the profile that it names nor
    committed, nothing is written, because they would be lost.

    Example: softmax-temperature profile smoke
    """
    from softmax_temperature.runner.artifacts import write_text
    from softmax_temperature.tools.profiles import refuse_edited, render_profile

    # Render first, so that an invalid profile raises an error before anything is
    # written.
    text, _ = render_profile(name)
    path = Path("params.yaml")
    if not force:
        refuse_edited(path, text, name)
    write_text(path, text)
    print(f"params.yaml is now profile {name}.")
    print("Next: softmax-temperature plan, then dvc repro")


@command
def convert(
    name: Annotated[str, typer.Argument(help="The data set: imdb, ade20k, ...")],
    archives: Annotated[
        list[Path],
        typer.Argument(
            metavar="ARCHIVE...", exists=True, dir_okay=False, help="Its tar or zip."
        ),
    ],
    root: Annotated[
        Path, typer.Option(help="The folder to write into: data.root.")
    ] = Path("data/raw"),
) -> None:
    """Write a data set from its published archives into data.root.

    Example: softmax-temperature convert imdb aclImdb_v1.tar.gz
    """
    from softmax_temperature.data.conversion import convert as write

    counts = write(name, archives, root)
    parts = ", ".join(f"{count:,} {part}" for part, count in counts.items())
    print(f"{root / name}: {parts}")


@command
def plan(
    params: Annotated[Path, typer.Option(help="The parameter file.")] = Path(
        "params.yaml"
    ),
    as_json: Json = False,
) -> None:
    """List what dvc repro would run, and how long it took last time."""
    from softmax_temperature.params import read_params

    with uncollected():
        from softmax_temperature.tools import project

    parameters = read_params(params)
    plans = project.plan(parameters)
    summary = project.summary(plans, parameters)
    _show(as_json, [asdict(stage) for stage in plans], summary)


@command
def compare(
    revision: Annotated[
        str, typer.Argument(help="The commit, branch or tag to compare with.")
    ] = "HEAD",
    study: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The study.", show_default="params.yaml's profile"
        ),
    ] = None,
    other: Annotated[
        str | None,
        typer.Option(
            "--with", metavar="NAME", help="Another study, in place of a commit."
        ),
    ] = None,
    after_repro: Annotated[
        bool,
        typer.Option(
            "--after-repro",
            help="dvc repro has just run; skip the check that nothing is left to run.",
        ),
    ] = False,
) -> None:
    """Check whether the results in this folder match those of a commit.

    Counts the files that are equal, and names the verdicts that differ and the largest
    relative difference between numbers. Exits with 1 if results are not reproduced, or
    if they are equal but were not computed here with the parameters of params.yaml.
    """
    from softmax_temperature.params import read_params

    with uncollected():
        from softmax_temperature.tools import compare as comparing

    first = study or read_params(Path("params.yaml")).profile
    if other is not None:
        comparison = comparing.compare_studies(first, other)
    else:
        comparison = comparing.compare_with_commit(first, revision)
        if comparison.agrees and not after_repro:
            # Committed files equal themselves, whether or not anything has run.
            with uncollected():
                from softmax_temperature.tools import project
            comparison.not_run = project.not_run(first)
    print(comparison)
    if not comparison.reproduced:
        raise typer.Exit(1)


@command
def verify(as_json: Json = False) -> None:
    """Compare artifacts and checkpoints with their recorded digests."""
    with uncollected():
        from softmax_temperature.tools import project

    # Refuse any other folder: it has no artifacts, so the check would pass without
    # having checked anything.
    if not Path("dvc.yaml").is_file():
        raise InputError(
            "no such file",
            where="dvc.yaml",
            remedy="Run this in the project's root folder.",
        )
    verification = project.verify()
    problems = verification.problems
    counts = (
        f"{verification.artifacts} artifacts and {verification.checkpoints} "
        f"checkpoints: {len(problems)} problems"
    )
    _show(as_json, verification._asdict(), "\n".join([*problems, counts]))
    if problems:
        raise typer.Exit(1)


@command
def rejudge(
    profiles: Annotated[
        list[str] | None, typer.Argument(metavar="PROFILE", help="Default: all.")
    ] = None,
    papers: Annotated[
        list[str] | None,
        typer.Option(
            "--paper",
            metavar="NAME",
            help="Rejudge this paper only; may be repeated.",
            show_default="all",
        ),
    ] = None,
) -> None:
    """Rewrite tables and verdicts from the records in results/.

    Use it after changing a paper's tables or claims. This writes the tables,
    claims.json and metrics.json in results/PROFILE/PAPER, needs no data/, and names
    every file and every verdict that changed. tables/deviations.csv stays as it is,
    because it describes the code that trained the networks.

    Example: softmax-temperature rejudge mini --paper focal
    """
    with uncollected():
        from softmax_temperature.tools import verdicts

    print(verdicts.rejudge(profiles or (), papers or ()))


@command
def register() -> None:
    """Add new and changed claims to data/registered_claims.csv.

    Use it before a study runs and after changing a claim; run rejudge first, so that
    studies with results are judged by the present claims. Each change needs a line in
    docs/protocol_history.md; this command prints the digest that the line must contain.
    """
    from softmax_temperature.tools import verdicts

    lines = verdicts.register()
    print("\n".join([*lines, f"{len(lines)} rows added"]))


def main() -> None:
    """Run the command; if the user made an error, print one line and exit with 2."""
    print_any_text()
    # Figures are written to files. If the user's variable holds a name that matplotlib
    # does not know, the import of matplotlib raises an error.
    os.environ["MPLBACKEND"] = "agg"
    try:
        with checked_output():
            code = app(standalone_mode=False)
        sys.exit(code)
    except OutputClosed:
        sys.exit(CLOSED)
    except InputError as error:
        line = str(error)
    except ModuleNotFoundError as error:
        line = f"needs the package {error.name}. Run: pip install '.[pipeline]'"
    except UsageError as error:
        line = error.format_message()
        if "\n" in line:
            # The command was called without arguments: typer raises the help as an
            # error.
            error.show()
            sys.exit(error.exit_code)
        line = line.replace("Value error, ", "")
        end = "" if line.endswith((".", "?")) else "."
        inside = error.ctx is not None and error.ctx.parent is not None
        subcommand = f" {error.ctx.info_name}" if inside else ""
        line = f"{line}{end} See: softmax-temperature{subcommand} --help"
    print_error(line)
    sys.exit(2)
