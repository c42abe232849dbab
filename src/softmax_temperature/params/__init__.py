"""Typed parameters: what `params.yaml` may say, and what it means.

Unknown keys and wrong types are errors, names that refer to each other are checked, and an unknown name is answered
with the nearest valid one. `params.yaml` gives the reasons and sources of the values; the classes give their meanings.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationError, model_validator

from softmax_temperature.params.backbone import Backbone
from softmax_temperature.params.classifier_temperature import ClassifierTemperature
from softmax_temperature.params.cooling import Cooling
from softmax_temperature.params.focal import Focal
from softmax_temperature.params.network import Network
from softmax_temperature.params.section import UNKNOWN, Name, Section, all_known, key_and_remedy
from softmax_temperature.params.shared import Compute, Data, Dataset, Embed, Fetch, Pretrain
from softmax_temperature.params.temperature_check import TemperatureCheck
from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.reading import read_yaml

__all__ = ["Compute", "Params", "read_params", "validate"]

Paper = Literal["classifier_temperature", "focal", "cooling", "temperature_check"]


class Params(Section):
    """All of `params.yaml`; the sections of papers that `papers` does not name are not used."""

    profile: Name
    papers: Annotated[list[Paper], Field(min_length=1)]
    seed: Annotated[int, Field(ge=0)]
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
        return [(dataset, backbone) for dataset in paper.datasets for backbone in paper.backbones]

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        paper, early = self.classifier_temperature, self.temperature_check.early_learning
        names: list[tuple[str, Any, Any]] = [
            ("classifier_temperature.datasets", paper.datasets, self.datasets),
            ("classifier_temperature.backbones", paper.backbones, self.backbones),
            ("classifier_temperature.rescaling.dataset", [paper.rescaling.dataset], paper.datasets),
            ("classifier_temperature.rescaling.backbone", [paper.rescaling.backbone], paper.backbones),
        ]
        for part in ("focal.tasks", "cooling.experiments", "temperature_check.sweeps"):
            section, _, key = part.partition(".")
            trained = getattr(getattr(self, section), key)
            if section in self.papers and not trained:
                raise ValueError(f"{part}: there must be one where `papers` names the paper")
            for name, each in trained.items():
                names.append((f"{part}.{name}.dataset", [each.dataset], self.datasets))
                names.append((f"{part}.{name}.network", [each.network], self.networks))
        for name, task in self.focal.tasks.items():
            names.append((f"focal.tasks.{name}.out_of_distribution", task.out_of_distribution, self.datasets))
            names.append((f"focal.tasks.{name}.shifted", task.shifted, self.datasets))
        if early:
            names.append(("temperature_check.early_learning.dataset", [early.dataset], self.datasets))
            names.append(("temperature_check.early_learning.networks", early.networks, self.networks))
        for key, some, known in names:
            if key.partition(".")[0] in self.papers:
                all_known(key, some, known)
        return self


def read_params(path: Path) -> Params:
    """Read a parameter file; an InputError if it is missing, no YAML, or says something that `Params` refuses."""
    return validate(read_yaml(path), where=str(path))


def validate(content: Any, *, where: str) -> Params:
    """Check the content of a parameter file, whose name is `where`."""
    try:
        return Params.model_validate(content)
    except ValidationError as error:
        # A misspelled key also leaves its right name missing: the misspelling is what to mend.
        first = min(error.errors(), key=lambda one: one["type"] != UNKNOWN)
        key, remedy = key_and_remedy(first)
        what = {UNKNOWN: "unknown parameter", "missing": "missing"}.get(first["type"])
        given = "" if isinstance(first["input"], dict) else f" (given: {first['input']!r})"
        what = what or f"{first['msg'].removeprefix('Value error, ').rstrip('.')}{given}"[:300]
        remedy = remedy or "Correct it in params.yaml, or apply a profile again."
        raise InputError(what, where=f"{where}: {key}" if key else where, remedy=remedy) from error
