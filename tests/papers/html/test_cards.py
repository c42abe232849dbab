"""On a phone, each row of a wide table is a card that names its columns."""

import re

import pytest

from softmax_temperature.papers.html.cards import with_cards

WORDS = (
    "a text that is so long that no phone can show it beside two further columns, ever"
)


def table(rows: list[list[str]], names: tuple[str, ...] = ("for", "name", "x")) -> str:
    head = "".join(f"<th>{name}</th>" for name in names)
    body = "".join(
        f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows
    )
    start = '<table id="T_one">'
    return f"{start}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def titles(html: str) -> list[list[str]]:
    """The texts of each card's title, as the style sheet shows them."""
    found = []
    for row in re.findall(r"<tr>(<td.*?)</tr>", html):
        cells = re.findall(r"<td data-title=\"\w+\"(.*?)><span>(.*?)</span></td>", row)
        found.append(
            [
                above[1] if (above := re.search('above="(.*?)"', marks)) else text
                for marks, text in cells
                if "left-out" not in marks
            ]
        )
    return found


def test_a_wide_table_keeps_its_head_and_name_and_each_cell_names_its_column() -> None:
    html = with_cards(f"before{table([['a', 'b', WORDS], ['c', 'd', '–']])}after")
    assert html.startswith('before<table id="T_one" data-stacked=""><thead><tr><th>for')
    broad = '<td data-column="x" data-broad=""><span>'
    assert f"{broad}{WORDS}</span></td></tr>" in html
    assert '<td data-column="x" data-left-out=""><span>–</span></td></tr>' in html
    assert html.endswith("</table>after")


def test_a_narrow_table_is_unchanged() -> None:
    narrow = table([["a", "b", "c"]])
    assert with_cards(narrow) == narrow


def test_a_blank_cell_of_a_title_carries_the_text_above_it() -> None:
    rows = [["training", "Loss", WORDS], ["", "Cooling", "y"], ["", "Cosine", "z"]]
    html = with_cards(table(rows))
    assert titles(html) == [
        ["training", "Loss"],
        ["training", "Cooling"],
        ["training", "Cosine"],
    ]
    assert '<td data-title="for" data-above="training"><span></span></td>' in html


@pytest.mark.parametrize(
    ("first", "second", "shown"),
    [
        ("ECE", "ECE (%)", ["ECE (%)"]),
        ("ECE", "ECE", ["ECE"]),
        ("ECE", "temperature", ["ECE", "temperature"]),
        ("FL", "FLSD", ["FL", "FLSD"]),
        ("–", "ECE", ["ECE"]),
        ("1", "1", ["1", "1"]),
    ],
)
def test_a_title_has_no_word_twice_and_no_dash(
    first: str, second: str, shown: list[str]
) -> None:
    html = with_cards(table([[first, second, WORDS], [first, "other", "y"]]))
    assert titles(html)[0] == shown


@pytest.mark.parametrize(
    "hostile",
    [
        '<a title="</td></tr></thead>" href="x">y</a>',
        "<a title='</table>' href='x'>y</a>",
    ],
)
def test_a_table_whose_attributes_hold_tags_is_not_taken_apart(hostile: str) -> None:
    dangerous = table([["a", "b", WORDS + hostile]])
    assert with_cards(dangerous) == dangerous


def test_a_name_of_a_column_cannot_leave_its_attribute() -> None:
    names = ("for", "name", 'x" onclick=alert(1) y')
    html = with_cards(table([["a", "b", WORDS]], names))
    assert 'data-column="x&quot; onclick=alert(1) y"' in html


def test_a_table_without_a_head_is_unchanged() -> None:
    headless = f"<table><tbody><tr><td>{WORDS}</td></tr></tbody></table>"
    assert with_cards(headless) == headless
