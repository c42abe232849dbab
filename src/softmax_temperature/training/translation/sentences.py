"""Sentence pairs for the training loop, in batches of similar length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import Self

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from softmax_temperature.data.splits import SplitName
from softmax_temperature.losses.base import Loss
from softmax_temperature.networks.layers import upload
from softmax_temperature.params.recipe import Recipe
from softmax_temperature.runner.errors import InputError
from softmax_temperature.training.samples import HostSamples

PADDING = 0  # Follows the last token of a sentence.
START = 1  # Begins a translation.
END = 2  # Ends every sentence.
UNKNOWN = 3  # Replaces each character that no training sentence contains.


@dataclass(frozen=True)
class Ragged:
    """n rows of numbers, concatenated.

    The values are an int32 tensor of shape (total,), and the ends of the rows are an
    int64 tensor of shape (n,).
    """

    values: Tensor
    ends: Tensor

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> Ragged:
        """Concatenate rows, on the CPU."""
        ends = torch.tensor(list(accumulate(map(len, rows))), dtype=torch.int64)
        values = torch.tensor(list(chain.from_iterable(rows)), dtype=torch.int32)
        return cls(values, ends)

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def lengths(self) -> Tensor:
        """The number of values in each row, (n,) int64."""
        return self.ends.diff(prepend=self.ends.new_zeros(1))

    def kept(self, rows: Tensor) -> Ragged:
        """Return only the rows for which the mask `rows`, (n,), is true."""
        lengths = self.lengths
        return Ragged(
            self.values[rows.repeat_interleave(lengths)], lengths[rows].cumsum(0)
        )

    def padded(self, rows: Tensor, *, length: int | None = None) -> Tensor:
        """Return `rows`, (b,), as a table (b, length) int64, padded on the right.

        If `length` is None, the table is as long as the longest row.
        """
        lengths = self.lengths[rows, None]
        if length is None:
            length = int(lengths.max())
        columns = torch.arange(length, device=rows.device)
        positions = self.ends[rows, None] - lengths + columns
        values = self.values[positions.clamp(max=len(self.values) - 1)].long()
        return torch.where(columns < lengths, values, PADDING)


@dataclass(frozen=True)
class SentencePairs:
    """Encoded sentences with their translations; every sentence ends with END."""

    sources: Ragged
    targets: Ragged
    split: SplitName

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def lengths(self) -> Tensor:
        """The number of tokens on the longer side of each pair, (n,) int64."""
        return torch.maximum(self.sources.lengths, self.targets.lengths)

    def up_to(self, length: int) -> SentencePairs:
        """Return only the pairs with at most `length` tokens on each side.

        Raises InputError if there are no such pairs.
        """
        is_short = self.lengths <= length
        if not is_short.any():
            what = f"{length}, but every training pair is longer"
            where = "focal.translation.longest"
            raise InputError(what, where=where, remedy="Raise it, or the vocabulary.")
        sources = self.sources.kept(is_short)
        targets = self.targets.kept(is_short)
        return SentencePairs(sources, targets, self.split)

    def teacher_forced(self, rows: Tensor) -> Tensor:
        """Make the network's inputs for the pairs in `rows`, (b, 2, length).

        The inputs for a pair are the source, and START followed by the target without
        END.
        """
        length = int(self.lengths[rows].max())
        sources = self.sources.padded(rows, length=length)
        targets = self.targets.padded(rows, length=length)
        start = torch.full_like(targets[:, :1], START)
        shifted = torch.cat([start, targets[:, :-1]], dim=1)
        decoder_inputs = shifted.masked_fill(targets == PADDING, PADDING)
        return torch.stack([sources, decoder_inputs], dim=1)


# Deviation: as in fairseq, we form the batches once, before training: we sort the pairs
# by length, with pairs of equal length in random order, and cut the sorted list into
# batches. The order of the batches is new each epoch, and padding counts towards the
# number of tokens in a batch. Vaswani et al. batch pairs "by approximate sequence
# length", with about 25,000 tokens of each language in a batch.


@dataclass(frozen=True)
class LengthBatches(HostSamples):
    """Batches of pairs of similar length; each batch is one sample.

    The inputs are the indices of the batches, the labels are the target tokens of each
    batch, and `batches` holds the row indices of each batch's pairs.
    """

    pairs: SentencePairs
    batches: list[Tensor]

    @classmethod
    def of(cls, pairs: SentencePairs, *, tokens: int, seed: int) -> LengthBatches:
        """Make batches of at most `tokens` tokens of each language, padding included.

        A pair with more tokens forms a batch of its own. The seed determines the order
        of pairs of equal length.
        """
        generator = torch.Generator().manual_seed(seed)
        shuffled = torch.randperm(len(pairs), generator=generator)
        lengths = pairs.lengths
        order = shuffled[lengths[shuffled].argsort(stable=True)]
        rows: list[list[int]] = [[]]
        for row, length in zip(order.tolist(), lengths[order].tolist(), strict=True):
            if rows[-1] and (len(rows[-1]) + 1) * length > tokens:
                rows.append([])
            rows[-1].append(row)
        batches = [torch.tensor(batch) for batch in rows]
        targets = []
        for batch in batches:
            table = pairs.targets.padded(batch)
            targets.append(table[table != PADDING])
        labels = pad_sequence(targets, batch_first=True, padding_value=PADDING)
        return cls(torch.arange(len(batches)), labels, pairs.split, pairs, batches)

    def to(self, device: str) -> Self:  # noqa: ARG002
        """Leave the batches on the CPU, because token counts set the tensor shapes."""
        return self

    def check(self, recipe: Recipe) -> None:
        """Raise ValueError if `recipe` is for images, or joins several batches."""
        super().check(recipe)
        if recipe.batch_size != 1:
            raise ValueError(
                "recipe must take one batch of sentences at a time, "
                f"got {recipe.batch_size=}"
            )

    def prepare(self, inputs: Tensor, recipe: Recipe) -> Tensor:  # noqa: ARG002
        """Return the batch (pairs, 2, length) whose index is in `inputs` (1,).

        `SentencePairs.teacher_forced` describes the form of a batch.
        """
        return self.pairs.teacher_forced(self.batches[int(inputs)])


class PerToken(Loss):
    """The mean loss over the tokens of a batch of `LengthBatches`, without padding."""

    def __init__(self, loss: Loss) -> None:
        super().__init__()
        self.loss = loss

    def forward(
        self, logits: Tensor, labels: Tensor, epoch: float | None = None
    ) -> Tensor:
        """The loss of a batch with logits (tokens, vocabulary) and padded labels."""
        [truth] = upload(logits.device, labels[labels != PADDING])
        mean: Tensor = self.loss(logits, truth, epoch)
        return mean

    def tempered(self, logits: Tensor) -> Tensor:
        """The logits whose softmax the loss evaluates."""
        return self.loss.tempered(logits)
