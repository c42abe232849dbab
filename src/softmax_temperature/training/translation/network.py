"""The encoder-decoder Transformer (Vaswani et al. 2017), in torch's own modules, and
beam search with it.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from softmax_temperature.networks.layers import drawn_from, upload
from softmax_temperature.params.focal import BeamSearch, Transformer
from softmax_temperature.training.translation.sentences import (
    END,
    PADDING,
    START,
    Ragged,
)

# Deviation: torch's layers drop out attention weights and the inner units of the
# feed-forward layers too, not the outputs of sublayers and the embeddings alone.
# Vaswani et al. average the last five checkpoints; here the last weights are kept, so
# that what is evaluated is what the loss trained.


class TranslationTransformer(nn.Module):
    """Encoder and decoder with sinusoidal positions; both embeddings and the last layer
    share one matrix.
    """

    def __init__(self, vocabulary: int, sizes: Transformer) -> None:
        super().__init__()
        width, heads, layers, dropout = (
            sizes.width,
            sizes.heads,
            sizes.layers,
            sizes.dropout,
        )
        self.embedding = nn.Embedding(vocabulary, width)
        self.classifier = nn.Linear(width, vocabulary, bias=False)
        self.classifier.weight = self.embedding.weight
        self.dropout = nn.Dropout(dropout)
        shape: dict[str, Any] = {
            "dim_feedforward": sizes.inner,
            "dropout": dropout,
            "batch_first": True,
        }
        encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(width, heads, **shape),
            layers,
            enable_nested_tensor=False,
        )
        decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(width, heads, **shape), layers
        )
        # Layers normalise their outputs, so nothing follows the last one;
        # nn.Transformer would normalise once more.
        self.transformer = nn.Transformer(
            width,
            heads,
            custom_encoder=encoder,
            custom_decoder=decoder,
            batch_first=True,
        )
        nn.init.normal_(self.embedding.weight, std=width**-0.5)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits (tokens, vocabulary) of what follows each decoder input but padding,
        one sentence behind the other.

        `inputs` (pairs, 2, length) are as `SentencePairs.teacher_forced` returns them.
        """
        read = (inputs[:, 1] != PADDING).flatten().nonzero().squeeze(1)
        inputs, read = upload(self.embedding.weight.device, inputs, read)
        sources, targets = inputs.unbind(1)
        features = self.decode(targets, self.encode(sources), sources == PADDING)
        logits: Tensor = self.classifier(features.flatten(0, 1)[read])
        return logits

    def encode(self, sources: Tensor) -> Tensor:
        """What the decoder attends to: sources (b, s), padded on the right, to (b, s,
        width).
        """
        memory: Tensor = self.transformer.encoder(
            self._embedded(sources), src_key_padding_mask=sources == PADDING
        )
        return memory

    def decode(self, targets: Tensor, memory: Tensor, source_padding: Tensor) -> Tensor:
        """What the last layer makes logits of, (b, t, width), from decoder inputs (b,
        t), padded on the right.

        No position sees those after it. `source_padding` (b, s) is true where the
        source is padding.
        """
        later = torch.ones(
            targets.shape[1], targets.shape[1], dtype=torch.bool, device=targets.device
        ).triu(1)
        features: Tensor = self.transformer.decoder(
            self._embedded(targets),
            memory,
            tgt_mask=later,
            memory_key_padding_mask=source_padding,
            tgt_is_causal=True,
        )
        return features

    def _embedded(self, tokens: Tensor) -> Tensor:
        width = self.embedding.embedding_dim
        codes = positions(tokens.shape[1], width, tokens.device).to(
            self.embedding.weight.dtype
        )
        embedded: Tensor = self.dropout(
            self.embedding(tokens) * math.sqrt(width) + codes
        )
        return embedded


def positions(length: int, width: int, device: torch.device) -> Tensor:
    """Sines and cosines of wavelengths 2π to 10,000 · 2π (Vaswani et al., section 3.5):
    (length, width) float32.
    """
    rates = torch.exp(
        torch.arange(0, width, 2, device=device) * (-math.log(10_000.0) / width)
    )
    angles = torch.arange(length, device=device)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)


def make_network(
    vocabulary: int, sizes: Transformer, *, seed: int
) -> TranslationTransformer:
    """A network with random weights that depend on the seed alone."""
    with drawn_from(seed):
        return TranslationTransformer(vocabulary, sizes)


Step = Callable[[Tensor, Tensor], Tensor]
"""Prefixes (r, t), each from START on, and (r,) which sentence each translates, to
logits (r, vocabulary).
"""


def translate(
    network: TranslationTransformer,
    sources: Ragged,
    search: BeamSearch,
    *,
    temperature: float,
    device: str,
) -> list[list[int]]:
    """The tokens of each translation, without END, in evaluation mode and float32;
    `temperature` divides the logits.
    """
    network.eval()
    order = sources.lengths.argsort(stable=True)
    found: list[list[int]] = []
    options = {"temperature": temperature, "length_penalty": search.length_penalty}
    for rows in order.split(search.sentences):
        limits = sources.lengths[rows].to(device) + search.extra_length
        found += beam_search(
            _steps(network, sources.padded(rows).to(device)),
            limits,
            beam=search.beam,
            **options,
        )
    return [found[row] for row in order.argsort().tolist()]


@torch.no_grad()
def _steps(network: TranslationTransformer, sources: Tensor) -> Step:
    """The next token's logits. Prefixes are read anew each time: simple, and no slower
    for short sentences.
    """
    memory, padding = network.encode(sources), sources == PADDING

    def step(prefixes: Tensor, sentences: Tensor) -> Tensor:
        features = network.decode(prefixes, memory[sentences], padding[sentences])
        logits: Tensor = network.classifier(features[:, -1])
        return logits

    return step


@torch.no_grad()
def beam_search(
    step: Step,
    limits: Tensor,
    *,
    beam: int,
    temperature: float = 1.0,
    length_penalty: float = 0.0,
) -> list[list[int]]:
    """Translate sentences side by side, keeping the `beam` most probable prefixes of
    each.

    A translation's score is its log-probability over ((5 + length) / 6)^length_penalty
    (Wu et al. 2016, as Vaswani et al. have it), where END counts. After each token
    every prefix may end; the search for a sentence is over when no prefix can score
    more than the best translation that has ended. `limits` (n,) int64, on the model's
    device, are the most tokens of each translation, END included. Returns the best one
    of each sentence, without START and END.
    """
    found: list[list[int]] = [[] for _ in limits]
    best = torch.full((len(limits),), -torch.inf, device=limits.device)
    sentences = torch.arange(
        len(limits), device=limits.device
    )  # Those whose search goes on.
    prefixes = torch.full((len(limits), 1, 1), START, device=limits.device)
    scores = torch.zeros(len(limits), 1, device=limits.device)
    never_on = torch.tensor([PADDING, START, END], device=limits.device)
    while len(sentences):
        _, width, length = prefixes.shape
        logits = step(prefixes.flatten(0, 1), sentences.repeat_interleave(width))
        log_probs = torch.log_softmax(logits.float() / temperature, dim=1).unflatten(
            0, (-1, width)
        )
        totals = scores[:, :, None] + log_probs  # (sentences, prefixes, vocabulary)
        ended, which = (totals[:, :, END] / ((5 + length) / 6) ** length_penalty).max(
            dim=1
        )
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
