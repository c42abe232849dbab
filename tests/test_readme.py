"""The README's Python runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

SNIPPETS = re.findall(r"```python\n(.*?)```", (Path(__file__).parents[1] / "README.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("code", SNIPPETS, ids=lambda code: code.split("import ")[-1].split()[0])
def test_a_snippet_runs_and_prints(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code, "README.md", "exec"), {})  # noqa: S102  # Our own text.
    assert capsys.readouterr().out.strip()


def test_there_are_snippets() -> None:
    assert len(SNIPPETS) >= 2
