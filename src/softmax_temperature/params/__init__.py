"""Typed parameters: the schema of `params.yaml` and the meaning of its values.

Unknown keys and wrong types are errors, references between sections are checked, and
the error for an unknown name suggests the valid name that is spelt most like it.
`params.yaml` gives the reasons and sources of the values; the classes explain what the
values mean.
"""

from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, get_args

from pydantic import Field, NonNegativeInt, ValidationError, model_validator
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from softmax_temperature.params.classifier_temperature import ClassifierTemperature
from softmax_temperature.params.cooling import Cooling
from softmax_temperature.params.focal import Focal
from softmax_temperature.params.network import Backbone, Network
from softmax_temperature.params.notebooks import Notebooks
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


class _References(NamedTuple):
    """Names under one `key` of a paper's section, and the names valid there."""

    paper: Paper
    key: str
    names: Iterable[str]
    valid: Collection[str]


class Params(Section):
    """All of `params.yaml`.

    The section of a paper that is not in `papers` has only one effect: data sets that
    only such sections name are not prepared (see `datasets_to_prepare`).
    """

    profile: Name
    papers: Annotated[list[Paper], Field(min_length=1)]
    seed: NonNegativeInt
    data: Data
    compute: Compute
    notebooks: Notebooks
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
        """List the (data set, backbone) pairs that `classifier_temperature` embeds."""
        paper = self.classifier_temperature
        return [
            (dataset, backbone)
            for dataset in paper.datasets
            for backbone in paper.backbones
        ]

    def datasets_to_prepare(self) -> dict[str, Dataset]:
        """Return the data sets, without those that only unused papers name.

        A data set that no paper names is prepared, because the user may be about to use
        it.
        """
        used: set[str] = set()
        used_elsewhere: set[str] = set()
        for paper, _, names, valid in self._references():
            if valid is self.datasets:
                users = used if paper in self.papers else used_elsewhere
                users.update(names)
        left_out = used_elsewhere - used
        return {
            name: dataset
            for name, dataset in self.datasets.items()
            if name not in left_out
        }

    @model_validator(mode="after")
    def _trains_something(self) -> Self:
        trained: dict[Paper, tuple[str, Collection[str]]] = {
            "focal": ("tasks", self.focal.tasks),
            "cooling": ("experiments", self.cooling.experiments),
            "temperature_check": ("sweeps", self.temperature_check.sweeps),
        }
        for paper, (key, names) in trained.items():
            if paper in self.papers and not names:
                raise ValueError(
                    f"{paper}.{key}: must not be empty, because `papers` names the "
                    "paper"
                )
        return self

    @model_validator(mode="after")
    def _arms_are_of_papers(self) -> Self:
        all_known("notebooks.arms", self.notebooks.arms, get_args(Paper), "paper")
        return self

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        for paper, key, names, valid in self._references():
            if paper in self.papers:
                all_known(f"{paper}.{key}", names, valid)
        return self

    def _references(self) -> Iterator[_References]:
        """Yield the names in papers' sections that must occur elsewhere in the file."""
        yield from self._classifier_references()
        yield from self._focal_references()
        yield from self._cooling_references()
        yield from self._temperature_references()

    def _classifier_references(self) -> Iterator[_References]:
        paper = self.classifier_temperature
        rescaling = paper.rescaling
        slug: Paper = "classifier_temperature"
        yield _References(slug, "datasets", paper.datasets, self.datasets)
        yield _References(slug, "backbones", paper.backbones, self.backbones)
        yield _References(
            slug, "rescaling.dataset", [rescaling.dataset], paper.datasets
        )
        yield _References(
            slug, "rescaling.backbone", [rescaling.backbone], paper.backbones
        )

    def _focal_references(self) -> Iterator[_References]:
        for name, task in self.focal.tasks.items():
            key = f"tasks.{name}"
            datasets = [task.dataset, *task.out_of_distribution, *task.shifted]
            yield _References("focal", key, datasets, self.datasets)
            yield _References("focal", key, [task.network], self.networks)

    def _cooling_references(self) -> Iterator[_References]:
        for name, experiment in self.cooling.experiments.items():
            key = f"experiments.{name}"
            yield _References("cooling", key, [experiment.dataset], self.datasets)
            yield _References("cooling", key, [experiment.network], self.networks)

    def _temperature_references(self) -> Iterator[_References]:
        paper = self.temperature_check
        slug: Paper = "temperature_check"
        for name, sweep in paper.sweeps.items():
            key = f"sweeps.{name}"
            yield _References(slug, key, [sweep.dataset], self.datasets)
            yield _References(slug, key, [sweep.network], self.networks)
        early = paper.early_learning
        if early is not None:
            key = "early_learning"
            yield _References(slug, f"{key}.dataset", [early.dataset], self.datasets)
            yield _References(slug, f"{key}.networks", early.networks, self.networks)


def read_yaml(path: Path, *, kind: Literal["rt", "safe"] = "safe") -> Any:
    """Read a YAML 1.2 file in UTF-8; tags never construct objects.

    Args:
        path: The file.
        kind: "rt" keeps the file's comments and order; "safe" does not, but is faster.

    Raises:
        InputError: If the file is missing, or is not YAML.
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
        remedy = "Correct that line."
        if "unexpected ':'" in str(error):
            remedy = 'Quote a value that has a colon, such as "my_losses:MyLoss".'
        raise InputError(
            f"is not valid YAML ({error})",
            where=str(path),
            remedy=remedy,
        ) from error


def read_params(path: Path) -> Params:
    """Read a parameter file.

    Raises:
        InputError: If it is missing, is not YAML, or has a value that `Params` refuses.
    """
    return validate(read_yaml(path), where=str(path))


def validate(content: Any, *, where: str) -> Params:
    """Validate `content`, parsed from `where`; raise InputError if it is invalid."""
    try:
        return Params.model_validate(content)
    except ValidationError as error:
        key, message = fault(error)
        raise InputError(
            message,
            where=f"{where}: {key}" if key else where,
            remedy="Correct it in params.yaml, or apply a profile again.",
        ) from error
