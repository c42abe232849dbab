"""Prepared data sets: what every stage after fetch reads.

The artifact of kind "fetch" holds

    card.json           name, source, licence, classes, splits, rules and limits
    rows.safetensors    {split}.labels and {split}.index
    {split}.safetensors the images, (n, channels, height, width) uint8, or
    {split}.sha256      one line a file, "digest  path below data.root", in the form that `sha256sum --check` reads

so a data set of large files is not copied; each file is compared with its digest whenever it is read.
"""

from __future__ import annotations

from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from softmax_temperature.data.image_files import read_image
from softmax_temperature.data.splits import SPLITS, Part, SplitName
from softmax_temperature.runner.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from torch import Tensor

    from softmax_temperature.runner.artifacts import Artifact

KIND = "fetch"
CARD = "card.json"
ROWS = "rows.safetensors"

_BATCHES_AHEAD = 1  # Read while the caller works on the one before.


def images_file(split: str) -> str:
    """The name of the file that holds a split's pixels."""
    return f"{split}.safetensors"


def index_file(split: str) -> str:
    """The name of the file that lists a split's image files."""
    return f"{split}.sha256"


@dataclass(frozen=True, eq=False)
class PreparedImages:
    """A prepared data set of images, read as a stream.

    Attributes:
        artifact: where it is stored.
        root: the folder that paths of image files are below (data.root).
        card: what is known about it.
    """

    artifact: Artifact
    root: Path
    card: dict[str, Any]
    _rows: dict[str, Tensor] = field(repr=False)

    @property
    def name(self) -> str:
        """The data set's name."""
        return str(self.card["name"])

    @property
    def classes(self) -> int:
        """The number of classes; a split need not hold all of them."""
        return len(self.card["class_names"])

    @property
    def class_names(self) -> tuple[str, ...]:
        """One name a class, in the order of the labels."""
        return tuple(self.card["class_names"])

    @property
    def channels(self) -> int:
        """1 for grey, 3 for RGB."""
        return int(self.card["channels"])

    @property
    def one_size(self) -> bool:
        """Whether all images of all splits have the same height and width."""
        return all(low == high for low, high in (self.card["height"], self.card["width"]))

    @property
    def splits(self) -> tuple[SplitName, ...]:
        """The splits, in the order train, validation, test."""
        return SPLITS

    def size(self, split: SplitName) -> int:
        """The number of images in a split."""
        return len(self.labels(split))

    def labels(self, split: SplitName) -> Tensor:
        """(n,) int64, class numbers."""
        return self._row(split, "labels")

    def index(self, split: SplitName) -> Tensor:
        """(n,) int64, the images' numbers in the original train or test part, ascending."""
        return self._row(split, "index")

    def batches(self, split: SplitName, batch_size: int) -> Iterator[list[Tensor] | Tensor]:
        """The images of a split in the order of its labels, a batch at a time.

        Memory is bounded by two batches. Files are decoded by as many threads as torch may use.

        Args:
            split: which one.
            batch_size: images a batch; the last may have fewer.

        Yields:
            (b, channels, height, width) uint8 when all images of the data set have one size, otherwise a list of b
            tensors (channels, height, width).

        Raises:
            ValueError: unknown split, or `batch_size` below 1.
            ArtifactError: the stored images are damaged.
            InputError: an image file is missing or has changed; the error names it.
        """
        if batch_size < 1:
            raise ValueError(f"batch_size: {batch_size}, must be at least 1")
        size = self.size(split)
        stream = self._from_array if images_file(split) in self.artifact.files else self._from_files
        return stream(split, [range(start, min(start + batch_size, size)) for start in range(0, size, batch_size)])

    def part(self, split: SplitName) -> Part:
        """A whole split in memory, for data sets of small images.

        Raises:
            ValueError: the images differ in size.
        """
        import torch

        if not self.one_size:
            raise ValueError(f"{self.name}: images differ in size; read them in batches")
        images = torch.cat([batch for batch in self.batches(split, 1024) if isinstance(batch, torch.Tensor)])
        return Part(self.name, split, images, self.labels(split), self.index(split))

    def _row(self, split: SplitName, column: str) -> Tensor:
        if split not in self.splits:
            raise ValueError(f"split: {split!r}, must be one of {', '.join(self.splits)}")
        return self._rows[f"{split}.{column}"]

    def _from_array(self, split: SplitName, batches: Sequence[range]) -> Iterator[Tensor]:
        from safetensors import safe_open

        path = self.artifact.path(images_file(split))
        for rows in batches:
            # Mapped anew for each batch: pages of one long mapping would stay resident.
            with safe_open(path, framework="pt") as file:
                images = file.get_slice("images")[rows.start : rows.stop]
            yield images

    def _from_files(self, split: SplitName, batches: Sequence[range]) -> Iterator[list[Tensor] | Tensor]:
        import torch

        lines = self.artifact.path(index_file(split)).read_bytes().decode().split("\n")

        def read(row: int) -> Tensor:
            sha256, _, path = lines[row].partition("  ")
            limit = self.card["image_size_limit"]
            pixels = read_image(self.root / path, sha256=sha256, channels=self.channels, size_limit=limit)
            return torch.from_numpy(pixels)

        for images in _read_ahead(read, batches, torch.get_num_threads()):
            yield torch.stack(images) if self.one_size else images


def open_prepared(artifact: Artifact, *, root: Path) -> PreparedImages:
    """Open a prepared data set; card and labels are verified and read now, images when they are asked for.

    Args:
        artifact: what the fetch stage made.
        root: the folder of the raw data (data.root).

    Raises:
        ArtifactError: card or labels are missing or damaged.
        InputError: it is a data set of texts.
    """
    card = artifact.json(CARD)
    if not any(file("train") in artifact.files for file in (images_file, index_file)):
        raise InputError("holds texts, not images", where=f"data set {card['name']}", remedy="Choose another one.")
    return PreparedImages(artifact, root, card, artifact.tensors(ROWS))


def _read_ahead(read: Callable[[int], Tensor], batches: Sequence[range], threads: int) -> Iterator[list[Tensor]]:
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[list[Future[Tensor]]] = deque()
        for rows in batches:
            waiting.append([pool.submit(read, row) for row in rows])
            if len(waiting) > _BATCHES_AHEAD:
                yield [future.result() for future in waiting.popleft()]
        while waiting:
            yield [future.result() for future in waiting.popleft()]
