"""Translating sentences with a trained network."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from softmax_temperature.training.translation.search import beam_search
from softmax_temperature.training.translation.vocabulary import PADDING

if TYPE_CHECKING:
    from softmax_temperature.training.translation.network import TranslationTransformer
    from softmax_temperature.training.translation.ragged import Ragged
    from softmax_temperature.training.translation.search import Step


class Search(NamedTuple):
    """How translations are looked for.

    Attributes:
        beam: prefixes that are kept of each sentence.
        length_penalty: as for `beam_search`.
        extra_length: tokens that a translation may have more than its source.
        sentences: that are translated side by side.
    """

    beam: int
    length_penalty: float
    extra_length: int
    sentences: int


def translate(
    network: TranslationTransformer, sources: Ragged, search: Search, *, temperature: float, device: str
) -> list[list[int]]:
    """Translate sentences in evaluation mode, in float32.

    Args:
        network: on the device.
        sources: as `Vocabulary.encode` gives them.
        search: how.
        temperature: divides the logits.
        device: of the network.

    Returns:
        The tokens of each translation, in the order of the sentences, without END.
    """
    network.eval()
    order = sources.lengths.argsort(stable=True)
    found: list[list[int]] = []
    for rows in order.split(search.sentences):
        tokens = sources.padded(rows, padding=PADDING).to(device)
        limits = sources.lengths[rows].to(device) + search.extra_length
        found += beam_search(
            _steps(network, tokens),
            limits,
            beam=search.beam,
            temperature=temperature,
            length_penalty=search.length_penalty,
        )
    return [found[place] for place in order.argsort().tolist()]


@torch.no_grad()
def _steps(network: TranslationTransformer, sources: Tensor) -> Step:
    """The next token's logits. Prefixes are read anew each time: simple, and no slower for short sentences."""
    memory, padding = network.encode(sources), sources == PADDING

    def step(prefixes: Tensor, sentences: Tensor) -> Tensor:
        features = network.decode(prefixes, memory[sentences], padding[sentences])
        logits: Tensor = network.classifier(features[:, -1])
        return logits

    return step
