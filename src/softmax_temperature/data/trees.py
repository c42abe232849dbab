"""Parse trees of the Stanford Sentiment Treebank (Socher et al. 2013) as tensors.

Each pair of brackets is a node and begins with the node's label: `(3 (2 the) (4 (3
good) (2 one)))`. After its label, a node has either one word or two children. Labels
run from 0 (very negative) to 4 (very positive); 2 is neutral.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from softmax_temperature.data.tokens import PADDING, RESERVED, UNKNOWN

NEGATIVE = 0
POSITIVE = 1
NEUTRAL = 2
SENTIMENTS = (NEGATIVE, NEGATIVE, NEUTRAL, POSITIVE, POSITIVE)
"""The class of each label."""
UNLABELLED = -1
"""The class of padding."""

# The columns of an encoded node.
WORD = 0
LEFT = 1
RIGHT = 2
LABEL = 3

_PIECES = re.compile(r"[()]|[^\s()]+")
_LABELS = tuple("01234")
_BRACKETS = {
    "-lrb-": "(",
    "-rrb-": ")",
    "-lcb-": "{",
    "-rcb-": "}",
    "-lsb-": "[",
    "-rsb-": "]",
}

# Deviation: only the words of the training trees have vectors, and words are in lower
# case. A word that occurs only in validation or test sentences counts as unknown, even
# if the file of word vectors contains it; the vector of a training word that the file
# lacks starts at 0. The focal paper does not say which words have vectors. In the
# released code all words of the three parts have a vector, words keep their case, and
# the vector of a word that the file lacks starts at random values.


class Tree(NamedTuple):
    """A parsed sentence as columns with one entry per node, the root first.

    Attributes:
        words: The word of a leaf; "" for an inner node.
        left: The index of the left child; 0 for a leaf.
        right: The index of the right child; 0 for a leaf.
        labels: The label, from 0 to 4.
    """

    words: tuple[str, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    labels: tuple[int, ...]


@dataclass
class _Node:
    """A node whose brackets are being read."""

    pieces: list[str] = field(default_factory=list)  # Label, then words.
    children: list[int] = field(default_factory=list)

    def add(self, piece: str) -> None:
        word = piece.lower()
        if self.children:
            word = ""
        elif word in _BRACKETS:
            word = _BRACKETS[word]
        else:
            word = word.replace("\\", "") or word
        self.pieces.append(word)


def parse_tree(text: str) -> Tree:
    """Parse a bracketed tree.

    Words become lower case, and the treebank's names for brackets are replaced with
    brackets.

    Raises:
        ValueError: If the text is not one tree in this module's form.
    """
    nodes = _read_nodes(text)
    rows = [_row(number, node) for number, node in enumerate(nodes, start=1)]
    words, left, right, labels = zip(*rows, strict=True)
    return Tree(words, left, right, labels)


def _read_nodes(text: str) -> list[_Node]:
    """Read the nodes of one tree, in the order in which their brackets open."""
    nodes: list[_Node] = []
    open_nodes: list[int] = []
    for piece in _PIECES.findall(text):
        if piece == "(":
            if open_nodes:
                nodes[open_nodes[-1]].children.append(len(nodes))
            open_nodes.append(len(nodes))
            nodes.append(_Node())
        elif not open_nodes:
            raise ValueError(f"{piece!r} is outside the brackets")
        elif piece == ")":
            open_nodes.pop()
        else:
            nodes[open_nodes[-1]].add(piece)
    trees = len(nodes) - sum(len(node.children) for node in nodes)
    if open_nodes or trees != 1:
        raise ValueError(
            f"expected one tree with balanced brackets, got {trees} tree(s) and "
            f"{len(open_nodes)} unclosed bracket(s)"
        )
    return nodes


def _row(number: int, node: _Node) -> tuple[str, int, int, int]:
    """Return the word, the two children and the label of `node`.

    Error messages identify the node by `number`.
    """
    words = node.pieces[1:]
    has_label = node.pieces[:1] and node.pieces[0] in _LABELS
    children_needed = 0 if words else 2
    if not has_label or len(node.children) != children_needed:
        raise ValueError(
            f"node {number} must have a label from 0 to 4, followed by a word or two "
            "nodes"
        )
    left, right = node.children or (0, 0)
    # Join the pieces, because the treebank's "2 1/2" is one word with a space in it.
    return " ".join(words), left, right, int(node.pieces[0])


def tree_words(trees: Iterable[Tree], *, vocabulary_size: int) -> tuple[str, ...]:
    """Choose the most frequent words of training trees; ties are in alphabetical order.

    `vocabulary_size` counts all distinct token IDs, including those of padding and of
    unknown words.
    """
    counts = Counter(word for tree in trees for word in tree.words if word)
    by_frequency = sorted(counts, key=lambda word: (-counts[word], word))
    return tuple(by_frequency[: vocabulary_size - RESERVED])


def encode_trees(trees: Sequence[Tree], words: Sequence[str]) -> Tensor:
    """Encode the nodes of trees as numbers.

    Args:
        trees: n trees.
        words: The vocabulary; `words[k]` has the ID k + RESERVED.

    Returns:
        An int64 tensor of shape (n, nodes, 4). The columns of a node are WORD (PADDING
        for an inner node), LEFT, RIGHT and LABEL, which holds the class. A row of
        padding is PADDING, 0, 0, UNLABELLED.
    """
    numbers = {word: number for number, word in enumerate(words, start=RESERVED)}
    numbers[""] = PADDING
    tables = [torch.tensor(_encoded(tree, numbers)) for tree in trees]
    nodes = pad_sequence(tables, batch_first=True)
    is_padding = (nodes[..., WORD] == PADDING) & (nodes[..., LEFT] == 0)
    nodes[..., LABEL].masked_fill_(is_padding, UNLABELLED)
    return nodes


def _encoded(tree: Tree, numbers: dict[str, int]) -> list[tuple[int, int, int, int]]:
    return [
        (numbers.get(word, UNKNOWN), left, right, SENTIMENTS[label])
        for word, left, right, label in zip(*tree, strict=True)
    ]
