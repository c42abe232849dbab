"""Calibrating deep neural networks using focal loss (Mukhoti et al. 2020)."""
