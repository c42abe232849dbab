"""Storing a data set in the form that `prepared` reads: arrays, an index of image files, or texts; and a card."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from softmax_temperature.data.catalogue import CATALOGUE, NOT_STATED
from softmax_temperature.data.division import Rows, Rules, divide, split_rule
from softmax_temperature.data.image_files import inspect_image
from softmax_temperature.data.prepared import CARD, ROWS
from softmax_temperature.data.raw import RawDataset
from softmax_temperature.runner.artifacts import digest_of_file, write_json, write_text

_DECODERS = 8  # Threads; Pillow releases the interpreter's lock while it decodes.


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

    Paths of image files are relative to `root`; `source_sha256` is the digest of the archive, for the card.

    Raises:
        InputError: a limit leaves classes without samples, or an image file is damaged.
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
        "train_limit": rules.train_limit,
        "test_limit": rules.test_limit,
        "class_limit": rules.class_limit,
        "validation_fraction": None if raw.validation is not None else rules.validation_fraction,
        "seed": rules.seed,
        "split_rule": split_rule(raw, rules),
    }
    kind = "images" if raw.form == "images" else "texts"
    sizes = {split: np.bincount(rows.labels, minlength=len(class_names)) for split, rows in splits.items()}
    card["splits"] = {
        split: {"size": int(size.sum()), f"{kind}_per_class": [int(size.min()), int(size.max())]}
        for split, size in sizes.items()
    }
    shapes: list[tuple[int, int, int]] = []
    for split, rows in splits.items():
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
    else:
        heights, widths, channels = zip(*shapes, strict=True)
        card |= {"height": [min(heights), max(heights)], "width": [min(widths), max(widths)]}
        card |= {"channels": max(channels), "image_size_limit": rules.image_size_limit}
    write_json(output / CARD, card)


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
