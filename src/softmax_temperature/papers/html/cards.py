"""Tables that a phone shows as cards, one card per row.

The report and the documentation site both use this module and `templates/cards.css`.
"""

import re
from collections.abc import Sequence
from html import escape, unescape

TABLE = re.compile(r"<table\b.*?</table>", re.DOTALL)
# The number of characters that fit side by side on a phone; the space between two
# columns counts as three.
PHONE = 48
# A cell with more characters than this is running text, which needs a wide column.
LONG = 80
# In a table, a cell with more characters than this would make its row tall if its
# column were narrow.
BROAD = 40
# The largest number of columns in a card's title.
NAMES = 4
# A card leaves out cells that contain one of these and nothing else.
EMPTY = ("", "–")
# A table is taken apart at its tags, so an attribute must not seem to contain a tag.
_TAG_IN_ATTRIBUTE = re.compile(r"=([\"'])(?:(?!\1).)*[<>]", re.DOTALL)


def with_cards(html: str) -> str:
    """Label the cells of wide tables, so that a phone shows each row as a card.

    Each cell of a table that is too wide for a phone is labelled with the name of its
    column. A card's title consists of the first columns that together distinguish the
    rows. Other tables are returned unchanged.
    """
    return TABLE.sub(lambda table: _stacked(table[0]), html)


def plain(cell: str) -> str:
    """Return the text of HTML, without tags."""
    return unescape(re.sub(r"<.*?>", "", cell)).strip()


def _stacked(table: str) -> str:
    """Return the table with its cells labelled, or unchanged if it fits a phone."""
    heads, cells = _cells(table)
    names = [plain(name) for name in heads]
    head = re.search(r"<thead>.*?</thead>", table, re.DOTALL)
    is_regular = all(len(row) == len(names) for row in cells)
    if head is None or not is_regular or _TAG_IN_ATTRIBUTE.search(table):
        return table
    texts = [[plain(cell) for cell in row] for row in cells]
    if not _is_wide(names, texts):
        return table
    filled = _filled(texts)
    in_title = _in_title(filled)
    rows = []
    for row, shown, carried in zip(cells, texts, filled, strict=True):
        marks = _title_marks(names[:in_title], shown[:in_title], carried[:in_title])
        below = zip(names[in_title:], shown[in_title:], strict=True)
        marks += [_mark(name, text) for name, text in below]
        marked = [_marked(cell, mark) for cell, mark in zip(row, marks, strict=True)]
        rows.append(f"<tr>{''.join(marked)}</tr>")
    start = table.partition(">")[0]
    body = f"<tbody>{''.join(rows)}</tbody>"
    return f'{start} data-stacked="">{head[0]}{body}</table>'


def _cells(table: str) -> tuple[list[str], list[list[str]]]:
    """Return a table's header cells and the cells of its rows, tags included."""
    names = re.findall(r"<th\b.*?</th>", table, re.DOTALL)
    rows = re.findall(r"<tr>(?:(?!</?tr>).)*?<td\b.*?</tr>", table, re.DOTALL)
    return names, [re.findall(r"<td\b.*?</td>", row, re.DOTALL) for row in rows]


def _is_wide(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the columns' longest words do not fit on a phone, or a cell is long."""
    if len(names) < 3:
        return False
    columns = zip(names, *rows, strict=True)
    # Do not split at the no-break spaces within numbers.
    width = sum(3 + max(map(len, " ".join(cells).split(" "))) for cells in columns)
    longest = max((len(cell) for row in rows for cell in row), default=0)
    return width > PHONE or longest > LONG


def _filled(rows: Sequence[Sequence[str]]) -> list[list[str]]:
    """Fill the blank cells at the start of each row with the text above them."""
    filled: list[list[str]] = []
    for row in rows:
        blank = next((place for place, text in enumerate(row) if text), len(row))
        above = filled[-1] if filled else row
        filled.append([*above[:blank], *row[blank:]])
    return filled


def _in_title(rows: Sequence[Sequence[str]]) -> int:
    """The number of columns in a card's title.

    The title consists of the table's first columns, as many as are needed to
    distinguish the rows. If these are more than `NAMES` columns, or if a title is long,
    the number is 1.
    """
    for count in range(1, NAMES + 1):
        titles = [", ".join(row[:count]) for row in rows]
        if max(map(len, titles), default=0) > LONG:
            return 1
        if len(set(titles)) == len(titles):
            return count
    return 1


def _title_marks(
    names: Sequence[str], texts: Sequence[str], filled: Sequence[str]
) -> list[str]:
    """The attributes of the cells in a card's title.

    A blank cell is labelled with the text above it. A cell is left out of the title if
    it is empty, or if the next cell begins with the same words. Numbers are never left
    out, because equal numbers in two columns mean different things.
    """
    marks = []
    following = [*filled[1:], ""]
    for name, text, full, after in zip(names, texts, filled, following, strict=True):
        mark = f'data-title="{escape(name)}"'
        is_said = f"{after} ".startswith(f"{full} ") and re.search(r"[^\W\d]", full)
        if full in EMPTY or is_said:
            mark += ' data-left-out=""'
        elif not text:
            mark += f' data-above="{escape(full)}"'
        marks.append(mark)
    return marks


def _mark(name: str, text: str) -> str:
    """The attributes of a cell below a card's title; an empty cell is left out."""
    mark = f'data-column="{escape(name)}"'
    if text in EMPTY:
        mark += ' data-left-out=""'
    if len(text) > BROAD:
        mark += ' data-broad=""'
    return mark


def _marked(cell: str, mark: str) -> str:
    """Add attributes to a cell, and put its content into one element."""
    start, _, content = cell.removesuffix("</td>").partition(">")
    return f"{start} {mark}><span>{content}</span></td>"
