"""What every prepared data set holds, whatever its samples are: its labels and numbers, and most of its card."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from softmax_temperature.data.catalogue import CATALOGUE, NOT_STATED
from softmax_temperature.data.division import split_rule
from softmax_temperature.data.prepared import ROWS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from softmax_temperature.data.division import Divisible, Division, Labelled, Rows, Rules
    from softmax_temperature.data.splits import SplitName


def write_rows(splits: Mapping[SplitName, Rows[Any]], output: Path) -> None:
    """Write the labels of each split, and its rows' numbers in the part they come from."""
    from safetensors.numpy import save_file

    labels = {f"{split}.labels": rows.labels for split, rows in splits.items()}
    index = {f"{split}.index": rows.index for split, rows in splits.items()}
    save_file(labels | index, output / ROWS)


def common_card(
    raw: Divisible[Labelled],
    rules: Rules,
    division: Division[Any],
    *,
    name: str | None,
    source_sha256: str | None,
    own_validation: bool = False,
) -> dict[str, Any]:
    """What a card says about any data set; a kind of samples adds its own.

    Args:
        raw: the data set as found.
        rules: limits and splits.
        division: what came of them.
        name: what it is called from here on; None keeps its name.
        source_sha256: the digest of the archive; None when there is no archive.
        own_validation: whether the source itself sets the validation split aside.
    """
    entry = CATALOGUE.get(raw.name)
    return {
        "name": name or raw.name,
        "title": entry.title if entry else raw.name,
        "licence": entry.licence if entry else NOT_STATED,
        "source": {**raw.source, "sha256": source_sha256},
        "classes": len(division.class_names),
        "class_names": list(division.class_names),
        "train_limit": rules.train_limit,
        "test_limit": rules.test_limit,
        "class_limit": rules.class_limit,
        "validation_fraction": None if own_validation else rules.validation_fraction,
        "seed": rules.seed,
        "split_rule": split_rule(raw, rules, own_validation=own_validation),
    }


def fewest_and_most(rows: Rows[Any], classes: int) -> list[int]:
    """How many samples of a split its smallest and its largest class have."""
    sizes = np.bincount(rows.labels, minlength=classes)
    return [int(sizes.min()), int(sizes.max())]
