"""Typed parameters: what `params.yaml` may say, and what it means.

Unknown keys and wrong types are errors, names that refer to each other are checked, and
an unknown name is answered with the nearest valid one. `params.yaml` gives the reasons
and sources of the values; the classes give their meanings.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, NonNegativeInt, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from softmax_temperature.params.classifier_temperature import ClassifierTemperature
from softmax_temperature.params.cooling import Cooling
from softmax_temperature.params.focal import Focal
from softmax_temperature.params.network import Backbone, Network
from softmax_temperature.params.shared import (
    Data,
    Dataset,
    Embed,
    Fetch,
    Name,
    Pretrain,
    fault,
)
from softmax_temperature.params.temperature_check import TemperatureCheck
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.section import Compute, Section, all_known

Paper = Literal["classifier_temperature", "focal", "cooling", "temperature_check"]


class Params(Section):
    """All of `params.yaml`; the sections of papers that `papers` does not name are not
    used.
    """

    profile: Name
    papers: Annotated[list[Paper], Field(min_length=1)]
    seed: NonNegativeInt
    data: Data
    compute: Compute
    datasets: Annotated[dict[Name, Dataset], Field(min_length=1)]
    backbones: dict[Name, Backbone]
    fetch: Fetch
    pretrain: Pretrain
    embed: Embed
    networks: dict[Name, Network]
    classifier_temperature: ClassifierTemperature
    focal: Focal
    cooling: Cooling
    temperature_check: TemperatureCheck

    def embedded_pairs(self) -> list[tuple[str, str]]:
        """The data sets and backbones whose embeddings some paper needs."""
        paper = self.classifier_temperature
        return [
            (dataset, backbone)
            for dataset in paper.datasets
            for backbone in paper.backbones
        ]

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        paper, early = (
            self.classifier_temperature,
            self.temperature_check.early_learning,
        )
        names: list[tuple[str, Any, Any]] = [
            ("classifier_temperature.datasets", paper.datasets, self.datasets),
            ("classifier_temperature.backbones", paper.backbones, self.backbones),
            (
                "classifier_temperature.rescaling.dataset",
                [paper.rescaling.dataset],
                paper.datasets,
            ),
            (
                "classifier_temperature.rescaling.backbone",
                [paper.rescaling.backbone],
                paper.backbones,
            ),
        ]
        for part in ("focal.tasks", "cooling.experiments", "temperature_check.sweeps"):
            section, _, key = part.partition(".")
            trained = getattr(getattr(self, section), key)
            if section in self.papers and not trained:
                raise ValueError(
                    f"{part}: there must be one where `papers` names the paper"
                )
            for name, each in trained.items():
                others = (
                    [*each.out_of_distribution, *each.shifted]
                    if section == "focal"
                    else []
                )
                names.append((f"{part}.{name}", [each.dataset, *others], self.datasets))
                names.append((f"{part}.{name}", [each.network], self.networks))
        if early:
            names.append(
                (
                    "temperature_check.early_learning.dataset",
                    [early.dataset],
                    self.datasets,
                )
            )
            names.append(
                (
                    "temperature_check.early_learning.networks",
                    early.networks,
                    self.networks,
                )
            )
        for key, some, known in names:
            if key.partition(".")[0] in self.papers:
                all_known(key, some, known)
        return self


def read_yaml(path: Path, *, kind: Literal["rt", "safe"] = "safe") -> Any:
    """Read a YAML 1.2 file in UTF-8; "rt" keeps comments and order, "safe" is faster.
    No tag constructs an object.
    """
    if not path.is_file():
        raise InputError(
            "no such file",
            where=str(path),
            remedy="Run this in the project's root folder.",
        )
    try:
        return YAML(typ=kind).load(path.read_text(encoding="utf-8"))
    # Invalid dates and numbers, and very deep nesting, raise Python's own errors.
    except (YAMLError, ValueError, RecursionError, AttributeError) as error:
        raise InputError(
            f"not readable as YAML ({error})",
            where=str(path),
            remedy="Correct that line.",
        ) from error


def read_params(path: Path) -> Params:
    """Read a parameter file; an InputError if it is missing, no YAML, or says something
    that `Params` refuses.
    """
    return validate(read_yaml(path), where=str(path))


def validate(content: Any, *, where: str) -> Params:
    """Check the content of a parameter file, whose name is `where`."""
    try:
        return Params.model_validate(content)
    except ValidationError as error:
        key, what = fault(error)
        remedy = "Correct it in params.yaml, or apply a profile again."
        raise InputError(
            what, where=f"{where}: {key}" if key else where, remedy=remedy
        ) from error
