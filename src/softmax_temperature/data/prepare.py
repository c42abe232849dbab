"""Preparing a data set: choosing classes and samples, splitting them, and storing each split with a card."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

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

Sizes = tuple[int, ...]
"""Height, width and channels of an image, or the characters of a text."""

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

    @classmethod
    def of(cls, part: RawPart) -> Rows:
        """All of them."""
        return cls(part, np.arange(len(part.labels)), part.labels)

    def keep(self, rows: NDArray[Any]) -> Rows:
        """The rows that a mask or an array of positions selects."""
        return Rows(self.part, self.index[rows], self.labels[rows])

    def of_classes(self, chosen: NDArray[np.int64]) -> Rows:
        """The samples of some classes, numbered anew."""
        kept = self.keep(np.isin(self.labels, chosen))
        return replace(kept, labels=np.searchsorted(chosen, kept.labels))

    def limited(self, limit: int | None, generator: np.random.Generator) -> Rows:
        """At most so many, balanced over classes."""
        if limit is None or limit >= len(self.labels):
            return self
        return self.keep(balanced_subset(self.labels, limit, generator))


def divide(raw: RawDataset, rules: Rules) -> tuple[tuple[str, ...], dict[SplitName, Rows]]:
    """Choose classes, then samples, then validation samples, all balanced: the classes' names, and the splits.

    A validation part of the source's own is kept whole, except for unused classes. A limit that leaves a class without
    training samples, or a split without any, raises InputError.
    """

    def generator(purpose: str) -> np.random.Generator:
        return generator_for(rules.seed, raw.name, purpose)

    # With one seed, a smaller choice of classes is part of a larger one.
    chosen = np.sort(generator("classes").permutation(len(raw.class_names))[: rules.class_limit])
    if len(chosen) < 2:
        _refuse(raw, "class_limit", "leaves a single class", "Use at least 2 classes.")
    train = Rows.of(raw.train)
    if raw.test is None:
        for_test = stratified_holdout(raw.train.labels, TEST_FRACTION, generator("test"))
        train, test = train.keep(~for_test), train.keep(for_test)
    else:
        test = Rows.of(raw.test)
    train = train.of_classes(chosen).limited(rules.train_limit, generator("train limit"))
    test = test.of_classes(chosen).limited(rules.test_limit, generator("test limit"))
    if len(test.labels) == 0:
        _refuse(raw, "class_limit", "leaves no test samples", "Use more classes.")
    missing = len(chosen) - len(np.unique(train.labels))
    if missing and len(raw.train.labels):
        what = f"leaves {missing} of {len(chosen)} classes without training samples"
        _refuse(raw, "train_limit", what, f"Use at least {len(chosen)}, or set class_limit.")
    train, validation = _validation(raw, rules, train, chosen)
    names = tuple(raw.class_names[number] for number in chosen)
    return names, {"train": train, "validation": validation, "test": test}


def _validation(raw: RawDataset, rules: Rules, train: Rows, chosen: NDArray[np.int64]) -> tuple[Rows, Rows]:
    """The training samples that remain, and those of the validation part."""
    if not len(train.labels):  # A data set of test images alone.
        return train, train
    if raw.validation is not None:
        validation = Rows.of(raw.validation).of_classes(chosen)
        if len(validation.labels) == 0:
            _refuse(raw, "class_limit", "leaves no validation samples", "Use more classes.")
        return train, validation
    generator = generator_for(rules.seed, raw.name, "validation")
    held_out = stratified_holdout(train.labels, rules.validation_fraction, generator)
    if not held_out.any():
        _refuse(raw, "train_limit", "no class has a second training sample, to validate on", "Use more of them.")
    return train.keep(~held_out), train.keep(held_out)


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
    """Write a prepared data set, under another name if there is one, into the folder `output`.

    Paths of image files are relative to `root`; `source_sha256` is the digest of the archive, for the card.
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
    sizes: list[Sizes] = []
    for split, rows in splits.items():
        counts = np.bincount(rows.labels, minlength=len(class_names))
        path, own = _store(rows, kind, output / split, root, rules.image_size_limit)
        card["splits"][split] = {"size": len(rows.labels), f"{kind}_per_class": [int(counts.min()), int(counts.max())]}
        if kind == "texts":
            card["splits"][split]["characters"] = [min(own)[0], max(own)[0]]
        card["splits"][split][f"{kind}_sha256"] = digest_of_file(path)
        sizes += own
    if kind == "texts":
        card["form"] = raw.form
        del card["image_size_limit"]
    else:
        heights, widths, channels = zip(*sizes, strict=True)
        card |= {"height": [min(heights), max(heights)], "width": [min(widths), max(widths)]}
        card["channels"] = max(channels)
    write_json(output / CARD, card)


def _store(rows: Rows, kind: str, place: Path, root: Path, size_limit: int | None) -> tuple[Path, list[Sizes]]:
    """Write the samples of a split, or the list of their files; returns the path, and the sizes of the samples."""
    samples = rows.part.samples
    if isinstance(samples, np.ndarray):
        path = place.with_suffix(".safetensors")
        save_file({"images": np.ascontiguousarray(samples[rows.index].transpose(0, 3, 1, 2))}, path)
        return path, [samples.shape[1:]]
    own = [samples[row] for row in rows.index]
    if kind == "texts":
        path = place.with_suffix(".jsonl")
        write_text(path, "".join(json.dumps(text, ensure_ascii=False) + "\n" for text in own))
        return path, [(len(text),) for text in own]
    path = place.with_suffix(".sha256")
    with ThreadPoolExecutor(_DECODERS) as pool:
        facts = list(pool.map(lambda file: inspect_image(root / file, size_limit=size_limit), own))
    write_text(path, "".join(f"{fact.sha256}  {file}\n" for fact, file in zip(facts, own, strict=True)))
    return path, [(fact.height, fact.width, 1 if fact.grey else 3) for fact in facts]


def _refuse(raw: RawDataset, key: str, what: str, remedy: str) -> NoReturn:
    raise InputError(what, where=f"datasets.{raw.name}.{key}", remedy=remedy)
