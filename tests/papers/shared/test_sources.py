"""The names of cells beside numbers, and links that carry them."""

import pandas as pd
import pytest

from softmax_temperature.papers.shared.sources import apart, cell_of_each, cells_of, link, linked, relinked, together

ROWS = pd.DataFrame({"arm": ["a", "a", "b"], "rate": [0.003, 0.003, 10.0], "count": [7, 7, 8], "seed": [0, 1, 0]})
HOSTILE = ('a"><script>alert(1)</script>/b', "c & d; e", "50 %/ä#f?g")


def test_cells_are_named_once_by_their_stage_and_numbers_as_their_names_have_them() -> None:
    names = ("paper/training/a/0.003/7", "paper/training/b/10/8")
    assert cells_of("paper/training", ROWS, "arm", "rate", "count") == names
    assert cell_of_each("paper/training", ROWS, "arm", "rate", "count") == [names[0], *names]


@pytest.mark.parametrize("names", [(), ("a/b",), ("a/b", "c/d")])
def test_names_that_were_put_together_come_apart(names: tuple[str, ...]) -> None:
    assert apart(together([*names, *names])) == names


def test_links_carry_any_name_whole_and_as_text() -> None:
    html = "".join(f"<td>{link('1', name)}</td>" for name in (*HOSTILE, HOSTILE[0]))
    assert linked(html) == list(HOSTILE)
    assert "<script>" not in html
    assert relinked(html, lambda name: f"page#{HOSTILE.index(name)}").count('<a href="page#0">1</a>') == 2
    assert "<script>" not in relinked(html, lambda name: name)


def test_other_links_stay() -> None:
    html = '<a href="elsewhere.json#a">1</a>'
    assert linked(html) == []
    assert relinked(html, lambda name: name) == html
