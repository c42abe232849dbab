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

from softmax_temperature.data.tokens import PADDING, RESERVED, UNKNOWN

NEGATIVE, POSITIVE, NEUTRAL = range(3)
SENTIMENTS = (NEGATIVE, NEGATIVE, NEUTRAL, POSITIVE, POSITIVE)  # The class of each label.
UNLABELLED = -1  # The class of padding.
WORD, LEFT, RIGHT, LABEL = range(4)  # The columns of an encoded node.

_BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-lcb-": "{", "-rcb-": "}", "-lsb-": "[", "-rsb-": "]"}

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
    nodes: list[tuple[list[str], list[int]]] = []  # The label and words of each, and the numbers of the nodes below it.
    above: list[int] = []  # The nodes whose brackets are open.
    for piece in re.findall(r"[()]|[^\s()]+", text):
        if piece == "(":
            for parent in above[-1:]:
                nodes[parent][1].append(len(nodes))
            above.append(len(nodes))
            nodes.append(([], []))
        elif not above:
            raise ValueError(f"{piece!r} is outside the brackets")
        elif piece == ")":
            above.pop()
        else:
            own, below = nodes[above[-1]]
            word = piece.lower()
            own.append("" if below else _BRACKETS.get(word, word.replace("\\", "") or word))
    trees = len(nodes) - sum(len(below) for _, below in nodes)
    if above or trees != 1:
        raise ValueError(f"{len(above)} brackets are not closed, and there are {trees} trees, not 1")
    return Tree(*zip(*(_node(number, *node) for number, node in enumerate(nodes, start=1)), strict=True))


def _node(number: int, own: list[str], below: list[int]) -> tuple[str, int, int, int]:
    if own[:1] not in [[*label] for label in "01234"] or len(below) != (0 if own[1:] else 2):
        raise ValueError(f"node {number} is not a label from 0 to 4, then a word or two nodes")
    left, right = below or (0, 0)
    return " ".join(own[1:]), left, right, int(own[0])  # The treebank's "2 1/2" is one word with a space in it.


def tree_words(trees: Iterable[Tree], *, vocabulary_size: int) -> tuple[str, ...]:
    """The most frequent words of the training trees, as `Tokeniser.fit` has those of texts."""
    counts = Counter(word for tree in trees for word in tree.words if word)
    return tuple(sorted(counts, key=lambda word: (-counts[word], word))[: vocabulary_size - RESERVED])


def encode_trees(trees: Sequence[Tree], words: Sequence[str]) -> Tensor:
    """Trees as numbers, (n, nodes, 4) int64, padded to the largest of them with `PADDING`, 0, 0, `UNLABELLED`.

    Of each node: its word's number (`UNKNOWN` if not in `words`, `PADDING` if none), the nodes below or 0, its class.
    """
    numbers = {"": PADDING} | {word: number for number, word in enumerate(words, start=RESERVED)}
    tables = [
        [(numbers.get(word, UNKNOWN), *below, SENTIMENTS[label]) for word, *below, label in zip(*tree, strict=True)]
        for tree in trees
    ]
    nodes = pad_sequence(list(map(torch.tensor, tables)), batch_first=True)
    nodes[..., LABEL].masked_fill_((nodes[..., WORD] == PADDING) & (nodes[..., LEFT] == 0), UNLABELLED)
    return nodes
