"""Parsed sentences as numbers; their words are counted in the training trees and nowhere else."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from softmax_temperature.data.brackets import SENTIMENTS
from softmax_temperature.data.tokens import PADDING, UNKNOWN
from softmax_temperature.metrics.checks import check_count

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from softmax_temperature.data.brackets import Tree

WORD, LEFT, RIGHT, LABEL = range(4)
"""The columns of an encoded node."""

UNLABELLED = -1
"""The class of padding."""

_RESERVED = (PADDING, UNKNOWN)

# Deviation: the text does not say which words have vectors. In the released code they are those of all three parts, as
# they are written, and a word that the file of vectors lacks starts at random. Here they are those of the training
# trees, in lower case; a word that only validation or test sentences have is unknown, even where a file of vectors has
# it, and what a file lacks starts at 0.


def tree_words(trees: Iterable[Tree], *, vocabulary_size: int) -> tuple[str, ...]:
    """The most frequent words of some trees, equally frequent ones in the order of their code points.

    Args:
        trees: those of the training split; no other may be looked at for a vocabulary.
        vocabulary_size: numbers at most, those of padding and unknown words included; at least 3.

    Returns:
        The word `words[number - 2]` has that number.

    Raises:
        ValueError: `vocabulary_size` is too small.
    """
    check_count(vocabulary_size, "vocabulary_size", least=len(_RESERVED) + 1)
    counts = Counter(word for tree in trees for word in tree.words if word)
    order = sorted(counts, key=lambda word: (-counts[word], word))
    return tuple(islice(order, vocabulary_size - len(_RESERVED)))


def encode_trees(trees: Sequence[Tree], words: Sequence[str]) -> Tensor:
    """Trees as numbers, padded to the largest of them.

    Args:
        trees: n of them.
        words: the vocabulary, as `tree_words` gives it; another word is `UNKNOWN`.

    Returns:
        (n, nodes, 4) int64: the number of the word, `PADDING` where there is none; the numbers of the nodes below, 0
        where there are none, since the root is below no node; and the class, by `SENTIMENTS`. A row of padding is
        `PADDING`, 0, 0, `UNLABELLED`.
    """
    numbers = {word: number for number, word in enumerate(words, start=len(_RESERVED))}
    rows = [_encoded(tree, numbers) for tree in trees]
    nodes = pad_sequence(rows, batch_first=True, padding_value=0)
    real = (nodes[..., WORD] != PADDING) | (nodes[..., LEFT] > 0)
    nodes[..., LABEL].masked_fill_(~real, UNLABELLED)
    return nodes


def _encoded(tree: Tree, numbers: dict[str, int]) -> Tensor:
    words = [numbers.get(word, UNKNOWN) if word else PADDING for word in tree.words]
    return torch.tensor([words, tree.left, tree.right, [SENTIMENTS[label] for label in tree.labels]]).T
