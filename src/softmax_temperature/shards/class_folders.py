"""Shards of a folder with a folder of images for each class: so many images each, in the order of their names.

Only the names of one class, or of one shard, are in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from softmax_temperature.data.class_folders import class_names, has_class_folders, images_of_class, refuse
from softmax_temperature.data.image_files import LARGEST
from softmax_temperature.runner.errors import InputError

_LAYOUT = "Put the images of each class into a folder of its own below this one, or give a folder of tar files."


class Piece(NamedTuple):
    """Images that follow each other in the order of classes and names.

    Attributes:
        first: the class that they begin in.
        skip: how many images of it come before.
        images: how many they are; the last piece has fewer.
    """

    first: str
    skip: int
    images: int


class FolderImages:
    """The images of a piece.

    Args:
        root: the folder that holds the class folders.
        piece: which of its images.

    Raises:
        InputError: a class has no image, a link leads out of the folder, or there are no two classes.
    """

    def __init__(self, root: Path, piece: Piece) -> None:
        self._root = root.resolve().parent
        found = list(_images(root, piece))
        self._paths = [path for path, _ in found]
        self.names = [path.partition("/")[2] for path in self._paths]
        self.labels = [label for _, label in found]

    def content(self, row: int) -> bytes:
        """The bytes of an image file."""
        path = Path(self.place(row))
        try:
            if (size := path.stat().st_size) > LARGEST:
                refuse(path, f"{size:,} bytes are too many for an image", remedy="Take it out of the folder.")
            return path.read_bytes()
        except OSError as error:
            what = f"cannot be read ({error.strerror})"
            raise InputError(what, where=str(path), remedy="Make it readable.") from error

    def place(self, row: int) -> str:
        """Where it is."""
        return f"{self._root}/{self._paths[row]}"


def classes_of(root: Path) -> list[str]:
    """The names of the classes; their places are the labels.

    Raises:
        InputError: there are fewer than two.
    """
    place = root.resolve()
    names = class_names(place, boundary=place)
    if has_class_folders(place.parent, place.name):
        refuse(root, "is divided into parts", remedy=f"Give one of them, as {root}/train.")
    if len(names) < 2:
        refuse(root, f"has {len(names)} class folders with images and no tar files", remedy=_LAYOUT)
    return names


def pieces(root: Path, size: int) -> Iterator[Piece]:
    """Divide all images into pieces of a size."""
    place, filled, piece = root.resolve(), 0, None
    for name in classes_of(root):
        images, start = len(images_of_class(place.parent, f"{place.name}/{name}", boundary=place)), 0
        while start < images:
            piece = piece or Piece(name, start, size)
            taken = min(size - filled, images - start)
            filled, start = filled + taken, start + taken
            if filled == size:
                yield piece
                filled, piece = 0, None
    if piece is not None:
        yield piece._replace(images=filled)


def _images(root: Path, piece: Piece) -> Iterator[tuple[str, int]]:
    """Path and label of each image, the path relative to the folder in which `root` lies."""
    place, names = root.resolve(), classes_of(root)
    if piece.first not in names:
        refuse(root / piece.first, "is gone", remedy="Start again: the data set has changed.")
    skip, left = piece.skip, piece.images
    for label in range(names.index(piece.first), len(names)):
        paths = images_of_class(place.parent, f"{place.name}/{names[label]}", boundary=place)[skip : skip + left]
        yield from ((path, label) for path in paths)
        skip, left = 0, left - len(paths)
        if left == 0:
            return
