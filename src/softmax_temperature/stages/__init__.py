"""Stages: which cells each of them has, and what a cell does."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from softmax_temperature.runner.artifacts import Artifact, open_artifact

if TYPE_CHECKING:
    from softmax_temperature.params import Params
    from softmax_temperature.runner.cells import (
        Cell,
    )  # Imports torch, which `--help` must not wait for.
    from softmax_temperature.runner.section import Section

Part = TypeVar("Part", bound="Section")
PREPARED, BACKBONES, EMBEDDINGS = (
    Path("data") / name for name in ("prepared", "backbones", "embeddings")
)
STATISTICS, SEARCH = (
    Path("data/classifier_temperature") / name for name in ("statistics", "search")
)
RESCALING, HEURISTIC = (
    Path("data/classifier_temperature") / name for name in ("rescaling", "heuristic")
)
FOCAL_TRAINING, FOCAL_EVALUATION = (
    Path("data/focal") / name for name in ("training", "evaluation")
)
LINEAR, TRANSLATION = (Path("data/focal") / name for name in ("linear", "translation"))
COOLING_TRAINING, SEGMENTATION = (
    Path("data/cooling") / name for name in ("training", "segmentation")
)
SWEEPS, CONFIRMATION, EARLY_LEARNING = (
    Path("data/temperature_check") / name
    for name in ("training", "confirmation", "early_learning")
)
"""Output folders, for other stages and papers: they import the names, not the stages'
code.
"""
LOGITS, LAST_LOGITS = "logits.safetensors", "last-logits.safetensors"
"""Files with the logits that are evaluated; and with those of the last epoch, where
another one was selected.
"""


@dataclass(frozen=True)
class Stage:
    """A stage that consists of cells: `declare` yields them, `output` is where they are
    published.

    `paper` is the one that it belongs to; None: it serves all.
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
        """What the cell of this name, or of these parts of it, has published; an
        ArtifactError if nothing.
        """
        return open_artifact(
            self.output.joinpath(*map(str, names)), kind=label(self.output)
        )

    def results(self, params: Params) -> dict[str, Artifact]:
        """What all declared cells have published, by their names."""
        return {cell.name: self.result(cell.name) for cell in self.cells(params)}

    def cells(self, params: Params) -> list[Cell]:
        """The cells that the parameters declare: none if the stage's paper is not among
        `papers`.
        """
        return (
            list(self.declare(params))
            if self.paper is None or self.paper in params.papers
            else []
        )


def stage(
    paper: str | None, output: Path
) -> Callable[[Callable[[Params], Iterable[Cell]]], Stage]:
    """A decorator that makes a stage of the function that yields its cells, and names
    it after the function.
    """
    return lambda declare: Stage(declare.__name__, paper, output, declare)


def label(output: Path) -> str:
    """What manifests, tables and links call the stage of an output folder."""
    return output.relative_to("data").as_posix()


def part_of(section: Section, part: type[Part]) -> Part:
    """What one of its base classes declares of a section: the rest is no part of the
    cells that are given it.
    """
    return part.model_construct(
        **{name: getattr(section, name) for name in part.model_fields}
    )
