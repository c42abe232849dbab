"""Texts as numbers: words and punctuation marks, counted in the training texts and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Punctuation, Sequence, WhitespaceSplit
from tokenizers.trainers import WordLevelTrainer
from torch import Tensor

from softmax_temperature.data.splits import Part

# What follows the last token of a text, what stands for every word that is not in the vocabulary, and the first word.
PADDING, UNKNOWN, RESERVED = range(3)

Keep = Literal["start", "end"]

# Deviation: the texts at hand of the papers temperature_check and focal do not say how words are told apart, how many
# of them have a number, or where a long text is cut. Here a token is a run of letters and digits, in lower case, or a
# single punctuation mark. Markup is not removed: the line breaks of IMDB's reviews, `<br />`, are four tokens each. The
# released code of the focal paper passes over punctuation marks, reads the last 1,000 words, and counts the words of
# all documents, those to be tested on included.


class Tokeniser:
    """Turns texts into rows of token numbers; the word `words[number - 2]` of the vocabulary has that number.

    A text keeps `length` tokens of its start or end (`keep`), or is padded on the right. Other words, and a text
    without any token, are `UNKNOWN`.
    """

    def __init__(self, words: Iterable[str], *, length: int, keep: Keep) -> None:
        self.words = tuple(words)
        # No text can hold the first two: letters and punctuation marks are never in one token. They are not registered
        # as special tokens of the library, which would find them in texts, too.
        numbers = {word: number for number, word in enumerate(("<padding>", "<unknown>", *self.words))}
        self._tokenizer = _splitter(WordLevel(numbers, unk_token="<unknown>"))  # noqa: S106
        self._tokenizer.enable_truncation(length, direction="right" if keep == "start" else "left")
        self._tokenizer.enable_padding(length=length, pad_id=PADDING, pad_token="<padding>")  # noqa: S106

    @classmethod
    def fit(cls, part: Part, *, vocabulary_size: int, length: int, keep: Keep) -> Tokeniser:
        """One for the most frequent words of a training split, or LeakError; `vocabulary_size` counts all numbers."""
        counter = _splitter(WordLevel())
        trainer = WordLevelTrainer(
            vocab_size=vocabulary_size - RESERVED, min_frequency=1, special_tokens=[], show_progress=False
        )
        counter.train_from_iterator(part.for_vocabulary(), trainer)
        numbers = counter.get_vocab()
        return cls(sorted(numbers, key=numbers.__getitem__), length=length, keep=keep)

    def encode(self, texts: Iterable[str]) -> Tensor:
        """The tokens of some texts: (n, length) int64, padded on the right with `PADDING`."""
        encodings = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        tokens = torch.tensor([encoding.ids for encoding in encodings], dtype=torch.int64)
        tokens[tokens[:, 0] == PADDING, 0] = UNKNOWN
        return tokens

    def encode_part(self, part: Part) -> Part:
        """A split as tokens, with its place in the split ledger."""
        return replace(part, data=self.encode(part.data))


def _splitter(model: WordLevel) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Sequence([WhitespaceSplit(), Punctuation()])
    return tokenizer
