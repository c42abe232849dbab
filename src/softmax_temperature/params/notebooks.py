"""The section `notebooks`, which affects only the contents of executed notebooks."""

from typing import Annotated

from pydantic import Field

from softmax_temperature.params.shared import Fraction, Name
from softmax_temperature.runner.section import Section

Value = bool | int | float | str | None
"""A factor's value; None selects the runs that lack the factor."""
Arm = Annotated[dict[Name, Value | list[Value]], Field(min_length=1)]
"""Values, keyed by factor; a list selects the runs that have one of its values."""


class Notebooks(Section):
    """Settings for what the executed notebooks show.

    `study` names the folder below `results/`. `level` is the level of the intervals
    that are shown for claims whose data were examined once; verdicts keep their own
    level. A notebook shows the runs that have the factors of at least one of the
    paper's `arms`, or all runs of the paper if `arms` does not name it. `beside` is a
    second study whose claims and tables are also shown; null shows none.
    """

    study: Name
    level: Fraction
    arms: dict[Name, Annotated[list[Arm], Field(min_length=1)]]
    beside: Name | None
