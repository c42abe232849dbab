"""Sentences as numbers: word pieces, learned only from training sentences."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tokenizers import Tokenizer
from tokenizers.decoders import Metaspace as JoinPieces
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import Metaspace, Punctuation, Sequence
from tokenizers.trainers import BpeTrainer

from softmax_temperature.data.splits import Part
from softmax_temperature.training.translation.sentences import (
    END,
    UNKNOWN,
    Ragged,
    SentencePairs,
)

# Names of the reserved IDs. No piece can equal one of these names, because pieces
# contain no space. The names are not registered as special tokens of the library,
# because the library also looks for special tokens in sentences: a reserved ID would
# then replace a name such as "< end >" in a sentence.
_RESERVED = ("< padding >", "< start >", "< end >", "< unknown >")

# Deviation: our sentences are split at spaces and punctuation marks before they are
# divided into pieces, so no piece extends over two words; a punctuation mark is a piece
# of its own, and a space belongs to the word that follows it. Vaswani et al. use 37,000
# pieces from byte-pair encoding, which the focal paper adopts; they do not say how
# sentences are split first.


class Vocabulary:
    """Word pieces from byte-pair encoding, the same for both languages.

    The first four IDs are reserved; `_RESERVED` holds their names.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    @classmethod
    def fit(cls, part: Part, *, size: int) -> Vocabulary:
        """Learn the vocabulary of a training split; raise LeakError for another split.

        The order of the sentences does not matter. `size` is the largest size of the
        vocabulary, including the four reserved IDs; every character of the split has an
        ID, even if the vocabulary then exceeds `size`.
        """
        counter = _splitter(BPE())
        trainer = BpeTrainer(
            vocab_size=size - len(_RESERVED), special_tokens=[], show_progress=False
        )
        counter.train_from_iterator(part.for_vocabulary(), trainer)
        model = json.loads(counter.to_str())["model"]
        learned = sorted(model["vocab"], key=model["vocab"].__getitem__)
        numbers = {piece: number for number, piece in enumerate([*_RESERVED, *learned])}
        merges = [(left, right) for left, right in model["merges"]]
        return cls(_splitter(BPE(numbers, merges, unk_token=_RESERVED[UNKNOWN])))

    @property
    def size(self) -> int:
        """The number of pieces, including reserved pieces."""
        return int(self._tokenizer.get_vocab_size())

    def encode(self, sentences: Iterable[str]) -> Ragged:
        """Encode each sentence as the IDs of its pieces, followed by END."""
        encodings = self._tokenizer.encode_batch_fast(
            list(sentences), add_special_tokens=False
        )
        return Ragged.of([[*encoding.ids, END] for encoding in encodings])

    def encode_part(self, part: Part) -> SentencePairs:
        """Encode the sentences and translations of one split."""
        sources, targets = part.for_evaluation()
        return SentencePairs(self.encode(sources), self.encode(targets), part.split)

    def decode(self, rows: Iterable[Iterable[int]]) -> list[str]:
        """Decode rows of IDs to sentences; reserved IDs are dropped."""
        plain = [[number for number in row if number >= len(_RESERVED)] for row in rows]
        texts: list[str] = self._tokenizer.decode_batch(
            plain, skip_special_tokens=False
        )
        return texts

    def to_json(self) -> str:
        """Return the vocabulary in the form that `tokenizers.Tokenizer.from_str` reads.

        Equal vocabularies give equal bytes.
        """
        text: str = self._tokenizer.to_str(pretty=True)
        return text + "\n"


def _splitter(model: BPE) -> Tokenizer:
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = Sequence([Metaspace(), Punctuation()])
    tokenizer.decoder = JoinPieces()
    return tokenizer
