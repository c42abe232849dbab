"""Preparation of a data set: divide it, store each split, and write its card."""

import json
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from softmax_temperature.data.catalogue import CATALOGUE, Entry
from softmax_temperature.data.division import TEST_FRACTION, Rows, Rules, divide
from softmax_temperature.data.image_files import inspect_image
from softmax_temperature.data.prepared import CARD, ROWS
from softmax_temperature.data.raw import RawDataset
from softmax_temperature.data.splits import SplitName
from softmax_temperature.runner.artifacts import digest_of_file, write_json, write_text


class _Stored(NamedTuple):
    """The file of a split, and the sizes of its samples.

    A size is (height, width, channels) of an image, or (characters,) of a text. Images
    in an array share one size, which is listed once.
    """

    path: Path
    sizes: Sequence[tuple[int, ...]]


def prepare(
    raw: RawDataset,
    rules: Rules,
    *,
    root: Path,
    output: Path,
    name: str | None = None,
    source_sha256: str | None = None,
) -> None:
    """Write a prepared data set into the folder `output` (see `prepared`).

    Args:
        raw: The data set from its source.
        rules: Limits on the data set, and the sizes of its splits.
        root: The folder that paths of image files are relative to.
        output: An existing folder.
        name: The name of the prepared data set, if it differs from the source's.
        source_sha256: The digest of the files that were read, for the card.

    Raises:
        InputError: If the rules leave too few classes or samples, or an image file
            cannot be read.
    """
    class_names, splits = divide(raw, rules)
    _store_rows(output / ROWS, splits)
    stored = {
        split: _store_samples(raw, rows, output / split, root, rules.image_size_limit)
        for split, rows in splits.items()
    }
    entry = CATALOGUE.get(raw.name, Entry(raw.name, len(raw.class_names)))
    card: dict[str, Any] = {
        "name": name or raw.name,
        "title": entry.title,
        "licence": entry.licence,
        "source": {**raw.source, "sha256": source_sha256},
        "classes": len(class_names),
        "class_names": list(class_names),
        **asdict(rules),
        "split_rule": _split_rule(raw, rules),
        "splits": {
            split: _about_split(raw, rows, stored[split], len(class_names))
            for split, rows in splits.items()
        },
    }
    if raw.validation is not None:
        card["validation_fraction"] = None
    if raw.form == "images":
        card |= _about_images(stored)
    else:
        card["form"] = raw.form
        del card["image_size_limit"]
    write_json(output / CARD, card)


def _store_rows(path: Path, splits: Mapping[SplitName, Rows]) -> None:
    columns: dict[str, NDArray[np.int64]] = {}
    for split, rows in splits.items():
        columns[f"{split}.labels"] = rows.labels
        columns[f"{split}.index"] = rows.index
    save_file(columns, path)


def _store_samples(
    raw: RawDataset, rows: Rows, stem: Path, root: Path, size_limit: int | None
) -> _Stored:
    """Write the samples of a split to files whose names begin with `stem`."""
    samples = rows.part.samples
    if isinstance(samples, np.ndarray):
        return _store_array(samples[rows.index], stem.with_suffix(".safetensors"))
    selected = [samples[row] for row in rows.index]
    if raw.form == "images":
        return _store_list(selected, stem.with_suffix(".sha256"), root, size_limit)
    return _store_texts(selected, stem.with_suffix(".jsonl"))


def _store_array(images: NDArray[np.uint8], path: Path) -> _Stored:
    channels_first = np.ascontiguousarray(images.transpose(0, 3, 1, 2))
    save_file({"images": channels_first}, path)
    return _Stored(path, [images.shape[1:]])


def _store_texts(texts: Sequence[str], path: Path) -> _Stored:
    lines = [json.dumps(text, ensure_ascii=False) + "\n" for text in texts]
    write_text(path, "".join(lines))
    return _Stored(path, [(len(text),) for text in texts])


def _store_list(
    files: Sequence[str], path: Path, root: Path, size_limit: int | None
) -> _Stored:
    """Write the digest and path of each image file; the images stay where they are."""

    def inspect(file: str) -> tuple[str, tuple[int, int, int]]:
        return inspect_image(root / file, size_limit=size_limit)

    # Decode in threads, because Pillow releases the interpreter's lock while it
    # decodes.
    with ThreadPoolExecutor() as pool:
        inspected = list(pool.map(inspect, files))
    lines = [
        f"{sha256}  {file}\n"
        for (sha256, _), file in zip(inspected, files, strict=True)
    ]
    write_text(path, "".join(lines))
    return _Stored(path, [size for _, size in inspected])


def _split_rule(raw: RawDataset, rules: Rules) -> str:
    """Describe in one sentence how the three splits were made, for the card."""
    test_rule = raw.split_rule
    if raw.test is None:
        test_rule = f"{TEST_FRACTION:.0%} of each class drawn for test"
    if raw.validation is not None:
        return f"{test_rule}; the source's own validation part"
    return (
        f"{test_rule}; of the rest of each class a fraction of "
        f"{rules.validation_fraction:.4g} drawn for validation"
    )


def _about_split(
    raw: RawDataset, rows: Rows, stored: _Stored, classes: int
) -> dict[str, Any]:
    kind = "images" if raw.form == "images" else "texts"
    counts = np.bincount(rows.labels, minlength=classes)
    about: dict[str, Any] = {
        "size": len(rows.labels),
        f"{kind}_per_class": [int(counts.min()), int(counts.max())],
        f"{kind}_sha256": digest_of_file(stored.path),
    }
    if kind == "texts":
        lengths = [size[0] for size in stored.sizes]
        about["characters"] = [min(lengths), max(lengths)]
    return about


def _about_images(stored: Mapping[SplitName, _Stored]) -> dict[str, Any]:
    sizes = [size for split in stored.values() for size in split.sizes]
    heights, widths, channels = zip(*sizes, strict=True)
    return {
        "height": [min(heights), max(heights)],
        "width": [min(widths), max(widths)],
        "channels": max(channels),
    }
