"""The notebook explains what a study contains, and nothing else."""

import pytest

from softmax_temperature.papers.focal import reading


@pytest.mark.parametrize(
    ("is_printed", "is_empty", "openings"),
    [
        (True, False, ["The column next to ours has the printed number"]),
        (
            False,
            False,
            ["The paper has no numbers for this data and network; claims cite"],
        ),
        (False, True, []),
    ],
)
def test_table_1_is_explained_by_its_columns(
    is_printed: bool, is_empty: bool, openings: list[str]
) -> None:
    sentences = reading.of_table_1(is_printed=is_printed, is_empty=is_empty)
    shown = [sentence for sentence, applies in sentences.items() if applies]
    assert len(shown) == len(openings)
    assert all(map(str.startswith, shown, openings))


@pytest.mark.parametrize("is_printed", [False, True])
@pytest.mark.parametrize("has_guesses", [False, True])
def test_the_summary_mentions_only_the_marks_that_it_has(
    is_printed: bool, has_guesses: bool
) -> None:
    sentences = reading.of_the_summary(is_printed=is_printed, has_guesses=has_guesses)
    text = " ".join(sentence for sentence, applies in sentences.items() if applies)
    assert ("Crosses" in text) == is_printed
    assert ("guesses" in text) == has_guesses
