"""Training of classifiers on images or texts that fit on the device: one plain loop for all papers.

Batches are gathered there, images augmented as uint8, without worker processes. Everything random depends on the seed
and the number of the epoch alone, so that a training that was interrupted goes on with the same bits on a CPU.
"""

from softmax_temperature.training.best_epoch import BestEpoch
from softmax_temperature.training.images import ImageSet, to_rgb
from softmax_temperature.training.networks import build_network, check_network, count_parameters, last_layer_inputs
from softmax_temperature.training.run import Follower, train
from softmax_temperature.training.samples import Samples
from softmax_temperature.training.schedules import learning_rate_factor
from softmax_temperature.training.trainer import Diverged, Objective, Trainer
from softmax_temperature.training.watch import ClosePlaces, Watch, close_epochs

__all__ = [
    "BestEpoch",
    "ClosePlaces",
    "Diverged",
    "Follower",
    "ImageSet",
    "Objective",
    "Samples",
    "Trainer",
    "Watch",
    "build_network",
    "check_network",
    "close_epochs",
    "count_parameters",
    "last_layer_inputs",
    "learning_rate_factor",
    "to_rgb",
    "train",
]
