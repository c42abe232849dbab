"""A recurrent classifier for texts (temperature_check)."""

import torch
from torch import Tensor, nn

from softmax_temperature.data.tokens import PADDING
from softmax_temperature.networks.layers import Classifier, upload

# Deviation: our GRU has one layer that reads from left to right, and its hidden state
# after the last token is the input of the classifier. The embedding is trained with the
# other weights, and all initial weights are PyTorch's default: the embedding is
# standard normal, the others are uniform within ±1 / sqrt(units). Our copy of the
# temperature_check paper names a GRU on IMDB but not its widths, layers, directions,
# classifier input or initial weights.


class GRU(Classifier):
    """A learned embedding, one gated recurrent layer, and a linear classifier.

    The classifier reads the hidden state after the last token (Cho et al. 2014).

    Args:
        vocabulary_size: Number of distinct token IDs, including the reserved ones.
        embedding: Length of a token's vector.
        hidden: Units of the recurrent layer.
        num_classes: The number of logits.
    """

    def __init__(
        self,
        vocabulary_size: int,
        embedding: int = 128,
        hidden: int = 128,
        num_classes: int = 2,
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(vocabulary_size, embedding, padding_idx=PADDING)
        self.recurrent = nn.GRU(embedding, hidden, batch_first=True)
        self.classifier = nn.Linear(hidden, num_classes)

    def features(self, inputs: Tensor) -> Tensor:
        """The hidden state after each text's last token, (n, hidden) float32.

        Args:
            inputs: Token IDs, an int64 tensor (n, length), padded on the right.
        """
        lengths = (inputs != PADDING).sum(1)
        longest = int(lengths.max())
        device = self.embedding.weight.device
        tokens, ends = upload(device, inputs[:, :longest], lengths - 1)
        # A packed sequence would skip padding, but on a CPU the time of its gradients
        # grows with the square of the length: for 64 texts of up to 400 tokens, a
        # packed sequence takes 4 times as long. We do not use bfloat16 here, because a
        # state that is updated hundreds of times would lose the contribution of a
        # single token.
        with torch.autocast(device.type, enabled=False):
            states, _ = self.recurrent(self.embedding(tokens))
        rows = torch.arange(len(tokens), device=device)
        last_states: Tensor = states[rows, ends]
        return last_states
