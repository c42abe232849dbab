"""Prepared data sets: what every stage after fetch reads.

The artifact of kind "fetch" holds

    card.json           name, source, licence, classes, splits, rules and limits
    rows.safetensors    {split}.labels and {split}.index
    {split}.safetensors the images, (n, channels, height, width) uint8; or
    {split}.sha256      one line per image file, "digest  path below data.root", as `sha256sum --check` reads it; or
    {split}.jsonl       one JSON string per line, a text or a tree in brackets

so a data set of large image files is not copied; each file is compared with its digest whenever it is read.
"""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from softmax_temperature.data.image_files import read_image
from softmax_temperature.data.splits import SPLITS, Part, SplitName
from softmax_temperature.runner.artifacts import Artifact
from softmax_temperature.runner.errors import InputError

KIND = "fetch"
CARD = "card.json"
ROWS = "rows.safetensors"


@dataclass(frozen=True, eq=False)
class PreparedData:
    """A prepared data set; `card` holds what is known about it, `root` is data.root.

    `form` is "images", "texts" or "trees"; `channels` is 1 for grey images, 3 for RGB, 0 for texts.
    """

    artifact: Artifact
    root: Path
    card: dict[str, Any]
    rows: dict[str, Tensor]
    name: str
    form: str
    class_names: tuple[str, ...]
    classes: int
    channels: int

    splits = SPLITS

    @property
    def one_size(self) -> bool:
        """Whether all images of all splits have the same height and width."""
        return all(low == high for low, high in (self.card["height"], self.card["width"]))

    def size(self, split: SplitName) -> int:
        """The number of samples in a split."""
        return len(self.labels(split))

    def labels(self, split: SplitName) -> Tensor:
        """(n,) int64, class numbers."""
        return self.rows[f"{split}.labels"]

    def index(self, split: SplitName) -> Tensor:
        """(n,) int64, the samples' numbers in the original train or test part, ascending."""
        return self.rows[f"{split}.index"]

    def texts(self, split: SplitName) -> Part:
        """One split of texts or trees."""
        lines = self.artifact.path(f"{split}.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
        return Part(self.name, split, tuple(map(json.loads, lines)), self.labels(split), self.index(split))

    def part(self, split: SplitName) -> Part:
        """A whole split of images in memory; images that differ in size raise ValueError."""
        if not self.one_size:
            raise ValueError(f"{self.name}: images differ in size; read them in batches")
        images = torch.cat([batch for batch in self.batches(split, 1024) if isinstance(batch, Tensor)])
        return Part(self.name, split, images, self.labels(split), self.index(split))

    def batches(self, split: SplitName, batch_size: int) -> Iterator[list[Tensor] | Tensor]:
        """The images of a split in the order of its labels; at most two batches are in memory.

        A batch is (b, channels, height, width) uint8 when all images of the data set have one size, otherwise a list of
        b tensors. Damage raises ArtifactError; missing or changed files, and an empty split, InputError.
        """
        size = self.size(split)
        if size == 0:
            what = f"has test images only and no {split} split: it can be out_of_distribution or shifted, nothing else"
            raise InputError(what, where=f"data set {self.name}", remedy="Choose another one.")
        stream = self._from_array if f"{split}.safetensors" in self.artifact.files else self._from_files
        return stream(split, [range(start, min(start + batch_size, size)) for start in range(0, size, batch_size)])

    def _from_array(self, split: SplitName, batches: Sequence[range]) -> Iterator[Tensor]:
        path = self.artifact.path(f"{split}.safetensors")
        for rows in batches:
            # Mapped anew for each batch: pages of one long mapping would stay resident.
            with safe_open(path, framework="pt") as file:
                images = file.get_slice("images")[rows.start : rows.stop]
            yield images

    def _from_files(self, split: SplitName, batches: Sequence[range]) -> Iterator[list[Tensor] | Tensor]:
        lines = self.artifact.path(f"{split}.sha256").read_text(encoding="utf-8").split("\n")
        limit = self.card["image_size_limit"]

        def read(row: int) -> Tensor:
            sha256, _, path = lines[row].partition("  ")
            pixels = read_image(self.root / path, sha256=sha256, channels=self.channels, size_limit=limit)
            return torch.from_numpy(pixels)

        ahead: list[Future[Tensor]] = []
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            for rows in (*batches, range(0)):
                ready, ahead = ahead, [pool.submit(read, row) for row in rows]  # While the caller uses the last batch.
                if images := [future.result() for future in ready]:
                    yield torch.stack(images) if self.one_size else images


def open_data(artifact: Artifact, *, root: Path) -> PreparedData:
    """Open a prepared data set of any form; ArtifactError if its card or labels are missing or damaged."""
    card = artifact.json(CARD)
    form, names, channels = card.get("form", "images"), tuple(card["class_names"]), card.get("channels", 0)
    return PreparedData(artifact, root, card, artifact.tensors(ROWS), card["name"], form, names, len(names), channels)


def open_prepared(artifact: Artifact, *, root: Path) -> PreparedData:
    """Open a prepared data set of images; texts raise InputError, damage ArtifactError."""
    data = open_data(artifact, root=root)
    if data.form != "images":
        raise InputError(f"holds {data.form}, not images", where=f"data set {data.name}", remedy="Choose another one.")
    return data
