"""Every `# Deviation:` comment in the code that a paper's results come from, for its notebook and the report."""

from __future__ import annotations

import re
from collections.abc import Iterable

import pandas as pd

from softmax_temperature.runner.fingerprint import import_closure, source_path

NOT_SEARCHED = frozenset({"runner"})
_START = re.compile(r"^\s*#+\s*Deviation:\s*(?P<text>.*)$")
_MORE = re.compile(r"^\s*#\s?(?P<text>.*)$")


def deviations(modules: Iterable[str]) -> pd.DataFrame:
    """Where the code differs from a paper or decides what it leaves open, and why.

    Args:
        modules: dotted names; the modules that they import are searched too.

    Returns:
        Columns where (module) and what, in the order of the code.
    """
    names = sorted({name for module in modules for name in import_closure(module, excluded=NOT_SEARCHED)})
    rows = [(name.split(".", 1)[-1], text) for name in names for text in comments(source_path(name).read_text("utf-8"))]
    return pd.DataFrame(rows, columns=["where", "what"])


def comments(source: str) -> list[str]:
    """The texts of the comments in a file, each joined over its following comment lines."""
    found: list[str] = []
    inside = False
    for line in source.splitlines():
        if start := _START.match(line):
            found.append(start["text"])
            inside = True
        elif inside and (more := _MORE.match(line)):
            found[-1] += " " + more["text"]
        else:
            inside = False
    return found
