"""Translating sentences with a trained network: beam search for the most probable translation."""

from collections.abc import Callable

import torch
from torch import Tensor

from softmax_temperature.params.focal import BeamSearch
from softmax_temperature.training.translation.network import TranslationTransformer
from softmax_temperature.training.translation.sentences import END, PADDING, START, Ragged

Step = Callable[[Tensor, Tensor], Tensor]
"""Prefixes (r, t), each from START on, and (r,) which sentence each translates, to logits (r, vocabulary)."""


def translate(
    network: TranslationTransformer, sources: Ragged, search: BeamSearch, *, temperature: float, device: str
) -> list[list[int]]:
    """Translate sentences in evaluation mode, in float32; `temperature` divides the logits.

    Returns the tokens of each translation, in the order of the sentences, without END.
    """
    network.eval()
    order = sources.lengths.argsort(stable=True)
    found: list[list[int]] = []
    for rows in order.split(search.sentences):
        step = _steps(network, sources.padded(rows).to(device))
        limits = sources.lengths[rows].to(device) + search.extra_length
        options = {"temperature": temperature, "length_penalty": search.length_penalty}
        found += beam_search(step, limits, beam=search.beam, **options)
    return [found[row] for row in order.argsort().tolist()]


@torch.no_grad()
def _steps(network: TranslationTransformer, sources: Tensor) -> Step:
    """The next token's logits. Prefixes are read anew each time: simple, and no slower for short sentences."""
    memory, padding = network.encode(sources), sources == PADDING

    def step(prefixes: Tensor, sentences: Tensor) -> Tensor:
        features = network.decode(prefixes, memory[sentences], padding[sentences])
        logits: Tensor = network.classifier(features[:, -1])
        return logits

    return step


@torch.no_grad()
def beam_search(
    step: Step, limits: Tensor, *, beam: int, temperature: float = 1.0, length_penalty: float = 0.0
) -> list[list[int]]:
    """Translate sentences side by side, keeping the `beam` most probable prefixes of each.

    A translation's score is its log-probability over ((5 + length) / 6)^length_penalty (Wu et al. 2016, as Vaswani et
    al. have it), where END counts. After each token every prefix may end; the search for a sentence is over when no
    prefix can score more than the best translation that has ended. `limits` (n,) int64, on the model's device, are the
    most tokens of each translation, END included. Returns the best one of each sentence, without START and END.
    """
    found: list[list[int]] = [[] for _ in limits]
    best = torch.full((len(limits),), -torch.inf, device=limits.device)
    sentences = torch.arange(len(limits), device=limits.device)  # Those whose search goes on.
    prefixes = torch.full((len(limits), 1, 1), START, device=limits.device)
    scores = torch.zeros(len(limits), 1, device=limits.device)
    never_on = torch.tensor([PADDING, START, END], device=limits.device)
    length = 0
    while len(sentences):
        length += 1
        width = prefixes.shape[1]
        logits = step(prefixes.flatten(0, 1), sentences.repeat_interleave(width))
        log_probs = torch.log_softmax(logits.float() / temperature, dim=1).unflatten(0, (-1, width))
        totals = scores[:, :, None] + log_probs  # (sentences, prefixes, vocabulary)
        ended, which = (totals[:, :, END] / ((5 + length) / 6) ** length_penalty).max(dim=1)
        better = (ended > best[sentences]).nonzero().squeeze(1)
        best[sentences[better]] = ended[better]
        winners = prefixes[better, which[better], 1:].tolist()
        for sentence, tokens in zip(sentences[better].tolist(), winners, strict=True):
            found[sentence] = tokens
        # The best prefixes with one more token, best first.
        going_on = totals.index_fill(2, never_on, -torch.inf).flatten(1)
        scores, chosen = going_on.topk(min(beam, going_on.shape[1]), dim=1)
        kept = prefixes.take_along_dim((chosen // totals.shape[2])[:, :, None], dim=1)
        prefixes = torch.cat([kept, (chosen % totals.shape[2])[:, :, None]], dim=2)
        # Scores only fall and penalties only grow, so no prefix can end above this.
        bound = scores[:, 0] / ((5 + limits[sentences]) / 6) ** length_penalty
        on = (bound > best[sentences]) & (limits[sentences] > length)
        sentences, prefixes, scores = sentences[on], prefixes[on], scores[on]
    return found
