"""Types and sections that several papers use: numbers, data, embeddings and texts."""

from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    Field,
    NonNegativeFloat,
    PositiveFloat,
    PositiveInt,
    ValidationError,
)

from softmax_temperature.runner.section import Section

Fraction = Annotated[float, Field(gt=0, lt=1)]
Momentum = Annotated[float, Field(ge=0, lt=1)]
Precision = Literal["float32", "bfloat16", "auto"]
"""The precision of matrix products.

"auto" is bfloat16 if the processor or GPU supports it, and float32 otherwise.
"""
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]

_FAULT_LENGTH = 300


def _ascends(values: list[float]) -> list[float]:
    if not all(low < high for low, high in pairwise(values)):
        raise ValueError("must ascend")
    return values


Ascending = Annotated[
    list[PositiveFloat], Field(min_length=1), AfterValidator(_ascends)
]


def _without_tilde(folder: str) -> str:
    """Replace `~` or `~user` at the start of the path `folder` with the home folder."""
    if not folder.startswith("~"):
        return folder
    try:
        return str(Path(folder).expanduser())
    except RuntimeError as error:
        raise ValueError(
            f"cannot find the home folder of {folder.partition('/')[0]}"
        ) from error


Folder = Annotated[str, AfterValidator(_without_tilde)]


class Data(Section):
    """Settings for the sources of data.

    `root` is the folder with the user's data. `download` lets libraries fetch missing
    data sets (torchvision) and missing weights of backbones (timm and torchvision).
    """

    root: Folder
    download: bool


class Dataset(Section):
    """The samples of a data set that are used.

    `class_limit` is the number of classes to use, and `train_limit` and `test_limit`
    are numbers of samples, balanced between the classes. A limit that is null leaves
    nothing out. `source` names the source if it is not the key, so that one source may
    be prepared in several ways. A list names several sources, which are joined. `pool`
    joins all parts of a data set of texts or trees, and then draws a quarter of each
    class as a new test part. If `validation_fraction` is null, the value in `fetch`
    applies.
    """

    source: Name | Annotated[list[Name], Field(min_length=1)] | None = None
    pool: bool = False
    validation_fraction: Fraction | None = None
    train_limit: PositiveInt | None = None
    test_limit: PositiveInt | None = None
    class_limit: PositiveInt | None = None


class Fetch(Section):
    """Settings for preparing data sets.

    If a data set has no validation part of its own, the share `validation_fraction` of
    each training class becomes its validation part. Image files whose shorter side has
    more than `image_size_limit` pixels are shrunk on reading until it has that many
    (null: not shrunk).
    """

    validation_fraction: Fraction
    image_size_limit: PositiveInt | None


class PretrainRecipe(Section):
    """Settings for training a backbone with SGD."""

    epochs: PositiveInt
    batch_size: PositiveInt
    lr: PositiveFloat
    momentum: Momentum
    weight_decay: NonNegativeFloat


class Pretrain(PretrainRecipe):
    """Settings for training the backbones whose `weights` are "pretrain".

    The backbones are trained on characters that no data set `glyphs-N` or
    `glyph-scenes-N` contains.
    """

    classes: PositiveInt
    images_per_class: PositiveInt


class Embed(Section):
    """Settings for extracting embeddings, which are stored as float32.

    The network embeds `batch_size` images at a time, in `precision`.
    """

    batch_size: PositiveInt
    precision: Precision


class Text(Section):
    """The form in which a network reads texts.

    The most frequent tokens of the training texts get token IDs. There are at most
    `vocabulary` IDs, including one for padding and one for unknown tokens. The network
    reads at most `length` tokens of a text, from its start or its end (`keep`). A tree
    is always read whole.
    """

    vocabulary: Annotated[int, Field(ge=3)]
    length: PositiveInt
    keep: Literal["start", "end"]


def fault(error: ValidationError) -> tuple[str, str]:
    """Return the dotted key and the message of the first fault that `error` lists."""
    first = error.errors()[0]
    key = ".".join(str(step) for step in first["loc"])
    message = first["msg"].removeprefix("Value error, ").rstrip(".")
    if not isinstance(first["input"], dict):
        message = f"{message} (given: {first['input']!r})"
    return key, message[:_FAULT_LENGTH]
