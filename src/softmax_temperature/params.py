"""Typed parameters: what `params.yaml` may say, and what it means.

One class for each section. Unknown keys and wrong types are errors, names that refer to each other are checked, and an
unknown name is answered with the nearest valid one. The reasons and sources of the values stand beside them in
`params.yaml`; the meanings stand here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from softmax_temperature.backbone_spec import Backbone  # noqa: TC001  # pydantic looks it up at run time
from softmax_temperature.errors import InputError, nearest

Fraction = Annotated[float, Field(gt=0, lt=1)]
Precision = Literal["float32", "bfloat16"]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")]


class Section(BaseModel):
    """A section of `params.yaml`: no unknown keys, no silent conversion, no change after reading."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Data(Section):
    """Where data come from: `root` holds the user's archives, `download` lets torchvision fetch what is not there."""

    root: str
    download: bool


class Compute(Section):
    """How cells run: no part of a cell's fingerprint.

    `workers` cells run at a time, each with `threads_per_cell` threads, on `device` ("auto": a GPU when there is one).
    Engine and workers change no result; threads and device change its last bits.
    `ray_address` is a running cluster's address, or null for this machine; `gpus_per_cell` may be a fraction.
    """

    engine: Literal["serial", "processes", "ray"]
    workers: PositiveInt
    threads_per_cell: PositiveInt
    device: Literal["auto", "cpu", "cuda"]
    checkpoint_seconds: Annotated[float, Field(ge=0)]
    ray_address: str | None
    gpus_per_cell: Annotated[float, Field(ge=0)]


class Dataset(Section):
    """How much of a data set is used; null means all of it. Limits keep classes balanced.

    The key of the section names it in this project; `source` is its name where it is found, when that differs: one data
    set may be prepared in several ways. `validation_fraction` is its own, or that of `fetch`.
    """

    source: Name | None = None
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


class Pretrain(Section):
    """Training of the backbones whose weights are "pretrain", on glyphs that no other data set uses."""

    classes: PositiveInt
    images_per_class: PositiveInt
    epochs: PositiveInt
    batch_size: PositiveInt
    lr: PositiveFloat
    momentum: Annotated[float, Field(ge=0, lt=1)]
    weight_decay: Annotated[float, Field(ge=0)]


class Embed(Section):
    """Extraction: `batch_size` images at a time, the network in `precision`, embeddings stored as float32."""

    batch_size: PositiveInt
    precision: Precision


class Search(Section):
    """The grid of inverse temperatures (paper section 4.1 and 4.3)."""

    inverse_temperatures: list[PositiveFloat]
    epochs: PositiveInt
    batch_size: PositiveInt
    lr: PositiveFloat
    momentum: Annotated[float, Field(ge=0, lt=1)]
    repeats: PositiveInt
    select_on: Literal["test", "validation"]
    precision: Precision


class Rescaling(Section):
    """Figure 2: plain against rescaled cross-entropy, SGD against Adam, on one embedded data set."""

    dataset: Name
    backbone: Name
    epochs: PositiveInt
    batch_size: PositiveInt
    sgd_lr: PositiveFloat
    adam_lr: PositiveFloat
    momentum: Annotated[float, Field(ge=0, lt=1)]
    repeats: PositiveInt
    precision: Precision


class HeuristicSection(Section):
    """The regression: `selected` statistics in its middle row, pairs with plateaus above `max_plateau` set apart."""

    selected: PositiveInt
    max_plateau: Fraction


class ClassifierTemperature(Section):
    """The paper `classifier_temperature`: every data set with every backbone."""

    datasets: list[Name]
    backbones: list[Name]
    search: Search
    rescaling: Rescaling
    heuristic: HeuristicSection


class Params(Section):
    """All of `params.yaml`."""

    profile: Name
    seed: Annotated[int, Field(ge=0)]
    data: Data
    compute: Compute
    datasets: dict[Name, Dataset]
    backbones: dict[Name, Backbone]
    fetch: Fetch
    pretrain: Pretrain
    embed: Embed
    classifier_temperature: ClassifierTemperature

    def embedded_pairs(self) -> list[tuple[str, str]]:
        """The data sets and backbones whose embeddings some paper needs; a paper that needs more adds its own here."""
        paper = self.classifier_temperature
        return [(dataset, backbone) for dataset in paper.datasets for backbone in paper.backbones]

    @model_validator(mode="after")
    def _names_exist(self) -> Params:
        paper = self.classifier_temperature
        _all_known("classifier_temperature.datasets", paper.datasets, self.datasets)
        _all_known("classifier_temperature.backbones", paper.backbones, self.backbones)
        _all_known("classifier_temperature.rescaling.dataset", [paper.rescaling.dataset], paper.datasets)
        _all_known("classifier_temperature.rescaling.backbone", [paper.rescaling.backbone], paper.backbones)
        return self


def read_params(path: Path) -> Params:
    """Read and validate a parameter file.

    Raises:
        InputError: the file is missing, is not YAML, or says something that `Params` does not allow.
    """
    return validate(read_yaml(path), where=str(path))


def read_yaml(path: Path) -> Any:
    """Read a YAML 1.2 file, keeping comments and order for writing it back; no tag constructs an object."""
    if not path.is_file():
        raise InputError("no such file", where=str(path), remedy="Run this in the project's root folder.")
    try:
        return YAML(typ="rt").load(path.read_text(encoding="utf-8"))
    except (YAMLError, UnicodeDecodeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"not readable as YAML ({reason})", where=str(path), remedy="Mend that line.") from error


def validate(content: Any, *, where: str) -> Params:
    """Check the content of a parameter file.

    Args:
        content: what `read_yaml` returned.
        where: the file's name, for the error.
    """
    try:
        return Params.model_validate(_plain(content))
    except ValidationError as error:
        # A misspelled key also leaves its right name missing: the misspelling is what to mend.
        first = min(error.errors(), key=lambda one: one["type"] != "extra_forbidden")
        key = ".".join(str(part) for part in first["loc"])
        raise InputError(_reason(first), where=f"{where}: {key}" if key else where, remedy=_remedy(first)) from error


def _all_known(key: str, names: list[str], valid: Any) -> None:
    for name in names:
        if name not in valid:
            raise ValueError(f"{key}: unknown name {name!r}. {nearest(name, valid)}")


def _plain(content: Any) -> Any:
    """Strip ruamel's round-trip types, which strict validation would refuse."""
    if isinstance(content, dict):
        return {str(key): _plain(value) for key, value in content.items()}
    if isinstance(content, list):
        return [_plain(value) for value in content]
    for plain in (bool, int, float, str):
        if isinstance(content, plain):
            return plain(content)
    return content


def _reason(error: Any) -> str:
    if error["type"] == "extra_forbidden":
        return "unknown parameter"
    if error["type"] == "missing":
        return "missing"
    return f"{error['msg'].removeprefix('Value error, ').rstrip('.')} (given: {error['input']!r})"[:300]


def _remedy(error: Any) -> str:
    if error["type"] != "extra_forbidden":
        return "Correct it in params.yaml, or apply a profile again."
    section: Any = Params
    for part in error["loc"][:-1]:
        section = _section_below(section, part)
    fields = section.model_fields if isinstance(section, type) and issubclass(section, BaseModel) else {}
    return nearest(str(error["loc"][-1]), fields)


def _section_below(section: Any, key: Any) -> Any:
    """The class that describes one key's value; the classes of `datasets` and `backbones` are their values'."""
    if not (isinstance(section, type) and issubclass(section, BaseModel)):
        return section.__args__[1] if hasattr(section, "__args__") else None
    field = section.model_fields.get(str(key))
    return None if field is None else field.annotation
