"""How large a data set is: what its card says once it is prepared, and before that what its authors state."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from softmax_temperature.data.catalogue import CATALOGUE
from softmax_temperature.data.division import TEST_FRACTION
from softmax_temperature.runner.artifacts import ArtifactError, open_artifact
from softmax_temperature.runner.folders import PREPARED

if TYPE_CHECKING:
    from softmax_temperature.params import Params

CARD = "card.json"


@dataclass(frozen=True)
class DataSize:
    """The size of a prepared data set.

    Attributes:
        train: samples that are fitted on.
        validation: samples set aside from them.
        test: samples.
        classes: how many.
        side: pixels of images of one size; None for files of any size, and for texts.
        channels: of the images.
    """

    train: int
    validation: int
    test: int
    classes: int
    side: int | None = None
    channels: int = 3

    @property
    def samples(self) -> int:
        """Of all splits."""
        return self.train + self.validation + self.test


@dataclass(frozen=True)
class _Stated:
    """Samples of both parts, or of one and None; what `DataSize` says of images; classes that the catalogue has not."""

    train: int
    test: int | None
    side: int | None = None
    channels: int = 3
    classes: int = 0


_STATED = {
    "mnist": _Stated(60_000, 10_000, 28, 1),
    "cifar10": _Stated(50_000, 10_000, 32),
    "cifar100": _Stated(50_000, 10_000, 32),
    "svhn": _Stated(73_257, 26_032, 32),
    "dtd": _Stated(3_760, 1_880),
    "pinterest_faces_105": _Stated(17_534, None),
    "cub200": _Stated(5_994, 5_794),
    "imagenet_r": _Stated(30_000, None),
    "caltech256": _Stated(30_607, None),
    "fss1000": _Stated(10_000, None),
    "imagenet_mini": _Stated(34_745, 3_923),
    "things": _Stated(26_107, None),
    "tiny_imagenet": _Stated(100_000, 10_000, 64),
    "imagenet64": _Stated(1_281_167, 50_000, 64, classes=1000),
    "imdb": _Stated(25_000, 25_000),
    "newsgroups20_all": _Stated(15_998, 3_999),
    "sst_trees": _Stated(7_792, 1_821),
    "digits": _Stated(1_797, None, 8, 1),
}


def data_size(name: str, params: Params) -> DataSize | None:
    """The size of a data set of the parameters; None where neither a card nor its authors tell.

    Args:
        name: as in the section `datasets`.
        params: its limits and splits.
    """
    with suppress(ArtifactError):
        return _from_card(open_artifact(PREPARED / name).json(CARD))
    limits = params.datasets[name]
    source = limits.source or name
    if source not in _STATED:
        return None
    stated = _STATED[source]
    test = stated.test if stated.test is not None else round(stated.train * TEST_FRACTION)
    train = stated.train if stated.test is not None else stated.train - test
    train, test = min(train, limits.train_limit or train), min(test, limits.test_limit or test)
    held_out = round(train * (limits.validation_fraction or params.fetch.validation_fraction))
    classes = stated.classes or CATALOGUE[source].classes
    classes = min(classes, limits.class_limit or classes)
    return DataSize(train - held_out, held_out, test, classes, stated.side, stated.channels)


def _from_card(card: Mapping[str, Any]) -> DataSize:
    sizes = {split: about["size"] for split, about in card["splits"].items()}
    sides = {*card.get("height", []), *card.get("width", [])}
    return DataSize(
        sizes["train"],
        sizes["validation"],
        sizes["test"],
        card["classes"],
        sides.pop() if len(sides) == 1 else None,
        card.get("channels", 3),
    )
