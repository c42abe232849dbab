"""The error that a user can mend."""

import pickle

import pytest

from softmax_temperature.runner.errors import InputError, nearest


def test_another_library_s_error_of_several_lines_becomes_one() -> None:
    error = InputError("is no table (line 3:\n   expected 2 columns,\r\n\tgot 3)", where="a.csv", remedy="Mend it.")
    assert str(error) == "a.csv: is no table (line 3: expected 2 columns, got 3). Mend it."


@pytest.mark.parametrize(
    ("name", "shown"), [("a\nb", r"a\nb"), ("a\x1b[2J", r"a\x1b[2J"), ("a\u2028", r"a\u2028"), ("à é 字", "à é 字")]
)
def test_what_breaks_a_line_or_moves_a_terminal_is_shown_as_it_is_written(name: str, shown: str) -> None:
    error = InputError("is empty", where=f"data/{name}.csv", remedy=f"Fill {name}.")
    assert str(error) == f"data/{shown}.csv: is empty. Fill {shown}."
    assert error.where == f"data/{name}.csv"


def test_it_survives_the_way_between_processes() -> None:
    error = pickle.loads(pickle.dumps(InputError("is empty", where="a.csv", remedy="Mend it.")))  # noqa: S301  # Ours.
    assert (error.what, error.where, error.remedy) == ("is empty", "a.csv", "Mend it.")


@pytest.mark.parametrize(
    ("name", "remedy"), [("brier", "Did you mean 'brier_score'?"), ("xyz", "Valid: brier_score, focal.")]
)
def test_the_remedy_for_a_name_is_the_nearest_or_all(name: str, remedy: str) -> None:
    assert nearest(name, ["focal", "brier_score"]) == remedy


def test_of_very_many_names_the_first_are_said() -> None:
    said = nearest("xyz", [f"net{number:04}" for number in range(1050)])
    assert said.startswith("Valid: net0000, net0001, ")
    assert said.endswith(", net0049, and 1,000 more.")
