"""From the report's values to HTML."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from pandas.io.formats.style import Styler

from softmax_temperature.papers.html.comparison import METRIC
from softmax_temperature.papers.html.drawing import data_address
from softmax_temperature.papers.html.links import SHORT
from softmax_temperature.papers.html.links import anchor as anchor_of_numbers
from softmax_temperature.papers.html.numbers import as_printed, number, with_deviation
from softmax_temperature.papers.html.scores import anchor
from softmax_temperature.papers.shared.claims import DIRECTIONS_ONLY
from softmax_temperature.runner.artifacts import canonical_json

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

PACKAGE = "softmax_temperature.papers.html"
ASSETS = {"style": "style.css", "script": "script.js"}


def render(template: str, **values: Any) -> str:
    """A template with its values; every text is escaped unless the template says that it is HTML."""
    return _environment().get_template(template).render(**values)


class Grid(Styler):
    """A table whose head is one row: pandas makes two, the upper for columns and the lower for what names the rows."""

    env = Environment(loader=ChoiceLoader([PackageLoader(PACKAGE), Styler.loader]), autoescape=False)  # noqa: S701
    template_html_table = env.get_template("grid.html.j2")


def grid(table: pd.DataFrame, name: str, link: Callable[[str], str], *, count: bool) -> str:
    """A table of numbers as HTML.

    Args:
        table: a `comparison.Number` or None in each cell.
        name: unique on the page.
        link: the address of the records of a number's cells.
        count: whether each cell says how many runs are behind it.
    """
    cell = _environment().get_template("number.html.j2")
    texts = table.map(lambda value: cell.render(number=value, link=link(value.cells) if value else "", count=count))
    styler = Grid(texts, uuid=name, cell_ids=False).format_index(escape="html", axis=1)
    for level in table.index.names:
        styler.format_index(_words if level == METRIC else None, escape="html", axis=0, level=level)
    return styler.to_html(table_attributes='class="grid"')


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader(PACKAGE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"number": number, "with_deviation": with_deviation, "as_printed": as_printed}
    environment.filters |= {"data_address": data_address, "json": canonical_json, "short": _short, "words": _words}
    environment.filters |= {"anchor": anchor, "anchor_of_numbers": anchor_of_numbers}
    environment.tests |= {"directions_only": DIRECTIONS_ONLY.__contains__}
    folder = files(PACKAGE) / "templates"
    environment.globals |= {name: (folder / file).read_text("utf-8") for name, file in ASSETS.items()}
    return environment


def _short(digest: str | None) -> str:
    return (digest or "")[:SHORT]


def _words(name: object) -> str:
    return str(name).replace("_", " ")
