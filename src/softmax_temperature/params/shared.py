"""What every paper's sections share: types, the words of a fault, and the sections for
data and embeddings.
"""

from itertools import pairwise
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
"""What networks multiply in; "auto" is bfloat16 where the processor or GPU multiplies
it, and float32 elsewhere.
"""
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]


def _ascends(values: list[float]) -> list[float]:
    if not all(low < high for low, high in pairwise(values)):
        raise ValueError("must ascend")
    return values


Ascending = Annotated[
    list[PositiveFloat], Field(min_length=1), AfterValidator(_ascends)
]


class Data(Section):
    """Where data come from: `root` holds the user's archives, `download` lets
    torchvision fetch what is not there.
    """

    root: str
    download: bool


class Dataset(Section):
    """How much of a data set is used; null means all of it. Limits keep classes
    balanced.

    `source` is its name where it is found, if that is not its key: one may be prepared
    in several ways, and several joined. `pool` puts the source's own parts of texts
    together; a quarter of each class is then drawn for test.
    """

    source: Name | Annotated[list[Name], Field(min_length=1)] | None = None
    pool: bool = False
    validation_fraction: Fraction | None = None  # Null: that of `fetch`.
    train_limit: PositiveInt | None = None
    test_limit: PositiveInt | None = None
    class_limit: PositiveInt | None = None


class Fetch(Section):
    """Splits: `validation_fraction` of the training part is set aside, class by class,
    before anything is fitted.
    """

    validation_fraction: Fraction
    image_size_limit: (
        PositiveInt | None
    )  # Pixels of the short side above which files are shrunk when read.


class PretrainRecipe(Section):
    """The training of a backbone with SGD."""

    epochs: PositiveInt
    batch_size: PositiveInt
    lr: PositiveFloat
    momentum: Momentum
    weight_decay: NonNegativeFloat


class Pretrain(PretrainRecipe):
    """Training of the backbones whose weights are "pretrain", on glyphs that no other
    data set uses.
    """

    classes: PositiveInt
    images_per_class: PositiveInt


class Embed(Section):
    """Extraction: `batch_size` images at a time, the network in `precision`, embeddings
    stored as float32.
    """

    batch_size: PositiveInt
    precision: Precision


class Text(Section):
    """A network knows the `vocabulary` most frequent words of the training texts,
    padding and the unknown one included.

    It reads at most `length` words of a text, from its start or its end (`keep`).
    """

    vocabulary: Annotated[int, Field(ge=3)]
    length: PositiveInt
    keep: Literal["start", "end"]


def fault(error: ValidationError) -> tuple[str, str]:
    """The dotted key and the words of the first fault."""
    first = error.errors()[0]
    given = "" if isinstance(first["input"], dict) else f" (given: {first['input']!r})"
    return ".".join(
        map(str, first["loc"])
    ), f"{first['msg'].removeprefix('Value error, ').rstrip('.')}{given}"[:300]
