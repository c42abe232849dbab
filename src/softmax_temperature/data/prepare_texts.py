"""Storing a data set of texts in the form that `PreparedTexts` reads."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from softmax_temperature.data.cards import common_card, fewest_and_most, write_rows
from softmax_temperature.data.division import divide
from softmax_temperature.data.prepared import CARD
from softmax_temperature.data.prepared_texts import texts_file, to_line
from softmax_temperature.runner.artifacts import atomic_file, digest_of_file, write_json

if TYPE_CHECKING:
    from pathlib import Path

    from softmax_temperature.data.division import Rows, Rules
    from softmax_temperature.data.raw_texts import RawTextPart, RawTextSet


def prepare_texts(
    raw: RawTextSet, rules: Rules, *, output: Path, name: str | None = None, source_sha256: str | None = None
) -> None:
    """Write the files of a prepared data set into a folder, one text at a time.

    A validation part of the source's own is kept whole, but for classes that are not used; nothing is then drawn for
    it, and `train_limit` does not count it.

    Args:
        raw: the data set as found.
        rules: limits and splits; that on the size of images has no meaning here.
        output: the folder.
        name: what it is called from here on; None keeps its name.
        source_sha256: the digest of the archive, for the card; None when there is no archive.

    Raises:
        InputError: a limit leaves classes without texts, or the archive changed while it was read.
    """
    division = divide(raw, rules, validation=raw.validation)
    write_rows(division.splits, output)
    classes = len(division.class_names)
    splits = {split: _store(rows, classes, output / texts_file(split)) for split, rows in division.splits.items()}
    own = {"own_validation": raw.validation is not None}
    card = common_card(raw, rules, division, name=name, source_sha256=source_sha256, **own)
    write_json(output / CARD, card | {"form": "trees" if raw.trees else "texts", "splits": splits})


def _store(rows: Rows[RawTextPart], classes: int, path: Path) -> dict[str, Any]:
    """Write the texts of a split; returns its part of the card."""
    shortest, longest = sys.maxsize, 0
    with atomic_file(path) as file:
        for text in rows.part.texts.read(rows.index):
            file.write(to_line(text))
            shortest, longest = min(shortest, len(text)), max(longest, len(text))
    return {
        "size": len(rows.labels),
        "texts_per_class": fewest_and_most(rows, classes),
        "characters": [shortest, longest],
        "texts_sha256": digest_of_file(path),
    }
