"""Errors that users can fix are printed in one line, and can be pickled."""

import pickle

import pytest

from softmax_temperature.runner.errors import CellsFailed, InputError, nearest


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\nb", r"a\nb"),
        ("a\x1b[2J", r"a\x1b[2J"),
        ("a\u2028", r"a\u2028"),
        ("à é 字", "à é 字"),
    ],
)
def test_an_error_is_one_line_whatever_a_name_or_another_error_holds(
    name: str, shown: str
) -> None:
    error = InputError(
        "is no table (line 3:\n   expected 2,\r\n\tgot 3)",
        where=f"{name}.csv",
        remedy=f"Mend {name}.",
    )
    assert (
        str(error)
        == f"{shown}.csv: is no table (line 3: expected 2, got 3). Mend {shown}."
    )
    assert error.where == f"{name}.csv"
    # Worker processes pickle the errors that they send back.
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301


def test_an_error_that_cells_share_is_shown_once() -> None:
    failed = CellsFailed(
        "training",
        {"a": "line 3 is empty", "b": "no memory", "c": "line 3 is empty"},
        5,
    )
    assert str(failed).splitlines()[1:] == [
        "  a and 1 more: line 3 is empty",
        "  b: no memory",
    ]
    assert set(failed.failures) == {"a", "b", "c"}


def test_the_remedy_for_a_name_is_the_nearest_or_the_first_ones() -> None:
    assert nearest("brier", ["focal", "brier_score"]) == "Did you mean 'brier_score'?"
    assert nearest("xyz", ["focal", "brier_score"]) == "Valid: brier_score, focal."
    said = nearest("xyz", [f"net{number:04}" for number in range(1050)])
    assert said.startswith("Valid: net0000, net0001, ")
    assert said.endswith(", ....")
    assert len(said) < 1100
