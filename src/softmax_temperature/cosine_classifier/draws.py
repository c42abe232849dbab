"""Random numbers of the batched training: one stream for each purpose, spawned by one seed."""

from __future__ import annotations

import numpy as np
import torch

INITIAL_WEIGHTS, BATCH_ORDER, PIECE_ORDER = 0, 1, 2


def generator(seed: int, stream: int, index: int) -> torch.Generator:
    """Random numbers of one purpose; on the CPU, so that every device draws the same.

    Args:
        seed: of the training.
        stream: INITIAL_WEIGHTS, BATCH_ORDER or PIECE_ORDER.
        index: which repeat's weights, or which epoch's order.
    """
    state = np.random.SeedSequence([seed, stream, index]).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0] >> np.uint64(1)))
