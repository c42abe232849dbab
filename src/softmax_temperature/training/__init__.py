"""Training of classifiers on images or texts that fit on the device: one plain loop for all papers.

Batches are gathered there, images augmented as uint8, without worker processes. Everything random depends on the seed
and the number of the epoch alone, so that an interrupted training resumes with the same bits on a CPU.
"""

from softmax_temperature.training.samples import ImageSet, Samples
from softmax_temperature.training.trainer import Callback, Diverged, Trainer, train
from softmax_temperature.training.watch import BestEpoch, Norms, Watch, scaled_epochs

__all__ = ["BestEpoch", "Callback", "Diverged", "ImageSet", "Norms", "Samples", "Trainer", "Watch", "scaled_epochs"]
__all__ += ["train"]
