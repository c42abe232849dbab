"""Storing a data set in the form that `PreparedImages` reads: arrays, or an index of image files, and a card."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np

from softmax_temperature.data.cards import common_card, fewest_and_most, write_rows
from softmax_temperature.data.division import Rows, Rules, divide
from softmax_temperature.data.image_files import ImageFacts, inspect_image
from softmax_temperature.data.prepared import CARD, images_file, index_file
from softmax_temperature.runner.artifacts import digest_of_file, write_json, write_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from softmax_temperature.data.raw import RawDataset, RawPart
    from softmax_temperature.data.splits import SplitName

_DECODERS = 8  # Threads; Pillow decodes outside the interpreter's lock.


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
        raw: the data set as found.
        rules: limits and splits.
        root: what the paths of image files are relative to.
        output: the folder.
        name: what it is called from here on; None keeps its name.
        source_sha256: the digest of the archive, for the card; None when there is no archive.

    Raises:
        InputError: a limit leaves classes without images, or an image file is damaged.
    """
    division = divide(raw, rules)
    splits = division.splits
    if isinstance(raw.train.images, np.ndarray):
        form = _store_arrays(splits, output)
    else:
        form = _store_index(splits, output, root=root, size_limit=rules.image_size_limit)
    write_rows(splits, output)
    classes = len(division.class_names)
    form["image_size_limit"] = rules.image_size_limit
    form["splits"] = {split: _split_card(split, rows, classes, output) for split, rows in splits.items()}
    card = common_card(raw, rules, division, name=name, source_sha256=source_sha256)
    write_json(output / CARD, card | form)


def _store_arrays(splits: Mapping[SplitName, Rows[RawPart]], output: Path) -> dict[str, Any]:
    """Write the pixels of each split; returns channels and the ranges of height and width."""
    for split, rows in splits.items():
        _save({"images": _channels_first(rows)}, output / images_file(split))
    height, width, channels = np.shape(splits["train"].part.images)[1:]
    return {"channels": channels, "height": [height, height], "width": [width, width]}


def _channels_first(rows: Rows[RawPart]) -> NDArray[np.uint8]:
    """(n, channels, height, width); filled row by row, so that no second copy of the part is made."""
    images = np.asarray(rows.part.images)
    _, height, width, channels = images.shape
    stored = np.empty((len(rows.index), channels, height, width), dtype=np.uint8)
    for place, row in enumerate(rows.index):
        stored[place] = images[row].transpose(2, 0, 1)
    return stored


def _store_index(
    splits: Mapping[SplitName, Rows[RawPart]], output: Path, *, root: Path, size_limit: int | None
) -> dict[str, Any]:
    """Read every file once and list it with its digest; returns the same facts as for arrays."""
    facts: list[ImageFacts] = []
    for split, rows in splits.items():
        paths = [str(rows.part.images[row]) for row in rows.index]
        found = _inspect([root / path for path in paths], size_limit)
        lines = [f"{fact.sha256}  {path}\n" for fact, path in zip(found, paths, strict=True)]
        write_text(output / index_file(split), "".join(lines))
        facts += found
    heights, widths = [fact.height for fact in facts], [fact.width for fact in facts]
    return {
        "channels": 1 if all(fact.grey for fact in facts) else 3,
        "height": [min(heights), max(heights)],
        "width": [min(widths), max(widths)],
    }


def _inspect(paths: Sequence[Path], size_limit: int | None) -> list[ImageFacts]:
    with ThreadPoolExecutor(_DECODERS) as pool:
        return list(pool.map(lambda path: inspect_image(path, size_limit=size_limit), paths))


def _save(arrays: dict[str, NDArray[Any]], path: Path) -> None:
    from safetensors.numpy import save_file

    save_file(arrays, path)


def _split_card(split: str, rows: Rows[RawPart], classes: int, output: Path) -> dict[str, Any]:
    stored = next(path for path in (output / images_file(split), output / index_file(split)) if path.exists())
    return {
        "size": len(rows.labels),
        "images_per_class": fewest_and_most(rows, classes),
        "images_sha256": digest_of_file(stored),
    }
