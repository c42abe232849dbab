"""Prepared data sets: the form in which stages read labelled images, texts and trees.

An artifact of the `fetch` stage holds

- `card.json`: name, source, licence, classes, splits, rules and limits;
- `rows.safetensors`: `SPLIT.labels` and `SPLIT.index`, int64 tensors of shape (n,);
- for each split, one of three files:

  - `SPLIT.safetensors` holds the uint8 tensor `images` (n, channels, height, width);
  - `SPLIT.sha256` has a line "digest  path below data.root" for each image file, and
    the digest is checked on every read;
  - `SPLIT.jsonl` has a JSON string on each line, a text or a bracketed tree.
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

_BATCH_IN_MEMORY = 1024


class PreparedData:
    """A prepared data set; its `form` is images, texts or trees.

    Raises:
        ArtifactError: If the card or the labels are damaged.
    """

    splits = SPLITS

    def __init__(self, artifact: Artifact, *, root: Path) -> None:
        self.artifact = artifact
        self.root = root
        self.card = artifact.json(CARD)
        self.rows = artifact.tensors(ROWS)
        self.name = self.card["name"]
        self.form = self.card.get("form", "images")
        self.class_names = tuple(self.card["class_names"])
        self.classes = len(self.class_names)

    @property
    def one_size(self) -> bool:
        """Whether all images of all splits have the same height and width."""
        ranges = (self.card["height"], self.card["width"])
        return all(least == greatest for least, greatest in ranges)

    def labels(self, split: SplitName) -> Tensor:
        """The class indices of a split's samples, (n,) int64."""
        return self.rows[f"{split}.labels"]

    def index(self, split: SplitName) -> Tensor:
        """A split's row indices in the source's part, (n,) int64, ascending."""
        return self.rows[f"{split}.index"]

    def texts(self, split: SplitName) -> Part:
        """Read one split of a data set of texts or trees."""
        texts = [json.loads(line) for line in self._lines(f"{split}.jsonl")]
        return self._part(split, tuple(texts))

    def part(self, split: SplitName) -> Part:
        """Read one split fully into memory; all its images must have one size."""
        batches: Any = list(self.batches(split, _BATCH_IN_MEMORY))
        return self._part(split, torch.cat(batches))

    def batches(
        self, split: SplitName, batch_size: int
    ) -> Iterator[list[Tensor] | Tensor]:
        """Iterate over the uint8 images of a split in batches, in order.

        A batch of b images is a tensor (b, channels, height, width), or a list of b
        tensors (channels, height, width) if the data set has images of several sizes.

        Raises:
            InputError: If the split is empty, or an image file is missing or changed.
        """
        size = len(self.labels(split))
        if size == 0:
            raise InputError(
                f"has test images only and no {split} split, so it can only be "
                "out_of_distribution or shifted",
                where=f"data set {self.name}",
                remedy="Choose another one.",
            )
        batches = [
            range(start, min(start + batch_size, size))
            for start in range(0, size, batch_size)
        ]
        if f"{split}.safetensors" in self.artifact.files:
            return self._from_array(split, batches)
        return self._from_files(split, batches)

    def _part(self, split: SplitName, data: Any) -> Part:
        return Part(self.name, split, data, self.labels(split), self.index(split))

    def _lines(self, file: str) -> list[str]:
        text = self.artifact.path(file).read_text(encoding="utf-8")
        return text.split("\n")[:-1]

    def _from_array(
        self, split: SplitName, batches: Sequence[range]
    ) -> Iterator[Tensor]:
        path = self.artifact.path(f"{split}.safetensors")
        for rows in batches:
            # Map the file again for each batch. With one mapping for all batches, the
            # pages that were read would stay in memory.
            with safe_open(path, framework="pt") as file:
                images = file.get_slice("images")[rows.start : rows.stop]
            yield images

    def _from_files(
        self, split: SplitName, batches: Sequence[range]
    ) -> Iterator[list[Tensor] | Tensor]:
        """Decode the next batch in threads while the caller uses the current one."""
        lines = self._lines(f"{split}.sha256")
        upcoming: list[Future[Tensor]] = []
        with ThreadPoolExecutor(torch.get_num_threads()) as pool:
            for rows in (*batches, range(0)):
                current = upcoming
                upcoming = [pool.submit(self._read, lines[row]) for row in rows]
                images = [future.result() for future in current]
                if images:
                    yield torch.stack(images) if self.one_size else images

    def _read(self, line: str) -> Tensor:
        """Read the image file that `line`, a line of `SPLIT.sha256`, names."""
        sha256, _, path = line.partition("  ")
        pixels = read_image(
            self.root / path,
            sha256=sha256,
            channels=self.card["channels"],
            size_limit=self.card["image_size_limit"],
        )
        return torch.from_numpy(pixels)


def open_prepared(artifact: Artifact, *, root: Path) -> PreparedData:
    """Open a prepared data set of images.

    Raises:
        InputError: If the data set holds texts or trees.
        ArtifactError: If the card or the labels are damaged.
    """
    data = PreparedData(artifact, root=root)
    if data.form != "images":
        raise InputError(
            f"holds {data.form}, not images",
            where=f"data set {data.name}",
            remedy="Choose another one.",
        )
    return data
