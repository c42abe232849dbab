"""Which rows are held out to test on: a tenth, by the digest of each image's own name.

So it is decided where a row is made, without a look at any other, and stays when shards are added or run elsewhere.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from softmax_temperature.data.splits import SplitName

ONE_IN = 10
RULE = f"test: one row in {ONE_IN}, those whose first 8 bytes of sha256 of the image's name are a multiple of {ONE_IN}"


def is_held_out(name: str) -> bool:
    """Whether the image of this name is one to test on."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % ONE_IN == 0


def divided(names: Sequence[str]) -> dict[SplitName, list[int]]:
    """The rows to train on and those to test on, in the order of the names; a part without rows is left out."""
    parts: dict[SplitName, list[int]] = {"train": [], "test": []}
    for row, name in enumerate(names):
        parts["test" if is_held_out(name) else "train"].append(row)
    return {split: rows for split, rows in parts.items() if rows}
