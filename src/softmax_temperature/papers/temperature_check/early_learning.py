"""The theory of early learning, predicted against measured: its tables, slopes and claims."""

from softmax_temperature.papers.temperature_check.early_learning_claims import early_claims
from softmax_temperature.papers.temperature_check.early_learning_slopes import early_slopes
from softmax_temperature.papers.temperature_check.early_learning_tables import early_tables

__all__ = ["early_claims", "early_slopes", "early_tables"]
