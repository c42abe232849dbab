"""Sentences with their parse, as the Stanford Sentiment Treebank has them (Socher et al. 2013), and as numbers.

A label stands before what it labels: `(3 (2 the) (4 (3 good) (2 one)))`. Every node has a word or two nodes below it,
and a label from 0, very negative, over 2, neutral, to 4, very positive.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from softmax_temperature.data.tokens import PADDING, UNKNOWN

NEGATIVE, POSITIVE, NEUTRAL = range(3)
SENTIMENTS = (NEGATIVE, NEGATIVE, NEUTRAL, POSITIVE, POSITIVE)
"""The class of each label."""

WORD, LEFT, RIGHT, LABEL = range(4)
"""The columns of an encoded node."""

UNLABELLED = -1
"""The class of padding."""

_PIECE = re.compile(r"[()]|[^\s()]+")
_BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-lcb-": "{", "-rcb-": "}", "-lsb-": "[", "-rsb-": "]"}
_LABELS = [[*label] for label in "01234"]
_RESERVED = (PADDING, UNKNOWN)

# Deviation: the text does not say which words have vectors. In the released code they are those of all three parts, as
# they are written, and a word that the file of vectors lacks starts at random. Here they are those of the training
# trees, in lower case; a word that only validation or test sentences have is unknown, even where a file of vectors has
# it, and what a file lacks starts at 0.


class Tree(NamedTuple):
    """A parsed sentence, the root first: of each node its word or "", the nodes below it or 0, and its label."""

    words: tuple[str, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    labels: tuple[int, ...]


def parse_tree(text: str) -> Tree:
    """Read a tree in brackets, in lower case and with plain words for brackets; ValueError if it is no such tree."""
    pieces: list[list[str]] = []  # Of each node, its label and words...
    below: list[list[int]] = []  # ...and the numbers of the nodes below it.
    above: list[int] = []  # The nodes whose brackets are open.
    for piece in _PIECE.findall(text):
        if piece == "(":
            if above:
                below[above[-1]].append(len(pieces))
            above.append(len(pieces))
            pieces.append([])
            below.append([])
        elif not above:
            raise ValueError(f"{piece!r} is outside the brackets")
        elif piece == ")":
            node = above.pop()
            if pieces[node][:1] not in _LABELS or len(below[node]) != (0 if pieces[node][1:] else 2):
                raise ValueError(f"node {node + 1} is not a label from 0 to 4, then a word or two nodes")
        else:
            pieces[above[-1]].append("" if below[above[-1]] else piece)
    trees = len(pieces) - sum(map(len, below))
    if above or trees != 1:
        raise ValueError(f"{len(above)} brackets are not closed, and there are {trees} trees, not 1")
    left, right = (tuple(nodes[side] if nodes else 0 for nodes in below) for side in (0, 1))
    # The treebank's "2 1/2" is one word with a space in it.
    words = tuple(" ".join(map(_plain, own[1:])) for own in pieces)
    return Tree(words, left, right, tuple(int(own[0]) for own in pieces))


def _plain(piece: str) -> str:
    word = piece.lower()
    return _BRACKETS.get(word, word.replace("\\", "") or word)


def tree_words(trees: Iterable[Tree], *, vocabulary_size: int) -> tuple[str, ...]:
    """The most frequent words of the training trees, as `Tokeniser.fit` has those of texts."""
    counts = Counter(word for tree in trees for word in tree.words if word)
    order = sorted(counts, key=lambda word: (-counts[word], word))
    return tuple(order[: vocabulary_size - len(_RESERVED)])


def encode_trees(trees: Sequence[Tree], words: Sequence[str]) -> Tensor:
    """Trees as numbers, (n, nodes, 4) int64, padded to the largest of them with `PADDING`, 0, 0, `UNLABELLED`.

    Of each node: the number of its word, `UNKNOWN` for one that is not in `words`, `PADDING` where there is none; the
    numbers of the nodes below, or 0; and the class, by `SENTIMENTS`.
    """
    numbers = {word: number for number, word in enumerate(words, start=len(_RESERVED))}
    nodes = pad_sequence([_encoded(tree, numbers) for tree in trees], batch_first=True, padding_value=0)
    real = (nodes[..., WORD] != PADDING) | (nodes[..., LEFT] > 0)
    nodes[..., LABEL].masked_fill_(~real, UNLABELLED)
    return nodes


def _encoded(tree: Tree, numbers: dict[str, int]) -> Tensor:
    words = [numbers.get(word, UNKNOWN) if word else PADDING for word in tree.words]
    return torch.tensor([words, tree.left, tree.right, [SENTIMENTS[label] for label in tree.labels]]).T
