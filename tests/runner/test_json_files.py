"""JSON files that people edit: what they hold comes back as it stands there, or one error names the place."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.reading import Form, read_json


class Row(Form):
    """Has a number."""

    number: float | None


ROWS = TypeAdapter(list[Row])


def test_values_come_back_as_they_stand_with_what_the_form_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"number": 1, "more": [null]}, {"number": null}]')
    assert read_json(tmp_path / "a.json", ROWS, remedy="") == [{"number": 1, "more": [None]}, {"number": None}]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[{"number": "1"}]', r"a\.json: 0\.number: does not hold what it should: input should be a valid number"),
        ("[{}]", r"a\.json: 0\.number: does not hold what it should: field required"),
        ("{}", r"a\.json: does not hold what it should: input should be a valid list"),
        ("[{'number': 1}]", r"a\.json: is not JSON"),
        ('[{"number": NaN}]', r"a\.json: is not JSON .*not JSON compliant"),
        (r'[{"number": 1, "text": "\ud800"}]', r"a\.json: is not JSON .*surrogates"),
        ("[" * 100_000, r"a\.json: is not JSON .*recursion"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match=says) as caught:
        read_json(tmp_path / "a.json", ROWS, remedy="Mend it.")
    assert str(caught.value).endswith(". Mend it.")
