"""Sentence pairs in the training loop: rows of tokens of different lengths, in batches
of similar length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Self

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from softmax_temperature.data.splits import SplitName
from softmax_temperature.losses import Objective
from softmax_temperature.networks.layers import upload
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.errors import InputError
from softmax_temperature.training.samples import HostSamples

# What follows the last token of a sentence, begins a translation, ends every sentence,
# and replaces each character that no training sentence has.
PADDING, START, END, UNKNOWN = range(4)


@dataclass(frozen=True)
class Ragged:
    """n rows of numbers, one behind the other: values (total,) int32, and ends (n,)
    int64 of each row.
    """

    values: Tensor
    ends: Tensor

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Ragged:
        """These rows, on the CPU."""
        ends = torch.tensor(list(accumulate(map(len, rows))), dtype=torch.int64)
        return cls(
            torch.tensor(list(chain.from_iterable(rows)), dtype=torch.int32), ends
        )

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def lengths(self) -> Tensor:
        """(n,) int64."""
        return self.ends.diff(prepend=self.ends.new_zeros(1))

    def kept(self, rows: Tensor) -> Ragged:
        """The rows for which (n,) is true."""
        lengths = self.lengths
        return Ragged(
            self.values[rows.repeat_interleave(lengths)], lengths[rows].cumsum(0)
        )

    def padded(self, rows: Tensor, *, length: int | None = None) -> Tensor:
        """The rows (b,) as a table (b, length) int64 with PADDING on the right; None
        for the longest one's length.
        """
        lengths = self.lengths[rows, None]
        columns = torch.arange(
            int(lengths.max()) if length is None else length, device=rows.device
        )
        positions = (self.ends[rows, None] - lengths + columns).clamp(
            max=len(self.values) - 1
        )
        return torch.where(columns < lengths, self.values[positions].long(), PADDING)


@dataclass(frozen=True)
class SentencePairs:
    """n sentences and their n translations, as `Vocabulary.encode` returns them: each
    ends with END.
    """

    sources: Ragged
    targets: Ragged
    split: SplitName

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def lengths(self) -> Tensor:
        """(n,) int64, of the longer side of each pair."""
        return torch.maximum(self.sources.lengths, self.targets.lengths)

    def up_to(self, length: int) -> SentencePairs:
        """The pairs neither side of which has more tokens than this; an InputError if
        there is none.
        """
        if not (kept := self.lengths <= length).any():
            what = f"{length}, no training pair is so short"
            raise InputError(
                what,
                where="focal.translation.longest",
                remedy="Raise it, or the vocabulary.",
            )
        return SentencePairs(
            self.sources.kept(kept), self.targets.kept(kept), self.split
        )

    def teacher_forced(self, rows: Tensor) -> Tensor:
        """Some pairs as the network takes them, (b, 2, length): source, and START and
        target without END.
        """
        length = int(self.lengths[rows].max())
        sources, targets = (
            side.padded(rows, length=length) for side in (self.sources, self.targets)
        )
        shifted = torch.cat(
            [torch.full_like(targets[:, :1], START), targets[:, :-1]], dim=1
        )
        return torch.stack(
            [sources, shifted.masked_fill(targets == PADDING, PADDING)], dim=1
        )


# Deviation: Vaswani et al. batch pairs "by approximate sequence length", about 25,000
# tokens of each language. Here the pairs of a batch are chosen once, as in fairseq:
# neighbours in the order of length, those of equal length in an order drawn at random.
# The order of the batches is new each epoch. Padding counts as tokens.


@dataclass(frozen=True)
class LengthBatches(HostSamples):
    """Batches of pairs of similar length, each one sample: their numbers, target tokens
    as labels, and rows.
    """

    pairs: SentencePairs
    batches: list[Tensor]

    @classmethod
    def of(cls, pairs: SentencePairs, *, tokens: int, seed: int) -> LengthBatches:
        """Batches of at most `tokens` tokens of each language, padding included, or of
        one pair that is longer.

        The seed orders pairs of equal length.
        """
        shuffled = torch.randperm(
            len(pairs), generator=torch.Generator().manual_seed(seed)
        )
        lengths = pairs.lengths
        order = shuffled[lengths[shuffled].argsort(stable=True)]
        rows: list[list[int]] = [[]]
        for row, length in zip(order.tolist(), lengths[order].tolist(), strict=True):
            if rows[-1] and (len(rows[-1]) + 1) * length > tokens:
                rows.append([])
            rows[-1].append(row)
        batches = [torch.tensor(some) for some in rows]
        tables = map(pairs.targets.padded, batches)
        labels = pad_sequence(
            [table[table != PADDING] for table in tables],
            batch_first=True,
            padding_value=PADDING,
        )
        return cls(torch.arange(len(batches)), labels, pairs.split, pairs, batches)

    def to(self, device: str) -> Self:  # noqa: ARG002
        """The same: how many tokens a batch has decides what is computed, labels
        included.
        """
        return self

    def check(self, recipe: Recipe) -> None:
        """Refuse a recipe that is for images, or that batches the batches."""
        super().check(recipe)
        if recipe.batch_size != 1:
            raise ValueError(
                f"recipe must take one batch of sentences at a time, got {recipe.batch_size=}"
            )

    def prepare(self, inputs: Tensor, recipe: Recipe) -> Tensor:  # noqa: ARG002
        """The batch (pairs, 2, length) with the number in `inputs` (1,), as
        `SentencePairs.teacher_forced` returns.
        """
        return self.pairs.teacher_forced(self.batches[int(inputs)])


def per_token(objective: Objective) -> Objective:
    """The mean loss over the tokens of a batch, with labels as `LengthBatches` has
    them; padding has none.
    """

    def loss(logits: Tensor, labels: Tensor, position: float) -> Tensor:
        [truth] = upload(logits.device, labels[labels != PADDING])
        return objective(logits, truth, position)

    return loss
