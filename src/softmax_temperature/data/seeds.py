"""Seeds and generators for named purposes: from one seed of the project, each
independent of every other.
"""

import hashlib

import numpy as np


def seed_of(seed: int, *names: str) -> int:
    """A 63-bit seed for a named purpose."""
    digest = hashlib.sha256("/".join([str(seed), *names]).encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


def generator_for(seed: int, *purpose: str) -> np.random.Generator:
    """A generator for a named purpose, so that one choice does not disturb another."""
    return np.random.default_rng([seed, *"/".join(purpose).encode()])
