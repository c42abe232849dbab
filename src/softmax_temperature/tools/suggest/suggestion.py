"""A suggestion: statistics, what the heuristic and the rules of thumb make of them, and perhaps a search beside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from softmax_temperature.dataset_statistics import describe
from softmax_temperature.heuristic import lower_bound_from_classes, square_root_of_dimension
from softmax_temperature.runner.errors import InputError, nearest
from softmax_temperature.tools.suggest.choice import Wish, load_choice
from softmax_temperature.tools.suggest.embedded import Embedded, EmbeddingFiles, read_embedded, save_embedded
from softmax_temperature.tools.suggest.images import embed_folder, read_image_folder
from softmax_temperature.tools.suggest.sharded import Sharded, read_sharded
from softmax_temperature.tools.suggest.study import Study, read_study, shipped_study
from softmax_temperature.tools.suggest.verification import search_optimum

HEURISTIC = "heuristic"
DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class Options:
    """What does not say where the data are.

    Attributes:
        heuristic: a file to use instead of the heuristic that comes with the package.
        verify: whether to search the best inverse temperature too.
        epochs: of that search; None for as many as the heuristic's own searches had.
        lr: of that search, likewise.
        seed: of drawn rows and of the search, at least 0.
        device: "auto", "cpu" or "cuda".
    """

    heuristic: Path | None = None
    verify: bool = False
    epochs: int | None = None
    lr: float | None = None
    seed: int = 0
    device: str = "auto"


def suggest_for_files(files: EmbeddingFiles, options: Options) -> dict[str, Any]:
    """Suggest an inverse temperature for labelled embeddings in files; returns what `suggestion` does.

    Raises:
        InputError: a file, an array or an option is not as it should be.
    """
    study, device = _prepared(options)
    return suggestion(read_embedded(files), study, options, device)


def suggest_for_images(
    folder: Path, wish: Wish, options: Options, *, limit: int | None = None, save: Path | None = None
) -> dict[str, Any]:
    """Suggest an inverse temperature for class folders of images and a backbone.

    Args:
        folder: see `images.read_image_folder`.
        wish: the backbone.
        options: all else.
        limit: at most so many images of each part, balanced over classes.
        save: an npz file to write the embeddings to, for the next time.

    Returns:
        What `suggestion` does, and `backbone`, what was loaded.

    Raises:
        InputError: an image, the backbone or an option is not as it should be.
    """
    study, device = _prepared(options)
    _check_count("--limit", limit)
    if save is not None and (save.suffix != ".npz" or not save.parent.is_dir()):
        raise InputError("is no npz file in a folder that is there", where=str(save), remedy="Give NAME.npz.")
    images = read_image_folder(folder, limit=limit, seed=options.seed)
    backbone = load_choice(wish)
    data = embed_folder(folder, images, backbone, device=device)
    if save is not None:
        save_embedded(data, save)
    return suggestion(data, study, options, device) | {"backbone": backbone.provenance}


def suggest_for_shards(folder: Path, options: Options) -> dict[str, Any]:
    """Suggest an inverse temperature for embeddings in shards, which need not fit in memory.

    Statistics are those of a random sample of the rows to train on, but for the numbers of rows and classes, which are
    those of all; a search trains on all rows.

    Args:
        folder: what `softmax-temperature embed` has written.
        options: all else.

    Returns:
        What `suggestion` does, and `backbone`.

    Raises:
        InputError: the folder or an option is not as it should be.
    """
    study, device = _prepared(options)
    data = read_sharded(folder, seed=options.seed)
    return suggestion(data, study, options, device) | {"backbone": data.shards.index.backbone}


def suggestion(data: Embedded | Sharded, study: Study, options: Options, device: str) -> dict[str, Any]:
    """What the statistics of the rows to train on say; plain values, ready for JSON.

    Returns:
        `rows`: numbers of "train" and "test" rows, how many of the former were "described", and whether the latter were
        "held_out" of the former.
        `statistics`: the 23.
        `prediction`: `inverse_temperature`, its interval `low` to `high` of share `level`, `linear` (the regression's
        own value, before clipping to the searched range), `inside` (whether all `used` statistics lie in the range that
        the heuristic was fitted on) and `used`, by name `value`, `low` and `high`.
        `outside`: statistics, used or not, beyond those of the study.
        `rules`: by name, an inverse temperature.
        `accuracy_lost`: by rule of the study, what it cost there.
        `study`: which it was.
        `search`: None, or what `verification.search_optimum` returns.
    """
    held_out = False
    if options.verify:
        data, held_out = data.with_test(options.seed)
    statistics = describe(*data.described, seed=options.seed) | _counts(data)
    estimate = study.heuristic.predict(statistics)
    rules = {
        HEURISTIC: estimate.inverse_temperature,
        "square root of dimension": float(square_root_of_dimension(statistics["dim"])),
        "lower bound from classes": float(lower_bound_from_classes(statistics["n_classes"])),
        "none (1)": 1.0,
    }
    if study.median_inverse_temperature is not None:
        rules["median of the study"] = study.median_inverse_temperature
    used = {term.statistic: term for term in study.heuristic.terms}
    return {
        "rows": {
            "train": data.train_rows,
            "test": data.test_rows,
            "described": len(data.described[1]),
            "held_out": held_out,
        },
        "statistics": statistics,
        "prediction": {
            "inverse_temperature": estimate.inverse_temperature,
            "low": estimate.low,
            "high": estimate.high,
            "level": study.heuristic.level,
            "linear": estimate.linear,
            "inside": estimate.inside,
            "used": {n: {"value": statistics[n], "low": term.low, "high": term.high} for n, term in used.items()},
        },
        "outside": study.outside(statistics),
        "rules": rules,
        "accuracy_lost": study.accuracy_lost,
        "study": {
            "profile": study.profile,
            "pairs_sha256": study.pairs_sha256,
            "pairs": study.heuristic.n_pairs,
            "datasets": list(study.heuristic.datasets),
        },
        "search": _search(data, study, rules, options, device) if options.verify else None,
        "backbone": None,
    }


def _counts(data: Embedded | Sharded) -> dict[str, float]:
    """Of a sample's statistics, those that are known of all rows."""
    if isinstance(data, Embedded):
        return {}
    rows, classes = float(data.train_rows), float(data.classes)
    return {"n_samples": rows, "n_classes": classes, "avg_samp_class": rows / classes}


def _search(
    data: Embedded | Sharded, study: Study, rules: dict[str, float], options: Options, device: str
) -> dict[str, Any]:
    epochs = options.epochs or study.search.epochs
    search = study.search if options.lr is None else study.search.model_copy(update={"lr": options.lr})
    return search_optimum(data, search, rules, epochs=epochs, seed=options.seed, device=device)


def _prepared(options: Options) -> tuple[Study, str]:
    """The study and the device, after a look at the options."""
    _check_count("--epochs", options.epochs)
    if options.seed < 0:
        raise InputError(f"is {options.seed}", where="--seed", remedy="Give at least 0.")
    if options.lr is not None and not 0 < options.lr < math.inf:
        raise InputError(f"is {options.lr}", where="--lr", remedy="Give a number above 0.")
    if options.device not in DEVICES:
        raise InputError(
            f"unknown device {options.device!r}", where="--device", remedy=nearest(options.device, DEVICES)
        )
    has_gpu = torch.cuda.is_available()
    if options.device == "cuda" and not has_gpu:
        raise InputError("there is no CUDA device here", where="--device", remedy="Give cpu or auto.")
    device = ("cuda" if has_gpu else "cpu") if options.device == "auto" else options.device
    return read_study(options.heuristic) if options.heuristic else shipped_study(), device


def _check_count(option: str, value: int | None) -> None:
    if value is not None and value < 1:
        raise InputError(f"is {value}", where=option, remedy="Give at least 1.")
