"""Logits that a training run saves for evaluation, with their split.

A file holds `{name}.logits` (n, classes) and, except for out-of-distribution sets,
`{name}.labels` (n,). The names "train", "validation" and "test" are the splits of the
run's own data set. All other sets are test data.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from safetensors.torch import save_file
from torch import Tensor

from softmax_temperature.data.splits import SPLITS, SplitName, refuse_test
from softmax_temperature.runner.artifacts import Artifact

LOGITS = "logits.safetensors"
"""The file with the logits that are evaluated."""
LAST_LOGITS = "last-logits.safetensors"
"""The file with the logits after the last epoch.

Only runs that select the best epoch write this file; they write it even if the best
epoch is the last one.
"""


@dataclass(frozen=True)
class Logits:
    """Logits (n, classes) of one set and its labels (n,), with the set's split.

    Out-of-distribution sets have no labels.
    """

    split: SplitName
    values: Tensor
    labels: Tensor | None = None

    def for_fitting(self) -> tuple[Tensor, Tensor]:
        """Return logits and labels for a fit; raise LeakError for test data."""
        refuse_test(self.split, "logits")
        return self.for_evaluation()

    def for_evaluation(self) -> tuple[Tensor, Tensor]:
        """Return logits and labels of any split, for a report.

        Raises:
            ValueError: If the set has no labels.
        """
        if self.labels is None:
            raise ValueError("logits of an out-of-distribution set have no labels")
        return self.values, self.labels

    def double(self) -> Self:
        """Return the same logits in float64."""
        return type(self)(self.split, self.values.double(), self.labels)

    def divided_by(self, temperature: float) -> Self:
        """Return the logits divided by `temperature`, with the same labels."""
        return type(self)(self.split, self.values / temperature, self.labels)


def write_logits(path: Path, sets: Mapping[str, Logits]) -> None:
    """Write sets of logits, keyed by name, to the file `path`.

    Raises:
        ValueError: If the name of a set implies a different split from the set's own;
            see `split_of`.
    """
    tensors: dict[str, Tensor] = {}
    for name, logits in sets.items():
        if logits.split != split_of(name):
            raise ValueError(
                f"logits of the {logits.split} split must not be stored as {name!r}"
            )
        tensors[f"{name}.logits"] = logits.values
        if logits.labels is not None:
            tensors[f"{name}.labels"] = logits.labels
    save_file(tensors, path)


def read_logits(artifact: Artifact, file: str) -> dict[str, Logits]:
    """Read the sets of logits in a run's file, keyed by name."""
    tensors = artifact.tensors(file)
    names = [key.removesuffix(".logits") for key in tensors if key.endswith(".logits")]
    return {
        name: Logits(
            split_of(name), tensors[f"{name}.logits"], tensors.get(f"{name}.labels")
        )
        for name in names
    }


def split_of(name: str) -> SplitName:
    """Return the split of the set `name`: `name` if that is a split, else "test"."""
    for split in SPLITS:
        if split == name:
            return split
    return "test"
