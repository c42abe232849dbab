"""JSON and YAML that people edit: values come back unchanged, or one error names the place."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from softmax_temperature.runner.errors import InputError
from softmax_temperature.runner.reading import Form, read_json, read_yaml


class Row(Form):
    """Has a number."""

    number: float | None


ROWS = TypeAdapter(list[Row])


def test_json_keeps_what_the_form_does_not_know(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"number": 1, "more": [null]}, {"number": null}]')
    assert read_json(tmp_path / "a.json", ROWS, remedy="") == [{"number": 1, "more": [None]}, {"number": None}]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[{"number": "1"}]', r"a\.json: 0\.number: does not hold what it should: input should be a valid number"),
        ("{}", r"a\.json: does not hold what it should: input should be a valid list"),
        ("[{'number': 1}]", r"a\.json: is not readable as JSON"),
        ('[{"number": NaN}]', r"a\.json: is not readable as JSON .*not JSON compliant"),
    ],
)
def test_wrong_json_is_named_with_its_place(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(InputError, match=says) as caught:
        read_json(tmp_path / "a.json", ROWS, remedy="Mend it.")
    assert str(caught.value).endswith(". Mend it.")


@pytest.mark.parametrize("text", ["a: [1", "a: !!timestamp 2026-99-99", "a: 1\na: 2"])
def test_wrong_yaml_is_one_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(InputError, match=r"a\.yaml: not readable as YAML"):
        read_yaml(tmp_path / "a.yaml")


def test_a_missing_yaml_file_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_yaml(tmp_path / "a.yaml")


def test_tags_construct_nothing(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: !!python/object/apply:os.getcwd []")
    assert "os.getcwd" not in type(read_yaml(tmp_path / "a.yaml")["a"]).__name__
