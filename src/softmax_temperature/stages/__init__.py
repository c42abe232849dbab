"""The registry of all stages, and the class for stages that consist of cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from softmax_temperature.runner.artifacts import Artifact, open_artifact

if TYPE_CHECKING:
    from softmax_temperature.params import Params
    from softmax_temperature.runner.cells import Cell
    from softmax_temperature.runner.section import Section

Part = TypeVar("Part", bound="Section")

# Output folders. They are declared here so that other stages and the papers can import
# them without importing the stages' code.
PREPARED = Path("data/prepared")
BACKBONES = Path("data/backbones")
EMBEDDINGS = Path("data/embeddings")
STATISTICS = Path("data/classifier_temperature/statistics")
SEARCH = Path("data/classifier_temperature/search")
RESCALING = Path("data/classifier_temperature/rescaling")
HEURISTIC = Path("data/classifier_temperature/heuristic")
FOCAL_TRAINING = Path("data/focal/training")
FOCAL_EVALUATION = Path("data/focal/evaluation")
LINEAR = Path("data/focal/linear")
TRANSLATION = Path("data/focal/translation")
COOLING_TRAINING = Path("data/cooling/training")
SEGMENTATION = Path("data/cooling/segmentation")
SWEEPS = Path("data/temperature_check/training")
CONFIRMATION = Path("data/temperature_check/confirmation")
EARLY_LEARNING = Path("data/temperature_check/early_learning")


class Registration(NamedTuple):
    """An entry of `REGISTRY`: the program, module, paper and output of a stage.

    Attributes:
        name: The name of the stage, and of the function that declares its cells.
        program: The program in `pipeline/` that runs the stage.
        module: The module of this package with that function.
        paper: The paper that the stage belongs to; None for all papers.
        output: The folder in which the stage's results are published.
    """

    name: str
    program: str
    module: str
    paper: str | None
    output: Path


REGISTRY = (
    Registration(
        name="fetch",
        program="fetch",
        module="fetch",
        paper=None,
        output=PREPARED,
    ),
    Registration(
        name="pretrain",
        program="embed",
        module="pretraining",
        paper="classifier_temperature",
        output=BACKBONES,
    ),
    Registration(
        name="embed",
        program="embed",
        module="embeddings",
        paper="classifier_temperature",
        output=EMBEDDINGS,
    ),
    Registration(
        name="describe",
        program="search",
        module="classifier_temperature",
        paper="classifier_temperature",
        output=STATISTICS,
    ),
    Registration(
        name="search",
        program="search",
        module="classifier_temperature",
        paper="classifier_temperature",
        output=SEARCH,
    ),
    Registration(
        name="rescaling",
        program="search",
        module="classifier_temperature",
        paper="classifier_temperature",
        output=RESCALING,
    ),
    Registration(
        name="heuristic",
        program="search",
        module="heuristic",
        paper="classifier_temperature",
        output=HEURISTIC,
    ),
    Registration(
        name="train_focal",
        program="train_focal",
        module="focal",
        paper="focal",
        output=FOCAL_TRAINING,
    ),
    Registration(
        name="evaluate_focal",
        program="train_focal",
        module="focal_evaluation",
        paper="focal",
        output=FOCAL_EVALUATION,
    ),
    Registration(
        name="focal_linear",
        program="train_focal",
        module="focal_appendices",
        paper="focal",
        output=LINEAR,
    ),
    Registration(
        name="train_translation",
        program="train_focal",
        module="focal_appendices",
        paper="focal",
        output=TRANSLATION,
    ),
    Registration(
        name="train_cooling",
        program="train_cooling",
        module="cooling",
        paper="cooling",
        output=COOLING_TRAINING,
    ),
    Registration(
        name="train_segmentation",
        program="train_cooling",
        module="cooling",
        paper="cooling",
        output=SEGMENTATION,
    ),
    Registration(
        name="train_temperature_check",
        program="train_temperature_check",
        module="temperature_check",
        paper="temperature_check",
        output=SWEEPS,
    ),
    Registration(
        name="confirm_temperature_check",
        program="train_temperature_check",
        module="temperature_check",
        paper="temperature_check",
        output=CONFIRMATION,
    ),
    Registration(
        name="early_learning",
        program="train_temperature_check",
        module="early_learning",
        paper="temperature_check",
        output=EARLY_LEARNING,
    ),
)
"""All stages that consist of cells. A program runs its stages in this order."""


@dataclass(frozen=True)
class Stage:
    """A stage that consists of the cells that `declare` yields.

    Its results are published in the folder `output`. The stage belongs to `paper`, or
    to all papers if `paper` is None.
    """

    name: str
    paper: str | None
    output: Path
    declare: Callable[[Params], Iterable[Cell]]

    @property
    def module(self) -> str:
        """The module that declares the cells and has the functions that they run."""
        return self.declare.__module__

    def result(self, *names: object) -> Artifact:
        """Open the published result of a cell, given its name or the parts of its name.

        Raises ArtifactError if there is none.
        """
        folder = self.output.joinpath(*map(str, names))
        return open_artifact(folder, kind=label(self.output))

    def results(self, params: Params) -> dict[str, Artifact]:
        """Open the published results of the cells that `params` declare, by name."""
        return {cell.name: self.result(cell.name) for cell in self.cells(params)}

    def cells(self, params: Params) -> list[Cell]:
        """The cells that `params` declare.

        There are none if the stage's paper is not in `params.papers`.
        """
        if self.paper is None or self.paper in params.papers:
            return list(self.declare(params))
        return []


def stage(declare: Callable[[Params], Iterable[Cell]]) -> Stage:
    """Turn `declare` into the registered stage of the same name (a decorator)."""
    [entry] = [entry for entry in REGISTRY if entry.name == declare.__name__]
    return Stage(entry.name, entry.paper, entry.output, declare)


def stages_of(program: str) -> list[Stage]:
    """Load the stages that `program` runs; none if its work does not consist of cells.

    Their modules are imported in this function, because they need different libraries,
    and a program should need only the libraries of its own stages.
    """
    loaded = []
    for entry in REGISTRY:
        if entry.program == program:
            module = import_module(f"{__name__}.{entry.module}")
            loaded.append(getattr(module, entry.name))
    return loaded


def label(output: Path) -> str:
    """Return the name that manifests, tables and links use for a stage's `output`."""
    return output.relative_to("data").as_posix()


def part_of(section: Section, part: type[Part]) -> Part:
    """Reduce `section` to the fields of its base class `part`.

    A cell that gets only the result does not depend on the other fields.
    """
    values = {name: getattr(section, name) for name in part.model_fields}
    return part.model_construct(**values)
