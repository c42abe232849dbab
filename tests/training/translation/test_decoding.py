"""Translating with a network: the search's scores are those of the network as it was trained."""

from __future__ import annotations

from collections.abc import Callable

import torch

from softmax_temperature.params.focal import BeamSearch
from softmax_temperature.training.translation.network import TranslationTransformer
from softmax_temperature.training.translation.search import beam_search, translate
from softmax_temperature.training.translation.sentences import PADDING, Ragged, SentencePairs

Make = Callable[..., TranslationTransformer]
# An untrained network would say nothing at all, were long translations not favoured.
SEARCH = BeamSearch(beam=3, length_penalty=4.0, extra_length=2, sentences=64)


def test_translations_are_those_of_the_teacher_forced_network(make: Make, pairs: SentencePairs) -> None:
    network = make(seed=3).eval()
    found = translate(network, pairs.sources, SEARCH, temperature=1.5, device="cpu")

    @torch.no_grad()
    def step(prefixes: torch.Tensor, sentences: torch.Tensor) -> torch.Tensor:
        """The last logits of each prefix, as training would have them, one at a time."""
        rows = []
        for prefix, sentence in zip(prefixes, sentences, strict=True):
            source = pairs.sources.padded(sentence[None])[0]
            inputs = torch.full((1, 2, max(len(source), len(prefix))), PADDING)
            inputs[0, 0, : len(source)], inputs[0, 1, : len(prefix)] = source, prefix
            rows.append(network(inputs)[-1])
        return torch.stack(rows)

    limits = pairs.sources.lengths + SEARCH.extra_length
    assert found == beam_search(step, limits, beam=3, temperature=1.5, length_penalty=4.0)
    assert all(found)


def test_the_order_and_size_of_batches_change_nothing(make: Make, pairs: SentencePairs) -> None:
    network = make(seed=3)
    found = translate(network, pairs.sources, SEARCH, temperature=1.0, device="cpu")
    small = translate(network, pairs.sources, SEARCH.model_copy(update={"sentences": 2}), temperature=1.0, device="cpu")
    rows = pairs.sources.values.tensor_split(pairs.sources.ends[:-1])
    backwards = Ragged.of([row.tolist() for row in reversed(rows)])
    assert all(found)
    assert small == found
    assert translate(network, backwards, SEARCH, temperature=1.0, device="cpu") == found[::-1]
