"""The encoder-decoder Transformer (Vaswani et al. 2017), in torch's own modules."""

import math
from typing import Any

import torch
from torch import Tensor, nn

from softmax_temperature.networks.uploads import upload
from softmax_temperature.params.focal import Transformer
from softmax_temperature.training.translation.sentences import PADDING

# Deviation: torch's layers drop out attention weights and the inner units of the feed-forward layers too, not the
# outputs of sublayers and the embeddings alone. Vaswani et al. average the last five checkpoints; here the last weights
# are kept, so that what is evaluated is what the loss trained.


class TranslationTransformer(nn.Module):
    """Encoder and decoder with sinusoidal positions; both embeddings and the last layer share one matrix."""

    def __init__(self, vocabulary: int, sizes: Transformer) -> None:
        super().__init__()
        width, heads, layers, dropout = sizes.width, sizes.heads, sizes.layers, sizes.dropout
        self.embedding = nn.Embedding(vocabulary, width)
        self.classifier = nn.Linear(width, vocabulary, bias=False)
        self.classifier.weight = self.embedding.weight
        self.dropout = nn.Dropout(dropout)
        shape: dict[str, Any] = {"dim_feedforward": sizes.inner, "dropout": dropout, "batch_first": True}
        encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(width, heads, **shape), layers, enable_nested_tensor=False
        )
        decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(width, heads, **shape), layers)
        # Layers normalise their outputs, so nothing follows the last one; nn.Transformer would normalise once more.
        self.transformer = nn.Transformer(
            width, heads, custom_encoder=encoder, custom_decoder=decoder, batch_first=True
        )
        nn.init.normal_(self.embedding.weight, std=width**-0.5)

    def forward(self, inputs: Tensor) -> Tensor:
        """Logits (tokens, vocabulary) of what follows each decoder input but padding, one sentence behind the other.

        `inputs` (pairs, 2, length) are as `SentencePairs.teacher_forced` returns them.
        """
        read = (inputs[:, 1] != PADDING).flatten().nonzero().squeeze(1)
        inputs, read = upload(self.embedding.weight.device, inputs, read)
        sources, targets = inputs.unbind(1)
        features = self.decode(targets, self.encode(sources), sources == PADDING)
        logits: Tensor = self.classifier(features.flatten(0, 1)[read])
        return logits

    def encode(self, sources: Tensor) -> Tensor:
        """What the decoder attends to: sources (b, s), padded on the right, to (b, s, width)."""
        memory: Tensor = self.transformer.encoder(self._embedded(sources), src_key_padding_mask=sources == PADDING)
        return memory

    def decode(self, targets: Tensor, memory: Tensor, source_padding: Tensor) -> Tensor:
        """What the last layer makes logits of, (b, t, width), from decoder inputs (b, t), padded on the right.

        No position sees those after it. `source_padding` (b, s) is true where the source is padding.
        """
        later = torch.ones(targets.shape[1], targets.shape[1], dtype=torch.bool, device=targets.device).triu(1)
        features: Tensor = self.transformer.decoder(
            self._embedded(targets), memory, tgt_mask=later, memory_key_padding_mask=source_padding, tgt_is_causal=True
        )
        return features

    def _embedded(self, tokens: Tensor) -> Tensor:
        width = self.embedding.embedding_dim
        codes = positions(tokens.shape[1], width, tokens.device).to(self.embedding.weight.dtype)
        embedded: Tensor = self.dropout(self.embedding(tokens) * math.sqrt(width) + codes)
        return embedded


def positions(length: int, width: int, device: torch.device) -> Tensor:
    """Sines and cosines of wavelengths 2π to 10,000 · 2π (Vaswani et al., section 3.5): (length, width) float32."""
    rates = torch.exp(torch.arange(0, width, 2, device=device) * (-math.log(10_000.0) / width))
    angles = torch.arange(length, device=device)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)


def make_network(vocabulary: int, sizes: Transformer, *, seed: int) -> TranslationTransformer:
    """A network with random weights that depend on the seed alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return TranslationTransformer(vocabulary, sizes)
