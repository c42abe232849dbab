"""Preparing a data set: choosing classes and samples, splitting them, and storing each split with a card."""

from __future__ import annotations

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from softmax_temperature.data.catalogue import CATALOGUE, NOT_STATED
from softmax_temperature.data.image_files import inspect_image
from softmax_temperature.data.prepared import CARD, ROWS
from softmax_temperature.data.raw import RawDataset, RawPart
from softmax_temperature.data.sampling import balanced_subset, generator_for, stratified_holdout
from softmax_temperature.data.splits import SplitName
from softmax_temperature.runner.artifacts import digest_of_file, write_json, write_text
from softmax_temperature.runner.errors import InputError

TEST_FRACTION = 0.25
"""The fraction of every class that goes to the test split when a data set has none of its own."""

_DECODERS = 8  # Threads; Pillow releases the interpreter's lock while it decodes.


@dataclass(frozen=True)
class Rules:
    """How much of a data set is used and how it is split; `train_limit` includes validation samples, None takes all."""

    train_limit: int | None
    test_limit: int | None
    class_limit: int | None
    validation_fraction: float
    image_size_limit: int | None
    seed: int


@dataclass(frozen=True)
class Rows:
    """Some samples of a raw part: their row numbers, ascending, and their labels among the classes in use."""

    part: RawPart
    index: NDArray[np.int64]
    labels: NDArray[np.int64]

    def keep(self, rows: NDArray[Any]) -> Rows:
        """The rows that a mask or an array of positions selects."""
        return Rows(self.part, self.index[rows], self.labels[rows])


class Division(NamedTuple):
    """The classes in use, and the samples of each split."""

    class_names: tuple[str, ...]
    splits: Mapping[SplitName, Rows]


def divide(raw: RawDataset, rules: Rules) -> Division:
    """Choose classes, then samples, then validation samples; every choice is balanced over classes.

    A validation part of the source's own is kept whole, except for unused classes. A limit that leaves a class without
    training samples, or a split without any, raises InputError.
    """
    chosen = _chosen_classes(raw, rules)
    train, test = (_of_classes(rows, chosen) for rows in _own_parts(raw, rules))
    train = _limited(train, rules.train_limit, generator_for(rules.seed, raw.name, "train limit"))
    test = _limited(test, rules.test_limit, generator_for(rules.seed, raw.name, "test limit"))
    names = tuple(raw.class_names[number] for number in chosen)
    if len(test.labels) == 0:
        _refuse(raw, "class_limit", "leaves no test samples", "Use more classes.")
    if len(raw.train.labels) == 0:  # A set of test images, for out-of-distribution tests.
        return Division(names, {"train": train, "validation": train, "test": test})
    if missing := len(chosen) - len(np.unique(train.labels)):
        what = f"leaves {missing} of {len(chosen)} classes without training samples"
        _refuse(raw, "train_limit", what, f"Use at least {len(chosen)}, or set class_limit.")
    if raw.validation is not None:
        validation = _of_classes(_all_rows(raw.validation), chosen)
        if len(validation.labels) == 0:
            _refuse(raw, "class_limit", "leaves no validation samples", "Use more classes.")
        return Division(names, {"train": train, "validation": validation, "test": test})
    generator = generator_for(rules.seed, raw.name, "validation")
    held_out = stratified_holdout(train.labels, rules.validation_fraction, generator)
    if not held_out.any():
        _refuse(raw, "train_limit", "no class has a second training sample, to validate on", "Use more of them.")
    return Division(names, {"train": train.keep(~held_out), "validation": train.keep(held_out), "test": test})


def split_rule(raw: RawDataset, rules: Rules) -> str:
    """How train, validation and test were separated, for the card."""
    own = f"{TEST_FRACTION:.0%} of each class drawn for test" if raw.test is None else raw.split_rule
    if raw.validation is not None:
        return f"{own}; the source's own validation part"
    return f"{own}; of the rest of each class a fraction of {rules.validation_fraction:.4g} drawn for validation"


def prepare(
    raw: RawDataset,
    rules: Rules,
    *,
    root: Path,
    output: Path,
    name: str | None = None,
    source_sha256: str | None = None,
) -> None:
    """Write the files of a prepared data set, under another name if there is one, into the folder `output`.

    Paths of image files are relative to `root`; `source_sha256` is the digest of the archive, for the card. A limit
    that leaves too little, or a damaged image file, raises InputError.
    """
    class_names, splits = divide(raw, rules)
    labels = {f"{split}.labels": rows.labels for split, rows in splits.items()}
    index = {f"{split}.index": rows.index for split, rows in splits.items()}
    save_file(labels | index, output / ROWS)
    entry = CATALOGUE.get(raw.name)
    card: dict[str, Any] = {
        "name": name or raw.name,
        "title": entry.title if entry else raw.name,
        "licence": entry.licence if entry else NOT_STATED,
        "source": {**raw.source, "sha256": source_sha256},
        "classes": len(class_names),
        "class_names": list(class_names),
        **asdict(rules),
        "validation_fraction": None if raw.validation is not None else rules.validation_fraction,
        "split_rule": split_rule(raw, rules),
        "splits": {},
    }
    kind = "images" if raw.form == "images" else "texts"
    shapes: list[tuple[int, int, int]] = []
    for split, rows in splits.items():
        sizes = np.bincount(rows.labels, minlength=len(class_names))
        card["splits"][split] = {"size": len(rows.labels), f"{kind}_per_class": [int(sizes.min()), int(sizes.max())]}
        if kind == "texts":
            path = output / f"{split}.jsonl"
            lengths = _store_texts(rows, path)
            card["splits"][split]["characters"] = [min(lengths), max(lengths)]
        elif isinstance(rows.part.samples, np.ndarray):
            path = output / f"{split}.safetensors"
            shapes += _store_array(rows, path)
        else:
            path = output / f"{split}.sha256"
            shapes += _store_index(rows, path, root, rules.image_size_limit)
        card["splits"][split][f"{kind}_sha256"] = digest_of_file(path)
    if kind == "texts":
        card["form"] = raw.form
        del card["image_size_limit"]
    else:
        heights, widths, channels = zip(*shapes, strict=True)
        card |= {"height": [min(heights), max(heights)], "width": [min(widths), max(widths)]}
        card["channels"] = max(channels)
    write_json(output / CARD, card)


def _own_parts(raw: RawDataset, rules: Rules) -> tuple[Rows, Rows]:
    everything = _all_rows(raw.train)
    if raw.test is not None:
        return everything, _all_rows(raw.test)
    for_test = stratified_holdout(raw.train.labels, TEST_FRACTION, generator_for(rules.seed, raw.name, "test"))
    return everything.keep(~for_test), everything.keep(for_test)


def _all_rows(part: RawPart) -> Rows:
    return Rows(part, np.arange(len(part.labels)), part.labels)


def _chosen_classes(raw: RawDataset, rules: Rules) -> NDArray[np.int64]:
    """Class numbers, ascending; with one seed, a smaller choice is part of a larger one."""
    order = generator_for(rules.seed, raw.name, "classes").permutation(len(raw.class_names))
    chosen = np.sort(order[: rules.class_limit])
    if len(chosen) < 2:
        _refuse(raw, "class_limit", "leaves a single class", "Use at least 2 classes.")
    return chosen


def _of_classes(rows: Rows, chosen: NDArray[np.int64]) -> Rows:
    kept = rows.keep(np.isin(rows.labels, chosen))
    return replace(kept, labels=np.searchsorted(chosen, kept.labels))


def _limited(rows: Rows, limit: int | None, generator: np.random.Generator) -> Rows:
    if limit is None or limit >= len(rows.labels):
        return rows
    return rows.keep(balanced_subset(rows.labels, limit, generator))


def _store_texts(rows: Rows, path: Path) -> list[int]:
    """Write one JSON string per line; returns their lengths in characters."""
    texts = [str(rows.part.samples[row]) for row in rows.index]
    write_text(path, "".join(json.dumps(text, ensure_ascii=False) + "\n" for text in texts))
    return [len(text) for text in texts]


def _store_array(rows: Rows, path: Path) -> list[tuple[int, int, int]]:
    """Write pixels as (n, channels, height, width); returns the (height, width, channels) of all images."""
    images = np.asarray(rows.part.samples)
    save_file({"images": np.ascontiguousarray(images[rows.index].transpose(0, 3, 1, 2))}, path)
    height, width, channels = images.shape[1:]
    return [(height, width, channels)]


def _store_index(rows: Rows, path: Path, root: Path, size_limit: int | None) -> list[tuple[int, int, int]]:
    """Read every file once and list it with its digest; returns the (height, width, channels) of each image."""
    files = [str(rows.part.samples[row]) for row in rows.index]
    with ThreadPoolExecutor(_DECODERS) as pool:
        facts = list(pool.map(lambda file: inspect_image(root / file, size_limit=size_limit), files))
    write_text(path, "".join(f"{fact.sha256}  {file}\n" for fact, file in zip(facts, files, strict=True)))
    return [(fact.height, fact.width, 1 if fact.grey else 3) for fact in facts]


def _refuse(raw: RawDataset, key: str, what: str, remedy: str) -> NoReturn:
    raise InputError(what, where=f"datasets.{raw.name}.{key}", remedy=remedy)
