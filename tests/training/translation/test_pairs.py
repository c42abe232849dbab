"""Each pair is in exactly one batch, with pairs of similar lengths.

The decoder reads the tokens before each label.
"""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from softmax_temperature.params.recipe import Recipe
from softmax_temperature.training.translation.sentences import (
    END,
    PADDING,
    START,
    LengthBatches,
    Ragged,
    SentencePairs,
)


def of(*lengths: tuple[int, int]) -> SentencePairs:
    """Pairs with these lengths, including END; the tokens are 10, 11, ..."""
    sides = ([[*range(10, 9 + pair[side]), END] for pair in lengths] for side in (0, 1))
    return SentencePairs(*map(Ragged.of, sides), "train")


def test_the_decoder_reads_the_tokens_before_each_label() -> None:
    pairs = of((3, 2), (2, 4))
    assert pairs.teacher_forced(torch.tensor([0, 1])).tolist() == [
        [[10, 11, END, PADDING], [START, 10, PADDING, PADDING]],
        [[10, END, PADDING, PADDING], [START, 10, 11, 12]],
    ]
    batches = LengthBatches.of(pairs, tokens=100, seed=0)
    [rows] = batches.batches
    expected = [
        token for row in rows.tolist() for token in ([10, END], [10, 11, 12, END])[row]
    ]
    assert batches.labels.tolist() == [expected]


@given(
    st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=30),
    st.integers(1, 40),
    st.integers(0, 3),
)
def test_every_pair_is_in_one_batch_that_is_not_too_large(
    lengths: list[tuple[int, int]], tokens: int, seed: int
) -> None:
    pairs = of(*lengths)
    batches = LengthBatches.of(pairs, tokens=tokens, seed=seed)
    assert sorted(torch.cat(batches.batches).tolist()) == list(range(len(lengths)))
    for number, rows in enumerate(batches.batches):
        inputs = batches.prepare(torch.tensor([number]), None)  # type: ignore[arg-type]
        assert len(rows) == 1 or inputs[:, 0].numel() <= tokens
        assert (batches.labels[number] != PADDING).sum() == sum(
            lengths[row][1] for row in rows.tolist()
        )
    longest = [
        max(max(lengths[row]) for row in rows.tolist()) for rows in batches.batches
    ]
    assert longest == sorted(longest)


def test_long_pairs_are_left_out_by_either_side() -> None:
    kept = of((3, 2), (2, 4), (4, 1), (3, 3)).up_to(3)
    assert kept.lengths.tolist() == [3, 3]
    assert kept.targets.lengths.tolist() == [2, 3]


def test_recipes_for_other_samples_are_refused(recipe: Recipe) -> None:
    batches = LengthBatches.of(of((2, 2)), tokens=9, seed=0)
    batches.check(recipe)
    for change, says in (
        ({"flip": True}, "neither augment nor"),
        ({"batch_size": 2}, "one batch of sentences"),
    ):
        with pytest.raises(ValueError, match=says):
            batches.check(recipe.changed(change))
