"""The theory of early learning, predicted against measured: its tables and slopes."""

from softmax_temperature.papers.temperature_check.early_learning_slopes import early_slopes
from softmax_temperature.papers.temperature_check.early_learning_tables import early_tables

__all__ = ["early_slopes", "early_tables"]
