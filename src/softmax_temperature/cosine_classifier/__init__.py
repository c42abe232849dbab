"""Cosine classifiers trained at many inverse temperatures at once.

classifier_temperature, sections 3.1 and 4.3.
"""

from softmax_temperature.cosine_classifier.grid import TemperatureGrid
from softmax_temperature.cosine_classifier.trainer import (
    TemperatureGridTrainer,
    normalise,
    train_temperature_grid,
)

__all__ = [
    "TemperatureGrid",
    "TemperatureGridTrainer",
    "normalise",
    "train_temperature_grid",
]
