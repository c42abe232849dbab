"""A recurrent classifier of texts (temperature_check)."""

import torch
from torch import Tensor, nn

from softmax_temperature.data.tokens import PADDING
from softmax_temperature.networks.layers import Classifier, upload

# Deviation: our copy of the temperature_check paper names a GRU on IMDB and gives
# neither its widths, the number of its layers and directions, the input of its
# classifier, nor its initial weights. Here one layer reads from left to right, its
# state after the last token goes to the classifier, the embedding is learned with the
# rest, and weights start as PyTorch's: the embedding standard normal, the others
# uniform within ±1 / sqrt(units).


class GRU(Classifier):
    """A learned embedding, one gated recurrent layer, and a linear classifier.

    The classifier reads the state after the last token (Cho et al. 2014).

    Args:
        vocabulary_size: The count of all token numbers.
        embedding: Entries of a token's vector.
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
        """The state after each text's last token, (n, hidden) float32.

        Args:
            inputs: Tokens, shape (n, length), int64, padded on the right.
        """
        lengths = (inputs != PADDING).sum(1)
        longest = int(lengths.max())
        device = self.embedding.weight.device
        tokens, ends = upload(device, inputs[:, :longest], lengths - 1)
        # Not as a packed sequence, which reads no padding at all: on a CPU its
        # gradients take time that grows with the square of the length, 4 times as long
        # for 64 texts of up to 400 tokens. Not in bfloat16, in which a state that is
        # updated hundreds of times would lose what a single token adds.
        with torch.autocast(device.type, enabled=False):
            states, _ = self.recurrent(self.embedding(tokens))
        rows = torch.arange(len(tokens), device=device)
        last_states: Tensor = states[rows, ends]
        return last_states
