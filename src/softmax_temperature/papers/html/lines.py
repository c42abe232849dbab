"""Texts that a line break must not split.

The report and the documentation site both use this module. Their styles keep an element
of the class `whole` on one line.
"""

import re

_NUMBER = r"-?[\d.,]*\d"
# Matches numbers with a unit or sign, such as "4.2 %", "± 0.3" and "n = 4".
_UNITS = rf"{_NUMBER}\s%|±\s{_NUMBER}|\b[npr]\s(?:=|&lt;)\s{_NUMBER}"
# Matches the names of losses and data sets that end in a number, such as "FLSD-53".
_NAMES = r"\b(?:LS|FL|FLSD|FLSc|CIFAR)-[\d.]*\d"
_INTERVAL = rf"\[{_NUMBER},\s{_NUMBER}\]"
_WHOLE = re.compile(f"{_INTERVAL}|{_UNITS}|{_NAMES}")
# In the narrow columns of a table, intervals may break.
_IN_TABLE = re.compile(f"{_UNITS}|{_NAMES}")
# In a table, an identifier may break after these marks.
_MARK = re.compile(r"(?<=\w)[_./](?=\w)")
_CODE = re.compile(r"(?<=<code>)[^<]+(?=</code>)")
# Matches elements whose text stays unchanged, whole tables, and other tags and
# comments.
_APART = re.compile(
    r"(<(pre|code|math|script|style|svg|title|h1)\b.*?</\2>"
    r"|<table\b.*?</table>|<!--.*?-->|<[^>]*>)",
    re.DOTALL,
)
_TABLE = re.compile(r"(<table\b[^>]*>)(.+)", re.DOTALL)


def unbroken(html: str) -> str:
    """Keep values with their units, intervals and names with numbers on one line.

    Code and formulas are unchanged, except that identifiers in tables may break after
    their marks.
    """
    return _marked(html, _WHOLE)


def _marked(html: str, whole: re.Pattern[str]) -> str:
    # The pattern has two groups, so the parts are, in turn: a text, a tag or an
    # element, and the element's name.
    parts = [*_APART.split(html), "", ""]
    marked = []
    for place in range(0, len(parts), 3):
        text, apart, _ = parts[place : place + 3]
        marked.append(whole.sub(r'<span class="whole">\g<0></span>', text))
        table = _TABLE.fullmatch(apart)
        if table:
            cells = _CODE.sub(_breakable, table[2])
            apart = table[1] + _marked(cells, _IN_TABLE)
        marked.append(apart)
    return "".join(marked)


def _breakable(code: re.Match[str]) -> str:
    return _MARK.sub(r"\g<0><wbr>", code[0])
