"""Deviations are found where they are written, over all of their lines."""

from __future__ import annotations

from softmax_temperature.papers.shared.collect import comments, deviations


def test_a_comment_is_joined_over_its_lines() -> None:
    source = "x = 1\n    # Deviation: the paper says so,\n    # we say this.\ny = 2  # not this\n"
    source += "# Deviation: one line.\nz = 3\n# other\n"
    assert comments(source) == ["the paper says so, we say this.", "one line."]


def test_the_first_papers_deviations_are_listed() -> None:
    table = deviations(["softmax_temperature.stages.search", "softmax_temperature.stages.heuristic"])
    assert set(table.columns) == {"where", "what"}
    assert len(table) >= 3
    assert table["what"].str.len().min() > 20
