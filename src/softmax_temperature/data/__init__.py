"""Data sets: where they come from, how they are split, and how later stages read them."""

from softmax_temperature.data.prepared import PreparedImages, open_prepared

__all__ = ["PreparedImages", "open_prepared"]
