"""What stands in each table: its rows, its numbers and where the records hold them."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from softmax_temperature.papers.cooling.selection import ABLATION, MODES, NO_COOLING, OURS, SIMPLEST, TABLE_1, TABLE_2


@dataclass(frozen=True)
class Metric:
    """A number of a table.

    Attributes:
        name: of ours.
        printed: as `data/published/cooling.csv` calls it.
        column: of the records.
    """

    name: str
    printed: str
    column: str


@dataclass(frozen=True)
class Printed:
    """A table that the paper prints.

    Attributes:
        title: the column `table` of the printed numbers.
        keys: what names a row beside data set and network.
        metrics: its numbers, in their order in a cell.
        modes: its columns, in their order.
        roles: of the experiments that it is made from, in the order of preference; none for segmentation.
        schedule: the only one that it has; None for all.
    """

    title: str
    keys: tuple[str, ...]
    metrics: tuple[Metric, ...]
    modes: tuple[str, ...] = tuple(MODES)
    roles: tuple[str, ...] = ()
    schedule: str | None = None


@dataclass(frozen=True)
class Comparison:
    """A table of ours: trainings with and without Cooling.

    Attributes:
        role: of the experiments, which stand beside those of the main recipe on the same settings.
    """

    role: str


@dataclass(frozen=True)
class Quantities:
    """The numbers in the running text.

    Attributes:
        title: the column `table` of the printed numbers.
    """

    title: str


Spec = Printed | Comparison | Quantities
ACCURACY = Metric("test_accuracy", "test_accuracy", "test_accuracy")
_DENSE = (Metric("mean_iou", "mIoU %", "mean_iou"), Metric("pixel_accuracy", "pixel accuracy %", "pixel_accuracy"))

SPECS: MappingProxyType[str, Spec] = MappingProxyType(
    {
        "table_1": Printed("Table 1", ("schedule",), (ACCURACY,), roles=(TABLE_1,)),
        "table_2": Printed("Table 2", ("activation",), (ACCURACY,), roles=(TABLE_2, TABLE_1), schedule="none"),
        "section_4_4": Printed("Sec. 4.4 text", (), _DENSE, modes=(NO_COOLING, SIMPLEST)),
        "text": Quantities("text"),
        "ablation": Comparison(ABLATION),
        "ours": Comparison(OURS),
    }
)
"""Every table, by the name of its file."""
