"""Sentence pairs in the training loop, in batches of like length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from softmax_temperature.metrics.checks import check_count
from softmax_temperature.training.samples import equal_distances
from softmax_temperature.training.translation.vocabulary import PADDING, START

if TYPE_CHECKING:
    from softmax_temperature.params.recipe import Recipe
    from softmax_temperature.training.translation.ragged import Ragged


@dataclass(frozen=True)
class SentencePairs:
    """Sentences and their translations, as `Vocabulary.encode` gives them: each ends with END.

    Attributes:
        sources: n rows.
        targets: n rows.
    """

    sources: Ragged
    targets: Ragged

    def __post_init__(self) -> None:
        if len(self.sources) != len(self.targets):
            raise ValueError(f"targets must be as many as sources, {len(self.sources)}, got {len(self.targets)}")

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def lengths(self) -> Tensor:
        """(n,) int64, of the longer side of each pair."""
        return torch.maximum(self.sources.lengths, self.targets.lengths)

    def up_to(self, length: int) -> SentencePairs:
        """The pairs neither side of which has more tokens than this."""
        kept = self.lengths <= length
        return SentencePairs(self.sources.kept(kept), self.targets.kept(kept))

    def to(self, device: str) -> SentencePairs:
        """The same on another device."""
        return SentencePairs(self.sources.to(device), self.targets.to(device))

    def teacher_forced(self, rows: Tensor) -> Tensor:
        """Some pairs as `TranslationTransformer` takes them: (b, 2, length), source and decoder input.

        The decoder input is START, then the target without its END: at each place the network has read what stands
        before the token that it is to predict.
        """
        length = int(self.lengths[rows].max())
        sources, targets = (side.padded(rows, padding=PADDING, length=length) for side in (self.sources, self.targets))
        shifted = torch.cat([torch.full_like(targets[:, :1], START), targets[:, :-1]], dim=1)
        return torch.stack([sources, shifted.masked_fill(targets == PADDING, PADDING)], dim=1)


# Deviation: Vaswani et al. batch pairs "by approximate sequence length", about 25,000 tokens of each language. Here the
# pairs of a batch are chosen once, as in fairseq: neighbours in the order of length, those of equal length in an order
# drawn at random. The order of the batches is new each epoch. Padding counts as tokens.


class LengthBatches:
    """Sentence pairs in batches of like length: to the training loop, a sample is one such batch.

    Args:
        pairs: all of them.
        batches: the rows of each batch.
    """

    def __init__(self, pairs: SentencePairs, batches: list[Tensor]) -> None:
        self.pairs, self.batches = pairs, batches
        # The tokens that a batch is to predict, one sentence behind the other.
        tokens = [pairs.targets.padded(rows, padding=PADDING) for rows in batches]
        self._labels = torch.nn.utils.rnn.pad_sequence(
            [table[table != PADDING] for table in tokens], batch_first=True, padding_value=PADDING
        )

    @property
    def inputs(self) -> Tensor:
        """(n,) the numbers of the batches."""
        return torch.arange(len(self), device=self._labels.device)

    @property
    def labels(self) -> Tensor:
        """(n, most tokens of a batch) int64: the target tokens of each batch, without gaps, then PADDING."""
        return self._labels

    def __len__(self) -> int:
        return len(self.batches)

    def to(self, device: str) -> LengthBatches:
        """The same on another device."""
        return LengthBatches(self.pairs.to(device), [rows.to(device) for rows in self.batches])

    def sample(self, count: int | None) -> LengthBatches:
        """About `count` batches at equal distances, or all of them for None and when there are no more."""
        if count is None or count >= len(self):
            return self
        chosen = equal_distances(len(self), count, torch.device("cpu")).tolist()
        return LengthBatches(self.pairs, [self.batches[number] for number in chosen])

    def check(self, recipe: Recipe) -> None:
        """Refuse a recipe that does to pixels what cannot be done to sentences, or batches the batches.

        Raises:
            ValueError: it augments, normalises, or has another batch size than 1.
        """
        asked = {name: getattr(recipe, name) for name in ("crop_padding", "flip", "mean", "std")}
        if any(asked.values()):
            raise ValueError(f"recipe must neither augment nor normalise sentences, got {asked}")
        if recipe.batch_size != 1:
            raise ValueError(f"recipe must take one batch of sentences at a time, got {recipe.batch_size=}")

    def batch(self, rows: Tensor, generator: torch.Generator, recipe: Recipe) -> Tensor:
        """One batch (pairs, 2, length), as `SentencePairs.teacher_forced` returns it; nothing about it is random."""
        del generator
        return self.prepare(rows, recipe)

    def prepare(self, inputs: Tensor, recipe: Recipe) -> Tensor:
        """The batch with the number in `inputs` (1,)."""
        del recipe
        return self.pairs.teacher_forced(self.batches[int(inputs)])


def length_batches(pairs: SentencePairs, *, tokens: int, seed: int) -> LengthBatches:
    """Divide pairs into batches of like length.

    Args:
        pairs: at least one.
        tokens: of each language in a batch at most, padding included; a longer pair is a batch of its own.
        seed: orders the pairs of equal length.
    """
    check_count(tokens, "tokens", least=1)
    shuffled = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(seed))
    lengths = pairs.lengths
    order = shuffled[lengths[shuffled].argsort(stable=True)]
    batches: list[list[int]] = [[]]
    for row, length in zip(order.tolist(), lengths[order].tolist(), strict=True):
        if batches[-1] and (len(batches[-1]) + 1) * length > tokens:
            batches.append([])
        batches[-1].append(row)
    return LengthBatches(pairs, [torch.tensor(rows) for rows in batches])
