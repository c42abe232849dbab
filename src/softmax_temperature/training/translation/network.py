"""The encoder-decoder Transformer (Vaswani et al. 2017) and beam search with it."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from softmax_temperature.data.seeds import drawn_from
from softmax_temperature.networks.layers import upload
from softmax_temperature.params.focal import BeamSearch, Transformer
from softmax_temperature.training.translation.sentences import (
    END,
    PADDING,
    START,
    Ragged,
)

# Deviation: dropout also acts on attention weights and on the inner units of the
# feed-forward layers, because torch's layers apply it there; Vaswani et al. apply it
# only to the outputs of sublayers and the embeddings. We keep the weights of the epoch
# with the lowest validation NLL; Vaswani et al. average the last five checkpoints.


class TranslationTransformer(nn.Module):
    """An encoder and a decoder with sinusoidal positions.

    Both embeddings and the last layer share one matrix.
    """

    def __init__(self, vocabulary: int, sizes: Transformer) -> None:
        super().__init__()
        width = sizes.width
        self.embedding = nn.Embedding(vocabulary, width)
        self.classifier = nn.Linear(width, vocabulary, bias=False)
        self.classifier.weight = self.embedding.weight
        self.dropout = nn.Dropout(sizes.dropout)
        shape: dict[str, Any] = {
            "dim_feedforward": sizes.inner,
            "dropout": sizes.dropout,
            "batch_first": True,
        }
        encoder_layer = nn.TransformerEncoderLayer(width, sizes.heads, **shape)
        encoder = nn.TransformerEncoder(
            encoder_layer, sizes.layers, enable_nested_tensor=False
        )
        decoder_layer = nn.TransformerDecoderLayer(width, sizes.heads, **shape)
        decoder = nn.TransformerDecoder(decoder_layer, sizes.layers)
        # Each layer normalises its output, so no norm may follow the last layer.
        # nn.Transformer's own encoder and decoder would add one.
        self.transformer = nn.Transformer(
            width,
            sizes.heads,
            custom_encoder=encoder,
            custom_decoder=decoder,
            batch_first=True,
        )
        nn.init.normal_(self.embedding.weight, std=width**-0.5)

    def forward(self, inputs: Tensor) -> Tensor:
        """Compute logits (tokens, vocabulary) of the token after each decoder input.

        Positions of padding are left out, and the sentences' logits are concatenated.
        `inputs` (pairs, 2, length) come from `SentencePairs.teacher_forced`.
        """
        read = (inputs[:, 1] != PADDING).flatten().nonzero().squeeze(1)
        inputs, read = upload(self.embedding.weight.device, inputs, read)
        sources, targets = inputs.unbind(1)
        features = self.decode(targets, self.encode(sources), sources == PADDING)
        logits: Tensor = self.classifier(features.flatten(0, 1)[read])
        return logits

    def encode(self, sources: Tensor) -> Tensor:
        """Encode sources (b, s), padded on the right, as (b, s, width)."""
        memory: Tensor = self.transformer.encoder(
            self._embedded(sources), src_key_padding_mask=sources == PADDING
        )
        return memory

    def decode(self, targets: Tensor, memory: Tensor, source_padding: Tensor) -> Tensor:
        """Compute the last layer's inputs (b, t, width) from decoder inputs (b, t).

        Decoder inputs are padded on the right, and no position attends to later
        positions. `source_padding` (b, s) is true where the source is padding.
        """
        length = targets.shape[1]
        mask = torch.ones(length, length, dtype=torch.bool, device=targets.device)
        features: Tensor = self.transformer.decoder(
            self._embedded(targets),
            memory,
            tgt_mask=mask.triu(1),
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
    """Compute sines and cosines with wavelengths from 2π to 10,000 · 2π.

    Vaswani et al., section 3.5. The result is a float32 tensor of shape (length,
    width).
    """
    even = torch.arange(0, width, 2, device=device)
    rates = torch.exp(even * (-math.log(10_000.0) / width))
    angles = torch.arange(length, device=device)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)


def make_network(
    vocabulary: int, sizes: Transformer, *, seed: int
) -> TranslationTransformer:
    """Make a network with random weights that depend only on the seed."""
    with drawn_from(seed):
        return TranslationTransformer(vocabulary, sizes)


Step = Callable[[Tensor, Tensor], Tensor]
"""Maps prefixes to logits (r, vocabulary).

The arguments are the prefixes, (r, t) tokens that begin with START, and the indices of
the sentences that they translate, (r,).
"""


def translate(
    network: TranslationTransformer,
    sources: Ragged,
    search: BeamSearch,
    *,
    temperature: float,
    device: str,
) -> list[list[int]]:
    """Translate `sources`, and return the tokens of each translation, without END.

    The network computes in evaluation mode and float32; `temperature` divides the
    logits.
    """
    network.eval()
    order = sources.lengths.argsort(stable=True)
    by_length: list[list[int]] = []
    for rows in order.split(search.sentences):
        limits = sources.lengths[rows].to(device) + search.extra_length
        by_length += beam_search(
            _steps(network, sources.padded(rows).to(device)),
            limits,
            beam=search.beam,
            temperature=temperature,
            length_penalty=search.length_penalty,
        )
    return [by_length[row] for row in order.argsort().tolist()]


@torch.no_grad()
def _steps(network: TranslationTransformer, sources: Tensor) -> Step:
    """Make the function that maps prefixes to the logits of the next token.

    The function recomputes whole prefixes each time, which is simple and, for short
    sentences, not slower than a cache.
    """
    memory = network.encode(sources)
    padding = sources == PADDING

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
    """Find the best translation of each sentence, without START and END.

    Sentences are translated in parallel, and the `beam` most probable prefixes of each
    are kept. A translation's score is its log-probability divided by ((5 + length) /
    6)^length_penalty (Wu et al. 2016, in the form of Vaswani et al.), where the length
    includes END. After each token every prefix may end. The search for a sentence ends
    when no prefix can score more than the best finished translation. `limits`, an int64
    tensor (n,) on the model's device, holds the largest number of tokens that each
    translation may have, including END.
    """
    translations: list[list[int]] = [[] for _ in limits]
    best = torch.full((len(limits),), -torch.inf, device=limits.device)
    # Indices of the sentences whose search continues.
    sentences = torch.arange(len(limits), device=limits.device)
    prefixes = torch.full((len(limits), 1, 1), START, device=limits.device)
    scores = torch.zeros(len(limits), 1, device=limits.device)
    never_on = torch.tensor([PADDING, START, END], device=limits.device)
    while len(sentences):
        _, width, length = prefixes.shape
        logits = step(prefixes.flatten(0, 1), sentences.repeat_interleave(width))
        log_probs = torch.log_softmax(logits.float() / temperature, dim=1)
        # Scores of all continuations, shape (sentences, prefixes, vocabulary).
        totals = scores[:, :, None] + log_probs.unflatten(0, (-1, width))
        penalty = ((5 + length) / 6) ** length_penalty
        ended, ended_prefixes = (totals[:, :, END] / penalty).max(dim=1)
        better = (ended > best[sentences]).nonzero().squeeze(1)
        best[sentences[better]] = ended[better]
        winners = prefixes[better, ended_prefixes[better], 1:].tolist()
        for sentence, tokens in zip(sentences[better].tolist(), winners, strict=True):
            translations[sentence] = tokens
        # Keep the best prefixes with one more token, the best one first.
        going_on = totals.index_fill(2, never_on, -torch.inf).flatten(1)
        scores, chosen = going_on.topk(min(beam, going_on.shape[1]), dim=1)
        vocabulary = totals.shape[2]
        longest = prefixes.take_along_dim((chosen // vocabulary)[:, :, None], dim=1)
        prefixes = torch.cat([longest, (chosen % vocabulary)[:, :, None]], dim=2)
        # A longer prefix has a lower log-probability. Log-probabilities are negative,
        # and the largest penalty by which one can be divided is that of the length
        # limit. So no translation that continues a prefix can score more than `bound`.
        bound = scores[:, 0] / ((5 + limits[sentences]) / 6) ** length_penalty
        on = (bound > best[sentences]) & (limits[sentences] > length)
        sentences = sentences[on]
        prefixes = prefixes[on]
        scores = scores[on]
    return translations
