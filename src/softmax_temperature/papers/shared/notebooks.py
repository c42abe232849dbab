"""The outputs of a notebook about a study. Equal results give equal bytes.

`opened` returns the study: the runs of the arms to show, the claims, and the tables,
optionally with those of a second study. An empty output is None, so that the executed
notebook can leave out the section of this output.
"""

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from importlib import import_module
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
from IPython.display import HTML, Image, Markdown, display
from matplotlib.figure import Figure
from pandas.io.formats.style import Styler

from softmax_temperature.papers.shared.claims import (
    DIRECTIONS_ONLY,
    NOT_TESTED,
    at_level,
    percent,
)
from softmax_temperature.papers.shared.display import (
    column_label,
    metric_label,
    with_names,
)
from softmax_temperature.papers.shared.figures import WIDTH, described, encoded, save
from softmax_temperature.papers.shared.files import rounded
from softmax_temperature.papers.shared.layout import (
    MISSING,
    PAGE,
    narrowest,
    with_words,
)
from softmax_temperature.papers.shared.records import claims_of, read_study
from softmax_temperature.papers.shared.results import (
    CLAIMS,
    RESULTS,
    Evidence,
    evidence,
    in_study,
    paper_folder,
    read_json,
    study_in_words,
    study_label,
    texts_in_words,
)
from softmax_temperature.papers.shared.runs import Runs
from softmax_temperature.papers.shared.sources import CELLS, Linked, link
from softmax_temperature.papers.shared.statistics import LEVEL
from softmax_temperature.papers.shared.tables import (
    DATA_MISSING,
    METRIC,
    NOT_RUN,
    Table,
)
from softmax_temperature.papers.shared.views import View, of_arms
from softmax_temperature.runner.errors import InputError

SCREEN_WIDTH = 560  # Width in CSS pixels of a figure as wide as a page
_SCORECARD = '<a href="../../../docs/scorecard.md">docs/scorecard.md</a>'
"""A link to the scorecard from the folder of an executed notebook."""
THIS_STUDY_ALONE = (
    f"The project's verdict on a claim is that of its primary study; see {_SCORECARD}."
)
NOT_PRIMARY = (
    "Verdicts here are of this study alone: the scorecard counts a claim by its "
    "primary study, and as not tested until that study has run."
)
_COMMON = ("dataset", "network", "embeddings", "differs", "runs", "status")
"""The columns whose value is shown above a table if all its rows share the value."""
_KEYS = ("experiment", "sweep", "task")
"""The columns that contain names from the parameters."""
_SPELT = (
    "dataset",
    "network",
    "architecture",
    "variant",
    "role",
    "change",
    "factors",
    "start",
)
"""The columns whose words may distinguish rows as well as the names in `_KEYS` do."""
_TASK = ("task", "dataset", "network")
"""The columns that name the task of a row."""
_OF_TASK = ("embeddings", "differs")
"""The columns with remarks on a task. The remarks are shown above a table that has
several rows per task.
"""
_UNBROKEN = re.compile(r" (?=±|s\.e\.)|(?<=±) ")
"""Matches the spaces within a number, at which no line may break."""
_LONG = re.compile(r"(?<![\w.,/#-])\d{5,}(?![\w./-])")
"""Matches a whole number with five digits or more in a sentence."""
SIGNS = {"holds": "✓", "contradicted": "✗", "inconclusive": "≈", NOT_TESTED: "○"}


def found(results: str) -> Path:
    """Find the folder `results`, a path from the project's root.

    The working directory may be any folder of the project. If the folder does not
    exist, its path is returned unchanged.
    """
    return next(
        (
            root / results
            for root in (Path(), *Path.cwd().parents)
            if (root / results).is_dir()
        ),
        Path(results),
    )


@dataclass(frozen=True)
class Opened:
    """One paper in a study, as a notebook shows it.

    Attributes:
        paper: The paper's slug.
        view: The study, and the part of it to show.
        folder: The paper's folder of results.
        every_run: All runs of the study.
        hidden: Function that takes the runs and returns the tasks to hide from tables.
    """

    paper: str
    view: View
    folder: Path
    every_run: Runs
    hidden: Callable[[Runs], Collection[str]] = lambda _: ()

    @cached_property
    def runs(self) -> Runs:
        """The runs of the arms to show."""
        if not self.view.arms:
            return self.every_run
        arms = of_arms(self.view.arms)
        chosen = self.every_run.only(arms)
        factors = {name for arm in self.view.arms for name in arm}
        tables = {
            name: arms.select(table) if factors <= set(table) else table
            for name, table in chosen.tables.items()
        }
        return replace(chosen, tables=tables)

    @cached_property
    def claims(self) -> list[dict[str, Any]]:
        """The rows of `claims.json`, with intervals at the level to show."""
        rows: list[dict[str, Any]] = read_json(self.folder / CLAIMS)
        if self.view.level == LEVEL:
            return rows
        contrasts = {claim.id: claim.contrast for claim in claims_of(self.paper)}
        return [
            at_level(row, contrasts[row["id"]].measure(self.every_run), self.view.level)
            if row["id"] in contrasts
            else row
            for row in rows
        ]

    @cached_property
    def _tables(self) -> dict[str, Table]:
        module = import_module(f"softmax_temperature.papers.{self.paper}.tables")
        return {table.name: table for table in module.TABLES}

    @cached_property
    def written(self) -> Mapping[str, pd.DataFrame]:
        """The tables of the runs to show, keyed by name, as if read from files."""
        return {name: self._written(name) for name in self._tables}

    @cached_property
    def _hidden(self) -> Collection[str]:
        return self.hidden(self.every_run)

    def _written(self, name: str) -> pd.DataFrame:
        if not self.view.arms:
            return _without(self._hidden, _read(self.folder, name))
        # Write the table as text and read the text, so that its types are those of a
        # table from a file.
        made = self._tables[name].make(self.runs).map(rounded)
        made = _without(self._hidden, made)
        if made.empty:
            return made
        return pd.read_csv(StringIO(made.to_csv(index=False)))

    def table(self, name: str) -> pd.DataFrame:
        """A table for readers; the rows of the second study, if any, come last.

        A table that does not fit a page has its methods in rows if that layout is
        narrower.
        """
        table = self._tables[name]
        texts = self._laid_out(name, table.lay_out)
        width = _width(texts)
        if table.in_rows is None or width <= PAGE:
            return texts
        in_rows = self._laid_out(name, table.in_rows)
        return in_rows if _width(in_rows) < width else texts

    def _laid_out(
        self, name: str, lay_out: Callable[[pd.DataFrame], pd.DataFrame]
    ) -> pd.DataFrame:
        """The rows of the table `name`, laid out; a second study's rows come last."""
        first_rows = self._written(name)
        if len(first_rows):
            first_rows = lay_out(first_rows)
        if self.view.beside is None:
            return first_rows
        folder = self.folder.parent.parent / self.view.beside / self.paper
        hidden = self.hidden(read_study(folder, self.paper))
        second_rows = _without(hidden, _read(folder, name))
        if second_rows.empty:
            return first_rows
        # Drop the cells of the second study, because links lead only to the records of
        # the first study.
        second_rows = lay_out(second_rows).drop(columns=CELLS, errors="ignore")
        second_rows = second_rows.map(
            lambda value: str(value) if type(value) is Linked else value
        )
        parts = [
            part.assign(study=study)[["study", *part]]
            for study, part in (
                (self.view.study, first_rows),
                (self.view.beside, second_rows),
            )
            if len(part)
        ]
        return pd.concat(parts, ignore_index=True)

    @cached_property
    def _evidence(self) -> list[Evidence]:
        """The claims that this study tests, with the other studies' verdicts.

        The second study comes first among the others, even if it is a profile that does
        not count as evidence.
        """
        results = self.folder.parent.parent
        whole = in_study(self.claims, evidence(results)[self.paper])
        beside = self.view.beside
        rows: list[dict[str, Any]] = []
        if beside is not None:
            rows = read_json(results / beside / self.paper / CLAIMS) or []
        of_second = {row["id"]: row for row in rows}
        chosen = []
        for claim in whole:
            if claim.primary["verdict"] == NOT_TESTED:
                continue
            second = of_second.get(claim.primary["id"])
            others = [row for row in claim.others if row["profile"] != beside]
            if second is not None:
                others.insert(0, second)
            chosen.append(Evidence(claim.primary, tuple(others)))
        return chosen

    def about(self) -> Markdown:
        """A paragraph on what part of the study is shown and what its verdicts mean."""
        view = self.view
        lines = [_named(view.study) + "."]
        if view.study in DIRECTIONS_ONLY:
            lines.append(
                "Its data and networks are so small that it shows the direction of an "
                "effect, not its size."
            )
        if view.arms:
            lines.append(f"Only runs with {of_arms(view.arms).text} are shown.")
            lines.append("Claims are judged on all runs.")
        lines.append(f"Intervals of claims are at {percent(view.level)}")
        lines[-1] += ", or higher where their data were looked at more than once."
        if view.level != LEVEL:
            lines.append(f"Verdicts use {percent(LEVEL)}.")
        if any(map(_is_secondary, self._evidence)):
            lines.append(NOT_PRIMARY)
        if view.beside is not None:
            lines.append(f"Shown next to it: {_named(view.beside)}.")
        return Markdown(" ".join(lines))  # type: ignore[no-untyped-call]

    def verdicts(self) -> HTML | None:
        """The table of the claims that this study tests, with other studies' verdicts.

        None if the study tests no claim.
        """
        lines = []
        for claim in self._evidence:
            row = claim.primary
            texts = {name: escape(text) for name, text in texts_in_words(row).items()}
            verdict = f"{SIGNS[row['verdict']]} {texts['verdict']}"
            if claim.disputed_by:
                verdict += "<br>disputed"
            sides = [_side(side) for side in claim.sides if side is not row]
            if row["profile"] == row["primary"]:
                sides.insert(0, "this is the primary study")
            lines.append(
                {
                    "verdict": verdict,
                    "claim": texts["claim"],
                    "where": texts["where"],
                    "printed": texts["printed"],
                    "ours": texts["ours"],
                    "must lie": texts["must lie"],
                    "other studies": "<br>".join(sides) or MISSING,
                    "note": texts["note"],
                }
            )
        if not lines:
            return None
        count = len(self.claims) - len(lines)
        rest = ""
        if count:
            rest = (
                f"<p>{count} other claims of the paper need runs that this study does "
                f"not have; {_SCORECARD} names the studies.</p>"
            )
        head = (
            f"<p><strong>Verdicts of this study alone.</strong> {THIS_STUDY_ALONE}</p>"
        )
        named = dict.fromkeys(
            row["profile"] for claim in self._evidence for row in claim.sides
        )
        others = [study for study in named if study != self.view.study]
        studies = ""
        if others:
            items = "".join(f"<li>{escape(study_in_words(one))}</li>" for one in others)
            studies = f"<p>The other studies:</p><ul>{items}</ul>"
        table = _html(pd.DataFrame(lines), "claims")
        return HTML(head + table + studies + rest)  # type: ignore[no-untyped-call]

    def follows(self, *places: str) -> Markdown | None:
        """A list of the claims about `places` that this study tests, with verdicts.

        None if there are no such claims.

        Args:
            places: Texts that a claim's `where` may contain. "Table 1" does not match
                "Table 10".
        """
        here = [
            claim
            for claim in self._evidence
            if any(_is_place(place, claim.primary["where"]) for place in places)
        ]
        lines = []
        for claim in here:
            row = claim.primary
            texts = texts_in_words(row)
            verdict = f"{SIGNS[row['verdict']]} **{texts['verdict']}**"
            if claim.disputed_by:
                verdict += f", disputed by {', '.join(claim.disputed_by)}"
            number = f"Ours: {texts['ours']}; the claim holds {texts['must lie']}"
            if texts["printed"] != MISSING:
                number += f"; printed: {texts['printed']}"
            lines.append(f"- {verdict}: {texts['claim']} {number}.")
        if not lines:
            return None
        head = "What follows"
        if any(map(_is_secondary, here)):
            head += ", in this study alone"
        text = "\n".join([f"**{head}**", "", *lines])
        return Markdown(text)  # type: ignore[no-untyped-call]


def opened(
    paper: str,
    study: str,
    *,
    level: float = LEVEL,
    arms: Sequence[Mapping[str, Any]] = (),
    beside: str | None = None,
    hidden: Callable[[Runs], Collection[str]] = lambda _: (),
) -> Opened:
    """Open one paper of a study, from any folder of the project.

    Args:
        paper: The paper's slug.
        study: The name of the study, and of its folder in `results/`.
        level: The level of the intervals, as in `views.View`.
        arms: The factors of the runs to show; all runs if empty.
        beside: A second study to show, if any.
        hidden: Function that takes the runs and returns the tasks to hide from tables.

    Raises:
        InputError: If the study has no results of the paper.
    """
    folder = found(paper_folder(study, paper).as_posix())
    if not (folder / CLAIMS).is_file():
        raise InputError(
            f"study {study!r} has no results of {paper}",
            where=str(RESULTS),
            remedy="Run `dvc repro`, or name another study.",
        )
    view = View(study, level, arms, beside)
    return Opened(paper, view, folder, read_study(folder, paper), hidden)


def _without(tasks: Collection[str], table: pd.DataFrame) -> pd.DataFrame:
    """The `table` without the rows of `tasks`."""
    if not tasks or "task" not in table:
        return table
    return table[~table["task"].isin(tasks)]


def _read(folder: Path, name: str) -> pd.DataFrame:
    """Read a table of a paper; it is empty if an older study does not have it."""
    path = folder / "tables" / f"{name}.csv"
    try:
        return pd.read_csv(path)
    except (FileNotFoundError, pd.errors.EmptyDataError):
        return pd.DataFrame()


def _is_secondary(claim: Evidence) -> bool:
    """Whether another study is the claim's primary study."""
    return bool(claim.primary["profile"] != claim.primary["primary"])


def _named(study: str) -> str:
    """The name of a study, printed in bold, with its description."""
    return f"Study **{study}**{study_in_words(study).removeprefix(study)}"


def _side(row: Mapping[str, Any]) -> str:
    texts = texts_in_words(dict(row))
    study = study_label(row["profile"])
    if row["profile"] == row["primary"]:
        study += ", primary"
    return escape(
        f"{SIGNS[row['verdict']]} {row['verdict']} in {study}: {texts['ours']}"
    )


def _is_place(place: str, where: str) -> bool:
    return re.search(rf"{re.escape(place)}(?!\.?\d)", where) is not None


def show(outputs: Iterable[Any]) -> None:
    """Display several outputs, skipping any that are None."""
    for output in outputs:
        if output is not None:
            display(output)  # type: ignore[no-untyped-call]


def said(sentences: Mapping[str, bool]) -> Markdown | None:
    """Join the sentences whose condition is true; None if no condition is true."""
    text = " ".join(text for text, is_true in sentences.items() if is_true)
    return Markdown(text) if text else None  # type: ignore[no-untyped-call]


def explained(table: pd.DataFrame, texts: Mapping[str, str]) -> Markdown | None:
    """The texts that explain the columns of a table, as one paragraph.

    A column without any value counts as not shown. The result is None if no column that
    is shown has a text.

    Args:
        table: The table for readers.
        texts: The text that explains each column, keyed by column name.
    """

    def is_shown(column: str) -> bool:
        return (
            column in table and not table[column].fillna("").isin(["", MISSING]).all()
        )

    return said({text: is_shown(column) for column, text in texts.items()})


def shown(
    table: pd.DataFrame,
    name: str,
    *,
    percent: Sequence[str] = (),
    digits: int = 3,
    significant: int | None = None,
    numbers: Sequence[str] | None = None,
) -> HTML | None:
    """A table for a reader, as HTML; None if there is no row to show.

    Missing values are shown as a dash, text is escaped, and names from the parameters
    are replaced with words. Rows with a printed number but no number of ours are left
    out, unless our number is missing because data are missing; the table's file has all
    rows. The column `cells` is not shown: numbers link to the records of the cells that
    it names. If all rows share the value of a column in `_COMMON`, such as the data
    set, this value is shown above the table.

    Args:
        table: The table, such as one from `Opened.table`.
        name: The table's identifier in the HTML, unique in the notebook. pandas would
            choose a random one.
        percent: The columns of fractions to show as percentages.
        digits: The number of decimal places. Whole numbers have none, percentages have
            one, and small numbers have enough to show one significant digit.
        significant: The number of significant digits, in place of `digits`.
        numbers: The columns to link; None for all numeric columns.
    """
    table = _present(table)
    if table.empty:
        return None
    words = with_words(with_names(table.drop(columns=CELLS, errors="ignore")))
    if METRIC in words:
        words[METRIC] = words[METRIC].map(metric_label, na_action="ignore")
    numeric = [
        column
        for column in words
        if column in percent or words[column].dtype.kind in "iuf"
    ]
    linked = numeric if numbers is None else numbers
    unlinked = [None] * len(table)
    sources = table.get(CELLS, unlinked)
    for column in words:
        cells = sources if column in linked else unlinked
        places = digits if column in numeric else None
        values = zip(words[column], cells, strict=True)
        words[column] = [
            _text(value, cell, places, column in percent, significant)
            for value, cell in values
        ]
    caption, words = _without_common(_without_keys(words))
    words = words.rename(
        columns=lambda column: column_label(column) + " (%)" * (column in percent)
    )
    return HTML(caption + _html(words, name))  # type: ignore[no-untyped-call]


def drawn(figure: Figure | None, results: Path, name: str) -> Image | None:
    """Write a figure as SVG into a paper's folder `figures`, and return it as a png.

    If `figure` is None, nothing is written and None is returned. The picture's
    alternative text is made from the texts in the figure.
    """
    if figure is None:
        return None
    save(figure, results / "figures", name, ["svg"])
    width = round(SCREEN_WIDTH * figure.get_figwidth() / WIDTH)
    picture = encoded(figure, "png")
    alt = described(figure)
    return Image(picture, format="png", width=width, alt=alt)  # type: ignore[no-untyped-call]


def _without_common(texts: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """Split a table into the values that rows share, as HTML, and the rest.

    A column in `_COMMON` that is the same in all rows is moved to a paragraph. A column
    in `_OF_TASK` is moved to a list if it is the same in all rows of each task.
    """
    if len(texts) < 2:
        return "", texts
    shared = {
        column: str(texts[column].iloc[0])
        for column in _COMMON
        if column in texts and len(set(texts[column])) == 1
    }
    phrases = [
        f"{column_label(column)} {text}"
        for column, text in shared.items()
        if text != MISSING
    ]
    caption = f"<p>All rows: {'; '.join(phrases)}.</p>" if phrases else ""
    remarks, rest = _without_remarks(texts.drop(columns=[*shared]))
    return caption + remarks, rest


def _without_remarks(texts: pd.DataFrame) -> tuple[str, pd.DataFrame]:
    """Split a table into a list of the remarks on each task, as HTML, and the rest.

    Remarks stay in the table if there is only one task, if each task has one row only,
    or if the rows of a task have different remarks.
    """
    names = [name for name in _TASK if name in texts]
    columns = [name for name in _OF_TASK if name in texts]
    tasks = texts[[*names, *columns]].drop_duplicates()
    has_rows = texts[names].duplicated().any()
    is_same = not tasks[names].duplicated().any()
    if not (columns and has_rows and is_same and len(tasks) > 1):
        return "", texts
    lines = []
    for task in tasks.to_dict("records"):
        remarks = [
            f"{column_label(column)}: {task[column]}"
            for column in columns
            if task[column] not in {"", MISSING}
        ]
        if remarks:
            name = ", ".join(task[name] for name in names)
            lines.append(f"<li>{name}; {'; '.join(remarks)}.</li>")
    listed = f"<ul>{''.join(lines)}</ul>" if lines else ""
    return listed, texts.drop(columns=columns)


def _without_keys(texts: pd.DataFrame) -> pd.DataFrame:
    """A table without names from the parameters that its other columns make redundant.

    Such a name stays if rows with different names have equal texts in all columns of
    `_SPELT`.
    """
    spelt = [name for name in _SPELT if name in texts]
    if not spelt:
        return texts
    redundant = [
        key
        for key in _KEYS
        if key in texts and texts.groupby(spelt)[key].nunique().max() == 1
    ]
    return texts.drop(columns=redundant)


def _present(table: pd.DataFrame) -> pd.DataFrame:
    """The rows with our values, and the rows without them because data are missing."""
    if "status" not in table:
        return table
    status = table["status"].astype(str)
    is_absent = status.str.startswith(NOT_RUN) & (status != DATA_MISSING)
    return table[~is_absent]


def _width(texts: pd.DataFrame) -> int:
    """The width in characters of a table of texts, as `shown` shows it."""
    texts = _without_keys(_present(texts))
    return narrowest(_without_empty(_without_common(texts)[1]))


def _without_empty(texts: pd.DataFrame) -> pd.DataFrame:
    """A table without its empty columns."""
    return texts.loc[:, ~texts.isin(["", MISSING]).all()]


def _html(texts: pd.DataFrame, name: str) -> str:
    """Convert a table to HTML, without its empty columns."""
    styler = Styler(_without_empty(texts), cell_ids=False)
    styler = styler.format_index(escape="html", axis=1).hide(axis="index")
    styler = styler.set_uuid(name).set_table_styles(
        [{"selector": "th, td", "props": "text-align: left"}]
    )
    return styler.to_html()


def _text(
    value: Any,
    cells: Any,
    digits: int | None,
    is_percent: bool,
    significant: int | None = None,
) -> str:
    """Convert a value to HTML, linked to the records of `cells` if there are any.

    `digits` is None if the value is not a number.
    """
    if pd.isna(value):
        return MISSING
    if digits is None:
        text = _UNBROKEN.sub("\N{NO-BREAK SPACE}", escape(str(value)))
        text = _LONG.sub(lambda match: f"{int(match[0]):,}", text)
    elif is_percent:
        text = f"{100 * value:.1f}"
    else:
        text = _rounded(value, digits, significant)
    if isinstance(value, Linked):
        cells = value.cells
    if isinstance(cells, str) and cells and text != MISSING:
        return link(text, cells)
    return text


def _rounded(value: float, digits: int, significant: int | None = None) -> str:
    """Format a number; a whole number gets no decimal point, and only 0 becomes "0".

    If `significant` is given, it replaces `digits`.
    """
    if float(value).is_integer():
        return f"{value:,.0f}"
    if significant is not None:
        # Round first: 0.9999 has as many decimal places as 1.
        size = math.floor(math.log10(abs(float(f"{value:.{significant}g}"))))
        digits = max(0, significant - 1 - size)
    text = f"{value:,.{digits}f}"
    return text if float(text.replace(",", "")) else f"{value:.1g}"
