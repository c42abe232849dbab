"""Sections that serve every paper: data, machines, backbones' embeddings."""

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, PositiveFloat, PositiveInt

from softmax_temperature.params.section import Fraction, Momentum, Name, Precision, Section


class Data(Section):
    """Where data come from: `root` holds the user's archives, `download` lets torchvision fetch what is not there."""

    root: str
    download: bool


class Compute(Section):
    """How cells run; not a part of their fingerprints.

    `workers` cells run at a time, each with `threads_per_cell` threads, on `device` ("auto": a GPU when there is one).
    Engine and workers change no result; threads and device change its last bits. `ray_address` is a running cluster's
    address, or null for that in RAY_ADDRESS, or for this machine where there is none; `gpus_per_cell` may be a fraction
    of one GPU. On a GPU, `cuda_graphs` captures the training step where it has one shape, and `deterministic` asks for
    algorithms that give the same bits each time (null: on a CPU alone).
    """

    engine: Literal["serial", "processes", "ray"]
    workers: PositiveInt
    threads_per_cell: PositiveInt
    device: Literal["auto", "cpu", "cuda"]
    checkpoint_seconds: NonNegativeFloat
    ray_address: str | None
    gpus_per_cell: NonNegativeFloat
    cuda_graphs: bool = True
    deterministic: bool | None = None


class Dataset(Section):
    """How much of a data set is used; null means all of it. Limits keep classes balanced.

    The key of the section names it in this project; `source` is its name where it is found, when that differs: one data
    set may be prepared in several ways, and several archives joined. `validation_fraction` is its own, or that of
    `fetch`. `pool` puts the source's own parts together, of texts alone; a quarter of each class is then drawn for
    test.
    """

    source: Name | Annotated[list[Name], Field(min_length=1)] | None = None
    pool: bool = False
    validation_fraction: Fraction | None = None
    train_limit: PositiveInt | None = None
    test_limit: PositiveInt | None = None
    class_limit: PositiveInt | None = None


class Fetch(Section):
    """Splits: `validation_fraction` of the training part is set aside, class by class, before anything is fitted.

    Image files whose short side exceeds `image_size_limit` pixels are shrunk when read; null leaves them as they are.
    """

    validation_fraction: Fraction
    image_size_limit: PositiveInt | None


class PretrainRecipe(Section):
    """The training of a backbone with SGD."""

    epochs: PositiveInt
    batch_size: PositiveInt
    lr: PositiveFloat
    momentum: Momentum
    weight_decay: NonNegativeFloat


class Pretrain(PretrainRecipe):
    """Training of the backbones whose weights are "pretrain", on glyphs that no other data set uses."""

    classes: PositiveInt
    images_per_class: PositiveInt


class Embed(Section):
    """Extraction: `batch_size` images at a time, the network in `precision`, embeddings stored as float32."""

    batch_size: PositiveInt
    precision: Precision


class Text(Section):
    """Texts as a network reads them.

    It knows the `vocabulary` most frequent words of the training texts, padding and the unknown word included, and
    reads at most `length` words of a text, from its start or its end (`keep`).
    """

    vocabulary: Annotated[int, Field(ge=3)]
    length: PositiveInt
    keep: Literal["start", "end"]
