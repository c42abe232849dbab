"""Training of the studies' networks: one plain loop for all papers.

The samples are images, pixels, texts, trees or sentences.

Images are gathered on the device and augmented as uint8, without worker processes. All
randomness depends only on the seed and the number of the epoch, so that on a CPU an
interrupted run resumes bit for bit.
"""

from softmax_temperature.training.samples import ImageSet, Samples
from softmax_temperature.training.trainer import Callback, Diverged, Trainer, train
from softmax_temperature.training.watch import BestEpoch, Norms, Watch, scaled_epochs

__all__ = [
    "BestEpoch",
    "Callback",
    "Diverged",
    "ImageSet",
    "Norms",
    "Samples",
    "Trainer",
    "Watch",
    "scaled_epochs",
    "train",
]
