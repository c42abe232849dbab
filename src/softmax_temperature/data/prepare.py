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
from softmax_temperature.data.prepared import CARD, ROWS, images_file, index_file, texts_file
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
    """Write the files of a prepared data set into a folder.

    Args:
        raw: the data set as its source has it.
        rules: limits and splits.
        root: what the paths of image files are relative to.
        output: the folder.
        name: of the prepared data set; None keeps its own.
        source_sha256: the digest of the archive, for the card; None when there is no archive.

    Raises:
        InputError: a limit leaves classes without samples, or an image file is damaged.
    """
    class_names, splits = divide(raw, rules)
    card: dict[str, Any] = {}
    facts: dict[str, list[int]] = {"channels": [], "height": [], "width": []}
    for split, rows in splits.items():
        if raw.form != "images":
            about, path = _store_texts(rows, output / texts_file(split)), output / texts_file(split)
        elif isinstance(raw.train.samples, np.ndarray):
            about, path = _store_array(rows, output / images_file(split), facts), output / images_file(split)
        else:
            path = output / index_file(split)
            about = _store_index(rows, path, facts, root, rules.image_size_limit)
        kind = "images" if raw.form == "images" else "texts"
        sizes = np.bincount(rows.labels, minlength=len(class_names))
        fewest_and_most = [int(sizes.min()), int(sizes.max())]
        card[split] = {"size": len(rows.labels), f"{kind}_per_class": fewest_and_most, **about}
        card[split][f"{kind}_sha256"] = digest_of_file(path)
    labels = {f"{split}.labels": rows.labels for split, rows in splits.items()}
    index = {f"{split}.index": rows.index for split, rows in splits.items()}
    save_file(labels | index, output / ROWS)
    form = {"form": raw.form} if raw.form != "images" else _common_facts(facts, rules)
    about_all = _about(raw, rules, class_names, name or raw.name, source_sha256)
    write_json(output / CARD, about_all | form | {"splits": card})


def _store_array(rows: Rows, path: Path, facts: dict[str, list[int]]) -> dict[str, Any]:
    """Write pixels as (n, channels, height, width)."""
    images = np.asarray(rows.part.samples)
    save_file({"images": np.ascontiguousarray(images[rows.index].transpose(0, 3, 1, 2))}, path)
    for key, size in zip(("height", "width", "channels"), images.shape[1:], strict=True):
        facts[key].append(size)
    return {}


def _store_index(
    rows: Rows, path: Path, facts: dict[str, list[int]], root: Path, size_limit: int | None
) -> dict[str, Any]:
    """Read every file once and list it with its digest."""
    files = [str(rows.part.samples[row]) for row in rows.index]
    with ThreadPoolExecutor(_DECODERS) as pool:
        found = list(pool.map(lambda file: inspect_image(root / file, size_limit=size_limit), files))
    write_text(path, "".join(f"{fact.sha256}  {file}\n" for fact, file in zip(found, files, strict=True)))
    for fact in found:
        facts["height"].append(fact.height)
        facts["width"].append(fact.width)
        facts["channels"].append(1 if fact.grey else 3)
    return {}


def _store_texts(rows: Rows, path: Path) -> dict[str, Any]:
    texts = [str(rows.part.samples[row]) for row in rows.index]
    write_text(path, "".join(json.dumps(text, ensure_ascii=False) + "\n" for text in texts))
    return {"characters": [min(map(len, texts)), max(map(len, texts))]}


def _common_facts(facts: dict[str, list[int]], rules: Rules) -> dict[str, Any]:
    ranges = {side: [min(facts[side]), max(facts[side])] for side in ("height", "width")}
    return {"channels": max(facts["channels"]), **ranges, "image_size_limit": rules.image_size_limit}


def _about(
    raw: RawDataset, rules: Rules, class_names: tuple[str, ...], name: str, source_sha256: str | None
) -> dict[str, Any]:
    """The part of the card that does not depend on what the samples are."""
    entry = CATALOGUE.get(raw.name)
    return {
        "name": name,
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
