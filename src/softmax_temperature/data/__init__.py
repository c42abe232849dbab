"""Data sets: their sources, their splits, and the form that later stages read."""
