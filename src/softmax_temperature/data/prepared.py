"""Prepared data sets: what every stage after fetch reads.

An artifact of the stage `fetch` holds

    card.json           name, source, licence, classes, splits, rules and limits
    rows.safetensors    {split}.labels and {split}.index {split}.safetensors the images,
    (n, channels, height, width) uint8; or {split}.sha256      one line per image file,
    "digest  path below data.root", checked whenever the file is read; or {split}.jsonl
    one JSON string per line, a text or a tree in brackets
"""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor

from softmax_temperature.data.image_files import read_image
from softmax_temperature.data.splits import SPLITS, Part, SplitName
from softmax_temperature.runner.artifacts import Artifact
from softmax_temperature.runner.errors import InputError

CARD = "card.json"
ROWS = "rows.safetensors"


class PreparedData:
    """A prepared data set of "images", "texts" or "trees" (`form`); ArtifactError if
    card or labels are damaged.
    """

    splits = SPLITS

    def __init__(self, artifact: Artifact, *, root: Path) -> None:
        self.artifact, self.root = artifact, root
        self.card, self.rows = artifact.json(CARD), artifact.tensors(ROWS)
        self.name, self.form = self.card["name"], self.card.get("form", "images")
        self.class_names = tuple(self.card["class_names"])
        self.classes = len(self.class_names)

    @property
    def one_size(self) -> bool:
        """Whether all images of all splits have the same height and width."""
        return all(
            low == high for low, high in (self.card["height"], self.card["width"])
        )

    def labels(self, split: SplitName) -> Tensor:
        """(n,) int64, class numbers."""
        return self.rows[f"{split}.labels"]

    def index(self, split: SplitName) -> Tensor:
        """(n,) int64, the samples' numbers in the original train or test part,
        ascending.
        """
        return self.rows[f"{split}.index"]

    def texts(self, split: SplitName) -> Part:
        """One split of texts or trees."""
        return self._part(split, tuple(map(json.loads, self._lines(f"{split}.jsonl"))))

    def part(self, split: SplitName) -> Part:
        """A whole split of images of one size in memory."""
        return self._part(split, torch.cat(list(self.batches(split, 1024))))  # type: ignore[arg-type]

    def batches(
        self, split: SplitName, batch_size: int
    ) -> Iterator[list[Tensor] | Tensor]:
        """The images in order, (b, channels, height, width) uint8, or lists of b
        tensors where sizes differ.
        """
        size = len(self.labels(split))
        if size == 0:
            what = f"has test images only and no {split} split: it can be out_of_distribution or shifted, nothing else"
            raise InputError(
                what, where=f"data set {self.name}", remedy="Choose another one."
            )
        stream = (
            self._from_array
            if f"{split}.safetensors" in self.artifact.files
            else self._from_files
        )
        return stream(
            split,
            [
                range(start, min(start + batch_size, size))
                for start in range(0, size, batch_size)
            ],
        )

    def _part(self, split: SplitName, data: Any) -> Part:
        return Part(self.name, split, data, self.labels(split), self.index(split))

    def _lines(self, file: str) -> list[str]:
        return self.artifact.path(file).read_text(encoding="utf-8").split("\n")[:-1]

    def _from_array(
        self, split: SplitName, batches: Sequence[range]
    ) -> Iterator[Tensor]:
        path = self.artifact.path(f"{split}.safetensors")
        for rows in batches:
            # Mapped anew for each batch: pages of one long mapping would stay resident.
            with safe_open(path, framework="pt") as file:
                images = file.get_slice("images")[rows.start : rows.stop]
            yield images

    def _from_files(
        self, split: SplitName, batches: Sequence[range]
    ) -> Iterator[list[Tensor] | Tensor]:
        limit = self.card["image_size_limit"]

        def read(line: str) -> Tensor:
            sha256, _, path = line.partition("  ")
            pixels = read_image(
                self.root / path,
                sha256=sha256,
                channels=self.card["channels"],
                size_limit=limit,
            )
            return torch.from_numpy(pixels)

        lines = self._lines(f"{split}.sha256")
        ahead: list[Future[Tensor]] = []
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            for rows in (*batches, range(0)):
                # While the caller uses the last batch.
                ready, ahead = ahead, [pool.submit(read, lines[row]) for row in rows]
                if images := [future.result() for future in ready]:
                    yield torch.stack(images) if self.one_size else images


def open_prepared(artifact: Artifact, *, root: Path) -> PreparedData:
    """Open a prepared data set of images; texts raise InputError, damage ArtifactError."""
    data = PreparedData(artifact, root=root)
    if data.form != "images":
        raise InputError(
            f"holds {data.form}, not images",
            where=f"data set {data.name}",
            remedy="Choose another one.",
        )
    return data
