"""Sentences with their parse, written in brackets: the form of the Stanford Sentiment Treebank (Socher et al. 2013).

A label stands before what it labels: `(3 (2 the) (4 (3 good) (2 one)))`. Every node has a word or two nodes below it,
and a label from 0, very negative, over 2, neutral, to 4, very positive.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

NEGATIVE, POSITIVE, NEUTRAL = range(3)
SENTIMENTS = (NEGATIVE, NEGATIVE, NEUTRAL, POSITIVE, POSITIVE)
"""The class of each label."""

MOST_WORDS = 1000  # Of a sentence; the longest one of the treebank has 56. Trees are padded to the largest.

_PIECE = re.compile(r"[()]|[^\s()]+")
_BRACKETS = {"-lrb-": "(", "-rrb-": ")", "-lcb-": "{", "-rcb-": "}", "-lsb-": "[", "-rsb-": "]"}


class Tree(NamedTuple):
    """A parsed sentence: each node in front of those below it, the root first.

    Attributes:
        words: of each node; empty where it has nodes below it.
        left: the number of the node below it on the left, or 0.
        right: likewise.
        labels: 0 to 4.
    """

    words: tuple[str, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    labels: tuple[int, ...]


def parse_tree(text: str) -> Tree:
    """Read a tree in brackets.

    Words are brought to lower case; what the Penn Treebank writes for brackets and slashes becomes these.

    Raises:
        ValueError: it is no such tree; the message names the character, counted from 1.
    """
    building = _Building()
    for piece in _PIECE.finditer(text):
        building.take(piece[0], piece.start() + 1)
    return building.done(len(text) + 1)


@dataclass
class _Building:
    """A tree as far as it has been read."""

    words: list[str] = field(default_factory=list)
    labels: list[int | None] = field(default_factory=list)
    below: list[list[int]] = field(default_factory=list)
    open: list[int] = field(default_factory=list)

    def take(self, piece: str, place: int) -> None:
        if piece == "(":
            self._begin(place)
        elif not self.open:
            _refuse(f"{piece!r} stands outside the brackets", place)
        elif piece == ")":
            self._end(place)
        elif self.labels[self.open[-1]] is None:
            self._label(piece, place)
        else:
            self._word(piece, place)

    def done(self, place: int) -> Tree:
        if not self.words:
            _refuse("there is no tree", place)
        if self.open:
            _refuse(f"{len(self.open)} brackets are not closed", place)
        left, right = (tuple(pair[side] if pair else 0 for pair in self.below) for side in (0, 1))
        labels = tuple(label for label in self.labels if label is not None)
        return Tree(tuple(self.words), left, right, labels)

    def _begin(self, place: int) -> None:
        if self.words and not self.open:
            _refuse("a second tree begins", place)
        if self.open:
            self._add_below(self.open[-1], place)
        self.open.append(len(self.words))
        self.words.append("")
        self.labels.append(None)
        self.below.append([])

    def _add_below(self, parent: int, place: int) -> None:
        if self.labels[parent] is None:
            _refuse("a node has no label", place)
        if self.words[parent]:
            _refuse(f"the word {_short(self.words[parent])} has a node beside it", place)
        if len(self.below[parent]) == 2:
            _refuse("a node has a third one below it", place)
        self.below[parent].append(len(self.words))

    def _end(self, place: int) -> None:
        node = self.open.pop()
        if not self.words[node] and len(self.below[node]) != 2:
            _refuse("a node has neither a word nor two nodes below it", place)

    def _label(self, piece: str, place: int) -> None:
        if piece not in {"0", "1", "2", "3", "4"}:
            _refuse(f"the label is {_short(piece)}, not 0 to 4", place)
        self.labels[self.open[-1]] = int(piece)

    def _word(self, piece: str, place: int) -> None:
        node = self.open[-1]
        if self.below[node]:
            _refuse(f"the word {_short(piece)} has a node beside it", place)
        if len(self.words) > 2 * MOST_WORDS:
            _refuse(f"the sentence has more than {MOST_WORDS:,} words", place)
        word = piece.lower()
        word = _BRACKETS.get(word, word.replace("\\", "") or word)
        # The treebank's "2 1/2" is one word with a space in it.
        self.words[node] = f"{self.words[node]} {word}".lstrip()


def _short(text: str) -> str:
    return repr(text if len(text) <= 20 else f"{text[:20]}...")


def _refuse(what: str, place: int) -> NoReturn:
    raise ValueError(f"{what}, at character {place}")
