"""Test data reach no fit, and only training texts make a vocabulary."""

import pytest
import torch

from softmax_temperature.data.splits import LeakError, Part, SplitName

ROWS = torch.arange(3)


def parts(split: SplitName) -> tuple[Part, Part, Part]:
    """Images, texts, and sentences with their translations."""
    images, texts = (Part("birds", split, data, ROWS, ROWS) for data in (torch.zeros(3, 2), ("a", "b", "c")))
    return images, texts, Part.of_pairs("birds", split, ("a", "b"), ("c", "d"))


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_test_data_fit_nothing_and_held_out_texts_make_no_vocabulary(split: SplitName) -> None:
    images, texts, pairs = parts(split)
    for part in (images, texts, pairs):
        assert part.for_evaluation() == (part.data, part.labels)
        if split == "test":
            with pytest.raises(LeakError, match="birds: the test split was asked for to fit something"):
                part.for_fitting()
        else:
            assert part.for_fitting() == (part.data, part.labels)
    for part, words in ((texts, ("a", "b", "c")), (pairs, ("a", "b", "c", "d"))):
        if split == "train":
            assert part.for_vocabulary() == words
        else:
            with pytest.raises(LeakError, match=f"birds: the {split} split was asked for to make a vocabulary"):
                part.for_vocabulary()


def test_rows_are_taken_together_and_must_pair_up() -> None:
    images, texts, pairs = (part.take(ROWS[1:2].numpy(), "validation") for part in parts("train"))
    assert (texts.data, texts.labels.tolist(), texts.index.tolist(), texts.split) == (("b",), [1], [1], "validation")
    assert (pairs.data, pairs.labels) == (("b",), ("d",))
    assert images.data.shape == (1, 2)
    with pytest.raises(ValueError, match="birds/train: 2 rows, 3 labels, 3 indices"):
        Part("birds", "train", torch.zeros(2, 2), ROWS, ROWS)
