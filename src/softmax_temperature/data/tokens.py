"""Texts as rows of token IDs; words are counted only in the training part."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import Punctuation, WhitespaceSplit
from tokenizers.pre_tokenizers import Sequence as Steps
from tokenizers.trainers import WordLevelTrainer
from torch import Tensor

from softmax_temperature.data.splits import Part

PADDING = 0
"""The ID that fills a row after the last token of a text."""
UNKNOWN = 1
"""The ID of every word that is not in the vocabulary."""
RESERVED = 2
"""The ID of the first word of the vocabulary."""

Keep = Literal["start", "end"]
"""The part of an overlong text that is kept: its start or its end."""

# No token of a text can equal these two words, because letters and punctuation marks
# never share a token. The words are not registered as special tokens of the library,
# because the library also looks for special tokens in texts: the ID of a reserved word
# would then replace a `<padding>` that a text contains.
_PADDING_WORD = "<padding>"
_UNKNOWN_WORD = "<unknown>"

# Deviation: our tokens are runs of letters and digits, in lower case, or single
# punctuation marks. Markup is not removed: the line breaks of IMDB's reviews, `<br />`,
# are four tokens each. Our copies of the papers temperature_check and focal do not say
# how texts are tokenised, how large the vocabulary is, or where a long text is cut. The
# released code of the focal paper skips punctuation marks, reads the last 1,000 words,
# and counts the words of all documents, including the test documents.


class Tokeniser:
    """Turns texts into rows of `length` token IDs, padded or cut.

    `words[k]` has the ID k + RESERVED; any other word has the ID `UNKNOWN`.

    Args:
        words: The vocabulary, the most frequent word first.
        length: The number of tokens of a row.
        keep: Whether the "start" or the "end" of an overlong text is kept.
    """

    def __init__(self, words: Iterable[str], *, length: int, keep: Keep) -> None:
        self.words = tuple(words)
        vocabulary = (_PADDING_WORD, _UNKNOWN_WORD, *self.words)
        numbers = {word: number for number, word in enumerate(vocabulary)}
        self._tokenizer = _splitter(WordLevel(numbers, unk_token=_UNKNOWN_WORD))
        cut_side = "right" if keep == "start" else "left"
        self._tokenizer.enable_truncation(length, direction=cut_side)
        self._tokenizer.enable_padding(
            length=length, pad_id=PADDING, pad_token=_PADDING_WORD
        )

    @classmethod
    def fit(
        cls, part: Part, *, vocabulary_size: int, length: int, keep: Keep
    ) -> Tokeniser:
        """Make a tokeniser for the most frequent words of a training split.

        Args:
            part: The split; any but the training split raises LeakError.
            vocabulary_size: Number of distinct token IDs, including those of padding
                and of unknown words.
            length: The number of tokens of a row.
            keep: Whether the "start" or the "end" of an overlong text is kept.
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
        words = sorted(numbers, key=numbers.__getitem__)
        return cls(words, length=length, keep=keep)

    def encode(self, texts: Iterable[str]) -> Tensor:
        """Return the token IDs of `texts`, (n, length) int64, padded on the right.

        A text without tokens becomes one unknown word.
        """
        encodings = self._tokenizer.encode_batch_fast(
            list(texts), add_special_tokens=False
        )
        rows = [encoding.ids for encoding in encodings]
        tokens = torch.tensor(rows, dtype=torch.int64)
        is_empty = tokens[:, 0] == PADDING
        tokens[is_empty, 0] = UNKNOWN
        return tokens

    def encode_part(self, part: Part) -> Part:
        """Return `part` with its texts replaced by token IDs."""
        return replace(part, data=self.encode(part.data))


def _splitter(model: WordLevel) -> Tokenizer:
    """Make a tokenizer that lower-cases texts and splits at spaces and punctuation."""
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = Lowercase()
    tokenizer.pre_tokenizer = Steps([WhitespaceSplit(), Punctuation()])
    return tokenizer
