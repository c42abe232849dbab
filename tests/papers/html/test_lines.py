"""Values and names are kept on one line; code and formulas are left unchanged."""

import pytest

from softmax_temperature.papers.html.lines import unbroken


@pytest.mark.parametrize(
    "text",
    ["4.2 %", "± 0.30", "n = 11", "p &lt; 0.05", "[-1.8,\n1.8]", "FLSD-53", "LS-0.05"],
)
def test_a_value_or_a_name_is_one_whole(text: str) -> None:
    marked = f'<p>so <span class="whole">{text}</span>, too</p>'
    assert unbroken(f"<p>so {text}, too</p>") == marked


@pytest.mark.parametrize(
    "html",
    [
        '<img alt="4.2 % [1, 2]">',
        "<pre>n = 4</pre>",
        "<code>[1, 2]</code>",
        "<math><mn>5 %</mn></math>",
        "<title>FL-3: 4.2 %</title>",
        "<script>x = [1, 2]; n = 4</script>",
        "<table><tr><td>[1.0, 2.3]</td></tr></table>",
    ],
)
def test_attributes_code_formulas_and_intervals_in_tables_are_unchanged(
    html: str,
) -> None:
    assert unbroken(html) == html


def test_an_identifier_in_a_table_may_break_after_its_marks_alone() -> None:
    html = "<table><td><code>cooling_cifar10</code></td></table><code>a_b</code>"
    assert unbroken(html) == (
        "<table><td><code>cooling_<wbr>cifar10</code></td></table><code>a_b</code>"
    )
