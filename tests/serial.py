"""Compute settings for tests: cells run one by one in this process, on one thread.

A checkpoint is saved at every opportunity.
"""

from softmax_temperature.runner.section import Compute

SERIAL = Compute(
    engine="serial",
    workers=1,
    threads_per_cell=1,
    device="cpu",
    checkpoint_seconds=0,
    ray_address=None,
    gpus_per_cell=0,
)
