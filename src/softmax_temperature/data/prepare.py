"""Preparing a data set: choosing classes and samples, splitting them, and storing each
split with a card.
"""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from softmax_temperature.data.catalogue import CATALOGUE, Entry
from softmax_temperature.data.image_files import inspect_image
from softmax_temperature.data.prepared import CARD, ROWS
from softmax_temperature.data.seeds import generator_for
from softmax_temperature.data.splits import (
    RawDataset,
    RawPart,
    SplitName,
    balanced_subset,
    stratified_holdout,
)
from softmax_temperature.runner.artifacts import digest_of_file, write_json, write_text
from softmax_temperature.runner.errors import InputError

Sizes = tuple[
    int, ...
]  # Height, width and channels of an image, or the characters of a text.
TEST_FRACTION = 0.25  # Of every class, where a data set has no test part of its own.


@dataclass(frozen=True)
class Rules:
    """How much of a data set is used and how it is split; `train_limit` includes
    validation samples, None takes all.
    """

    train_limit: int | None
    test_limit: int | None
    class_limit: int | None
    validation_fraction: float
    image_size_limit: int | None
    seed: int


@dataclass(frozen=True)
class Rows:
    """Some samples of a raw part: their row numbers, ascending, and their labels among
    the classes in use.
    """

    part: RawPart
    index: NDArray[np.int64]
    labels: NDArray[np.int64]

    def keep(self, rows: NDArray[Any]) -> "Rows":
        """The rows that a mask or an array of positions selects."""
        return Rows(self.part, self.index[rows], self.labels[rows])


def divide(
    raw: RawDataset, rules: Rules
) -> tuple[tuple[str, ...], dict[SplitName, Rows]]:
    """Choose classes, then samples, then validation samples, all balanced: the classes'
    names, and the splits.
    """
    generator = partial(generator_for, rules.seed, raw.name)

    def limited(rows: Rows, limit: int | None, purpose: str) -> Rows:
        if limit is None or limit >= len(rows.labels):
            return rows
        return rows.keep(balanced_subset(rows.labels, limit, generator(purpose)))

    # With one seed, a smaller choice of classes is part of a larger one.
    chosen = np.sort(
        generator("classes").permutation(len(raw.class_names))[: rules.class_limit]
    )
    train = _of_classes(raw.train, chosen)
    if raw.test is None:
        for_test = stratified_holdout(
            raw.train.labels, TEST_FRACTION, generator("test")
        )[train.index]
        train, test = train.keep(~for_test), train.keep(for_test)
    else:
        test = _of_classes(raw.test, chosen)
    train, test = (
        limited(train, rules.train_limit, "train limit"),
        limited(test, rules.test_limit, "test limit"),
    )
    if raw.validation is not None:
        validation = _of_classes(raw.validation, chosen)
    else:
        held_out = stratified_holdout(
            train.labels, rules.validation_fraction, generator("validation")
        )
        train, validation = train.keep(~held_out), train.keep(held_out)

    names = tuple(raw.class_names[number] for number in chosen)
    _check(raw, len(names), train, validation, test)
    return names, {"train": train, "validation": validation, "test": test}


def _check(
    raw: RawDataset, classes: int, train: Rows, validation: Rows, test: Rows
) -> None:
    def refuse(key: str, what: str, remedy: str) -> NoReturn:
        raise InputError(what, where=f"datasets.{raw.name}.{key}", remedy=remedy)

    if classes < 2:
        refuse("class_limit", "leaves a single class", "Use at least 2 classes.")
    if not len(test.labels):
        refuse("class_limit", "leaves no test samples", "Use more classes.")
    if not len(raw.train.labels):  # A data set of test images alone.
        return
    if missing := classes - len(np.unique(train.labels)):
        what = f"leaves {missing} of {classes} classes without training samples"
        refuse("train_limit", what, f"Use at least {classes}, or set class_limit.")
    if not len(validation.labels):
        refuse(
            "train_limit" if raw.validation is None else "class_limit",
            "leaves no validation samples",
            "Raise it.",
        )


def _of_classes(part: RawPart, chosen: NDArray[np.int64]) -> Rows:
    index = np.flatnonzero(np.isin(part.labels, chosen))
    return Rows(part, index, np.searchsorted(chosen, part.labels[index]))


def prepare(
    raw: RawDataset,
    rules: Rules,
    *,
    root: Path,
    output: Path,
    name: str | None = None,
    source_sha256: str | None = None,
) -> None:
    """Write a prepared data set into the folder `output`; image files are below `root`."""
    class_names, splits = divide(raw, rules)
    labels = {f"{split}.labels": rows.labels for split, rows in splits.items()}
    save_file(
        labels | {f"{split}.index": rows.index for split, rows in splits.items()},
        output / ROWS,
    )
    entry = CATALOGUE.get(raw.name, Entry(raw.name, len(raw.class_names)))
    own, own_part = raw.validation is not None, "the source's own validation part"
    drawn = f"of the rest of each class a fraction of {rules.validation_fraction:.4g} drawn for validation"
    rule = (
        raw.split_rule
        if raw.test
        else f"{TEST_FRACTION:.0%} of each class drawn for test"
    )
    card: dict[str, Any] = {
        "name": name or raw.name,
        "title": entry.title,
        "licence": entry.licence,
        "source": {**raw.source, "sha256": source_sha256},
        "classes": len(class_names),
        "class_names": list(class_names),
        **asdict(rules),
        "validation_fraction": None if own else rules.validation_fraction,
        "split_rule": f"{rule}; {own_part if own else drawn}",
        "splits": {},
    }
    kind = "images" if raw.form == "images" else "texts"
    sizes: list[Sizes] = []
    for split, rows in splits.items():
        counts = np.bincount(rows.labels, minlength=len(class_names))
        path, found = _store(rows, kind, output / split, root, rules.image_size_limit)
        about = {
            "size": len(rows.labels),
            f"{kind}_per_class": [int(counts.min()), int(counts.max())],
        }
        if kind == "texts":
            about["characters"] = [min(found)[0], max(found)[0]]
        card["splits"][split] = {**about, f"{kind}_sha256": digest_of_file(path)}
        sizes += found
    if kind == "texts":
        card["form"] = raw.form
        del card["image_size_limit"]
    else:
        heights, widths, channels = zip(*sizes, strict=True)
        card |= {
            "height": [min(heights), max(heights)],
            "width": [min(widths), max(widths)],
        }
        card["channels"] = max(channels)
    write_json(output / CARD, card)


def _store(
    rows: Rows, kind: str, place: Path, root: Path, size_limit: int | None
) -> tuple[Path, list[Sizes]]:
    samples = rows.part.samples
    if isinstance(samples, np.ndarray):
        path = place.with_suffix(".safetensors")
        save_file(
            {"images": np.ascontiguousarray(samples[rows.index].transpose(0, 3, 1, 2))},
            path,
        )
        return path, [samples.shape[1:]]
    own = [samples[row] for row in rows.index]
    if kind == "texts":
        path = place.with_suffix(".jsonl")
        write_text(
            path, "".join(json.dumps(text, ensure_ascii=False) + "\n" for text in own)
        )
        return path, [(len(text),) for text in own]
    path = place.with_suffix(".sha256")
    with (
        ThreadPoolExecutor() as pool
    ):  # Pillow releases the interpreter's lock while it decodes.
        facts = list(
            pool.map(
                lambda file: inspect_image(root / file, size_limit=size_limit), own
            )
        )
    write_text(
        path,
        "".join(
            f"{sha256}  {file}\n" for (sha256, _), file in zip(facts, own, strict=True)
        ),
    )
    return path, [size for _, size in facts]
