"""Texts and trees as numbers: their words are counted in the training part and nowhere
else.

Trees are those of the Stanford Sentiment Treebank (Socher et al. 2013). A label stands
before what it labels: `(3 (2 the) (4 (3 good) (2 one)))`. Every node has a word or two
nodes below it, and a label from 0, very negative, over 2, neutral, to 4, very positive.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Punctuation, WhitespaceSplit
from tokenizers.pre_tokenizers import Sequence as Steps
from tokenizers.trainers import WordLevelTrainer
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from softmax_temperature.data.splits import Part

# What follows the last token of a text, what stands for every word that is not in the
# vocabulary, and the first word.
PADDING, UNKNOWN, RESERVED = range(3)

Keep = Literal["start", "end"]

# Deviation: the texts at hand of the papers temperature_check and focal do not say how
# words are told apart, how many of them have a number, or where a long text is cut.
# Here a token is a run of letters and digits, in lower case, or a single punctuation
# mark. Markup is not removed: the line breaks of IMDB's reviews, `<br />`, are four
# tokens each. The released code of the focal paper passes over punctuation marks, reads
# the last 1,000 words, and counts the words of all documents, those to be tested on
# included.


class Tokeniser:
    """Makes rows of numbers, padded or cut: `words[number - 2]` has that number, and
    any other word is `UNKNOWN`.
    """

    def __init__(self, words: Iterable[str], *, length: int, keep: Keep) -> None:
        self.words = tuple(words)
        # No text can hold the first two: letters and punctuation marks are never in one
        # token. They are not registered as special tokens of the library, which would
        # find them in texts, too.
        numbers = {
            word: number
            for number, word in enumerate(("<padding>", "<unknown>", *self.words))
        }
        self._tokenizer = _splitter(WordLevel(numbers, unk_token="<unknown>"))  # noqa: S106
        self._tokenizer.enable_truncation(
            length, direction="right" if keep == "start" else "left"
        )
        self._tokenizer.enable_padding(
            length=length,
            pad_id=PADDING,
            pad_token="<padding>",  # noqa: S106
        )

    @classmethod
    def fit(
        cls, part: Part, *, vocabulary_size: int, length: int, keep: Keep
    ) -> Tokeniser:
        """One for the most frequent words of a training split, or LeakError;
        `vocabulary_size` counts all numbers.
        """
        counter = _splitter(WordLevel())
        trainer = WordLevelTrainer(
            vocab_size=vocabulary_size - RESERVED,
            min_frequency=1,
            special_tokens=[],
            show_progress=False,
        )
        counter.train_from_iterator(part.for_vocabulary(), trainer)
        numbers = counter.get_vocab()
        return cls(sorted(numbers, key=numbers.__getitem__), length=length, keep=keep)

    def encode(self, texts: Iterable[str]) -> Tensor:
        """The tokens of some texts: (n, length) int64, padded on the right with
        `PADDING`.
        """
        encodings = self._tokenizer.encode_batch_fast(
            list(texts), add_special_tokens=False
        )
        tokens = torch.tensor(
            [encoding.ids for encoding in encodings], dtype=torch.int64
        )
        tokens[tokens[:, 0] == PADDING, 0] = UNKNOWN
        return tokens

    def encode_part(self, part: Part) -> Part:
        """A split as tokens, with its place in the split ledger."""
        return replace(part, data=self.encode(part.data))


def _splitter(model: WordLevel) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Steps([WhitespaceSplit(), Punctuation()])
    return tokenizer


NEGATIVE, POSITIVE, NEUTRAL = range(3)
SENTIMENTS = (
    NEGATIVE,
    NEGATIVE,
    NEUTRAL,
    POSITIVE,
    POSITIVE,
)  # The class of each label.
UNLABELLED = -1  # The class of padding.
WORD, LEFT, RIGHT, LABEL = range(4)  # The columns of an encoded node.

_BRACKETS = {
    "-lrb-": "(",
    "-rrb-": ")",
    "-lcb-": "{",
    "-rcb-": "}",
    "-lsb-": "[",
    "-rsb-": "]",
}

# Deviation: the text does not say which words have vectors. In the released code they
# are those of all three parts, as they are written, and a word that the file of vectors
# lacks starts at random. Here they are those of the training trees, in lower case; a
# word that only validation or test sentences have is unknown, even where a file of
# vectors has it, and what a file lacks starts at 0.


class Tree(NamedTuple):
    """A parsed sentence, the root first: of each node its word or "", the nodes below
    it or 0, and its label.
    """

    words: tuple[str, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]
    labels: tuple[int, ...]


def parse_tree(text: str) -> Tree:
    """Read a tree in brackets, in lower case and with plain words for brackets;
    ValueError if it is no such tree.
    """
    nodes: list[
        tuple[list[str], list[int]]
    ] = []  # The label and words of each, and the numbers of the nodes below it.
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
            own.append(
                "" if below else _BRACKETS.get(word, word.replace("\\", "") or word)
            )
    trees = len(nodes) - sum(len(below) for _, below in nodes)
    if above or trees != 1:
        raise ValueError(
            f"{len(above)} brackets are not closed, and there are {trees} trees, not 1"
        )
    return Tree(
        *zip(
            *(_node(number, *node) for number, node in enumerate(nodes, start=1)),
            strict=True,
        )
    )


def _node(number: int, own: list[str], below: list[int]) -> tuple[str, int, int, int]:
    if own[:1] not in [[*label] for label in "01234"] or len(below) != (
        0 if own[1:] else 2
    ):
        raise ValueError(
            f"node {number} is not a label from 0 to 4, then a word or two nodes"
        )
    left, right = below or (0, 0)
    return (
        " ".join(own[1:]),
        left,
        right,
        int(own[0]),
    )  # The treebank's "2 1/2" is one word with a space in it.


def tree_words(trees: Iterable[Tree], *, vocabulary_size: int) -> tuple[str, ...]:
    """The most frequent words of the training trees, as `Tokeniser.fit` has those of
    texts.
    """
    counts = Counter(word for tree in trees for word in tree.words if word)
    return tuple(
        sorted(counts, key=lambda word: (-counts[word], word))[
            : vocabulary_size - RESERVED
        ]
    )


def encode_trees(trees: Sequence[Tree], words: Sequence[str]) -> Tensor:
    """WORD, LEFT, RIGHT and the class of each node, (n, nodes, 4) int64, padded with
    `PADDING`, 0, 0, `UNLABELLED`.
    """
    numbers = {"": PADDING} | {
        word: number for number, word in enumerate(words, start=RESERVED)
    }
    tables = [
        [
            (numbers.get(word, UNKNOWN), *below, SENTIMENTS[label])
            for word, *below, label in zip(*tree, strict=True)
        ]
        for tree in trees
    ]
    nodes = pad_sequence(list(map(torch.tensor, tables)), batch_first=True)
    nodes[..., LABEL].masked_fill_(
        (nodes[..., WORD] == PADDING) & (nodes[..., LEFT] == 0), UNLABELLED
    )
    return nodes
