"""Seeds and random generators for named purposes, each derived from a given seed.

Purposes have independent generators, so a new purpose does not change the others.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


def seed_of(seed: int, *names: str) -> int:
    """Derive a 63-bit seed from `seed` for the purpose that `names` spell out."""
    text = "/".join([str(seed), *names])
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def generator_for(seed: int, *purpose: str) -> np.random.Generator:
    """Make a random generator for `purpose`, derived from `seed`."""
    text = "/".join(purpose)
    return np.random.default_rng([seed, *text.encode()])


@contextmanager
def drawn_from(seed: int) -> Iterator[None]:
    """Seed torch's generator in the block, and restore the caller's state after it."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield
